"""
The result of a query, as text or as records of a topic.

Spark makes the text in its tasks. Bytes that are UTF-8 are shown as text, others in hexadecimal. For a topic, a row
with a column `value` is a record as it is; otherwise its columns become a JSON object.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType

from kgateway.spark.errors import WrongOption
from kgateway.spark.sql.columns import HEADERS, KEY, NAMES, VALUE

LINE = "line"
_JSON = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
_ROLES = {"key": KEY, "value": VALUE, "headers": HEADERS}  # each with the virtual column that may stand in for it
_PARTITION = "partition"


def as_texts(result: DataFrame) -> DataFrame:
    """
    All columns as strings; null stays null.
    """
    return _numbered(result).select([_readable(column, kind).cast("string") for _, column, kind in _columns(result)])


def as_json(result: DataFrame) -> DataFrame:
    """
    A JSON object for each row, in the column `line`.
    """
    check_names(result)
    return _numbered(result).select(json_of(_columns(result)).alias(LINE))


def json_of(columns: Iterable[tuple[str, Column, DataType]]) -> Column:
    return f.to_json(f.struct(*[_readable(column, kind).alias(name) for name, column, kind in columns]), _JSON)


def json_value(column: Column, kind: DataType) -> Column:
    """
    A struct, an array or a map as JSON.
    """
    return f.to_json(_readable(column, kind), _JSON)


def check_names(result: DataFrame) -> None:
    twice = [name for name, count in Counter(result.columns).items() if count > 1]
    if twice:
        raise WrongOption(f"there are two columns {twice[0]}: rename one of them with AS")


def _columns(result: DataFrame) -> list[tuple[str, Column, DataType]]:
    return [(one.name, f.col(f"c{number}"), one.dataType) for number, one in enumerate(result.schema.fields)]


def _numbered(result: DataFrame) -> DataFrame:
    """
    Give columns unique names.
    """
    return result.toDF(*[f"c{number}" for number in range(len(result.columns))])


def _readable(column: Column, kind: DataType) -> Column:
    """
    The column with text in place of bytes, also in nested types.
    """
    match kind:
        case BinaryType():
            text = column.cast("string")
            return f.when(f.is_valid_utf8(text), text).otherwise(f.hex(column))
        case ArrayType() if _has_bytes(kind):
            return f.transform(column, lambda element: _readable(element, kind.elementType))
        case MapType() if _has_bytes(kind):
            keyed = f.transform_keys(column, lambda key, _: _readable(key, kind.keyType))
            return f.transform_values(keyed, lambda _, value: _readable(value, kind.valueType))
        case StructType() if _has_bytes(kind):
            inside = [_readable(column.getField(field.name), field.dataType).alias(field.name) for field in kind.fields]
            return f.when(column.isNotNull(), f.struct(*inside))
        case _:
            return column


def _has_bytes(kind: DataType) -> bool:
    match kind:
        case BinaryType():
            return True
        case ArrayType():
            return _has_bytes(kind.elementType)
        case MapType():
            return _has_bytes(kind.keyType) or _has_bytes(kind.valueType)
        case StructType():
            return any(_has_bytes(field.dataType) for field in kind.fields)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class RecordForm:
    """
    Which columns become which part of a record: the value is either a column, or an object of several.
    """

    roles: dict[str, str]
    inside: Sequence[str]

    def __str__(self) -> str:
        value = self.roles.get("value") or f"JSON of {', '.join(self.inside)}"
        others = [f"{role} {name}" for role, name in self.roles.items() if role != "value"]
        return ", ".join([f"value {value}", *others])


def form_of(names: Sequence[str]) -> RecordForm:
    roles = {}
    for role, virtual in _ROLES.items():
        there = [name for name in (role, virtual) if name in names]
        if there:
            roles[role] = there[0]
    left = [name for name in names if name not in roles.values()]
    if "value" not in roles:
        if not left:
            raise WrongOption("there is no column for the value of a record")
        return RecordForm(roles, left)
    if _PARTITION in left:
        roles[_PARTITION] = _PARTITION
    alien = [name for name in left if name not in NAMES and name != _PARTITION]
    if alien:
        raise WrongOption(
            f"a record cannot have {', '.join(alien)} besides {roles['value']}: select key, value and headers, or no "
            "value, and all columns become a JSON object"
        )
    return RecordForm(roles, ())


def as_records(result: DataFrame) -> tuple[DataFrame, RecordForm]:
    """
    Rows that the data source can write, and the form of the records.
    """
    check_names(result)
    form = form_of(result.columns)
    kinds: dict[str, Any] = {field.name: field.dataType for field in result.schema.fields}
    made = {role: _part(role, f.col(_quoted(name)), kinds[name]) for role, name in form.roles.items()}
    if form.inside:
        made["value"] = json_of([(name, f.col(_quoted(name)), kinds[name]) for name in form.inside])
    return result.select(*[column.alias(role) for role, column in made.items()]), form


def _part(role: str, column: Column, kind: DataType) -> Column:
    if role in ("key", "value"):
        return _bytes(column, kind)
    return column.cast("int") if role == _PARTITION else column


def _bytes(column: Column, kind: DataType) -> Column:
    match kind:
        case StringType() | BinaryType():
            return column
        case StructType() | ArrayType() | MapType():
            return json_value(column, kind)
        case _:
            return column.cast("string")


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
