"""
What a query gives, as records of a topic: with a column `value` each row is one as it is, else its columns become an
object of JSON.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType

from kgateway.spark.failures import WrongOption
from kgateway.spark.sql.columns import HEADERS, KEY, NAMES, VALUE
from kgateway.spark.sql.texts import check_names, json_of, json_value

_ROLES = {"key": KEY, "value": VALUE, "headers": HEADERS}  # with the columns that do as well
_PARTITION = "partition"


@dataclass(frozen=True, slots=True)
class Form:
    """
    Which columns become what of a record: the value is either one of them, or an object of some.
    """

    roles: dict[str, str]
    inside: Sequence[str]

    def __str__(self) -> str:
        value = self.roles.get("value") or f"JSON of {', '.join(self.inside)}"
        others = [f"{role} {name}" for role, name in self.roles.items() if role != "value"]
        return ", ".join([f"value {value}", *others])


def form_of(names: Sequence[str]) -> Form:
    """
    What becomes of columns of these names.
    """
    roles = {}
    for role, virtual in _ROLES.items():
        there = [name for name in (role, virtual) if name in names]
        if there:
            roles[role] = there[0]
    left = [name for name in names if name not in roles.values()]
    if "value" not in roles:
        if not left:
            raise WrongOption("there is no column for the value of a record")
        return Form(roles, left)
    if _PARTITION in left:
        roles[_PARTITION] = _PARTITION
    alien = [name for name in left if name not in NAMES and name != _PARTITION]
    if alien:
        raise WrongOption(
            f"a record has no place for {', '.join(alien)} beside {roles['value']}: select key, value and headers, or "
            "no value, and all columns become an object of JSON"
        )
    return Form(roles, ())


def as_records(result: DataFrame) -> tuple[DataFrame, Form]:
    """
    Rows that the data source writes, and what they are made of.
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
