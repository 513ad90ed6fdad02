"""
What a query gives, as text. Spark makes it, in its tasks. Bytes that are UTF-8 are shown as the text that they are, and
others in hexadecimal digits.
"""

from collections import Counter
from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType

from kgateway.spark.failures import WrongOption

LINE = "line"
_JSON = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


def as_texts(result: DataFrame) -> DataFrame:
    """
    The same rows, with texts in all columns; null stays null.
    """
    return _numbered(result).select([_readable(column, kind).cast("string") for _, column, kind in _columns(result)])


def as_json(result: DataFrame) -> DataFrame:
    """
    An object of JSON for each row, in the column `line`.
    """
    check_names(result)
    return _numbered(result).select(json_of(_columns(result)).alias(LINE))


def json_of(columns: Iterable[tuple[str, Column, DataType]]) -> Column:
    """
    An object of these columns, by names that they have in it.
    """
    return f.to_json(f.struct(*[_readable(column, kind).alias(name) for name, column, kind in columns]), _JSON)


def json_value(column: Column, kind: DataType) -> Column:
    """
    One column as JSON: that of a struct, an array or a map.
    """
    return f.to_json(_readable(column, kind), _JSON)


def check_names(result: DataFrame) -> None:
    """
    Refuse two columns of one name.
    """
    twice = [name for name, count in Counter(result.columns).items() if count > 1]
    if twice:
        raise WrongOption(f"there are two columns {twice[0]}: give one of them another name, with AS")


def _columns(result: DataFrame) -> list[tuple[str, Column, DataType]]:
    return [(one.name, f.col(f"c{number}"), one.dataType) for number, one in enumerate(result.schema.fields)]


def _numbered(result: DataFrame) -> DataFrame:
    """
    With names that are not there twice.
    """
    return result.toDF(*[f"c{number}" for number in range(len(result.columns))])


def _readable(column: Column, kind: DataType) -> Column:
    """
    With texts in place of bytes, wherever they are in it.
    """
    match kind:
        case BinaryType():
            text = column.cast("string")
            return f.when(f.is_valid_utf8(text), text).otherwise(f.hex(column))
        case ArrayType() if _has_bytes(kind):
            return f.transform(column, lambda one: _readable(one, kind.elementType))
        case MapType() if _has_bytes(kind):
            keyed = f.transform_keys(column, lambda key, _: _readable(key, kind.keyType))
            return f.transform_values(keyed, lambda _, value: _readable(value, kind.valueType))
        case StructType() if _has_bytes(kind):
            inside = [_readable(column.getField(one.name), one.dataType).alias(one.name) for one in kind.fields]
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
            return any(_has_bytes(one.dataType) for one in kind.fields)
        case _:
            return False
