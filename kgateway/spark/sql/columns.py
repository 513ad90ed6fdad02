"""
The columns of a topic in SQL: those of its values, where these have a schema, and those that every topic has. The
latter have the names that SeaweedFS's SQL gives them, and so have the words in `_source`; more of them are ours.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from kgateway.spark.archive.parquet import COLUMNS
from kgateway.spark.failures import Unreadable, WrongOption
from kgateway.spark.reading import Wanted
from kgateway.spark.values import ValueDecoder

ARCHIVE, LOG = "parquet_archive", "live_log"  # SeaweedFS's words
_WHERE = ("topic", "partition", "offset")
_NS = 1_000  # nanoseconds in a microsecond
KEY, VALUE, HEADERS = "_key", "_value", "_headers"
NAMES = ("_partition", "_offset", "_ts_ns", KEY, VALUE, HEADERS, "_source")
Decoders = Mapping[str, ValueDecoder]


def schema(decoders: Decoders, names: Iterable[str] = COLUMNS) -> Any:
    """
    Of rows as the data source and archives have them, with these types of keys and values.
    """
    return from_arrow_schema(Wanted(tuple(names), decoders=decoders).schema)


def fields(decoders: Decoders) -> list[str]:
    """
    The columns that values bring along.
    """
    decoder = decoders.get("value")
    if decoder is None or not pa.types.is_struct(decoder.type):
        return []
    found = [field.name for field in decoder.type]
    taken = [name for name in found if name.lower() in NAMES]
    if taken:
        raise WrongOption(f"the schema has a field {taken[0]}, and each topic has a column of that name")
    return found


def as_table(rows: DataFrame, source: str, decoders: Decoders) -> DataFrame:
    """
    Rows as they show in SQL.
    """
    inside = fields(decoders)
    own = {
        "_partition": f.col("partition"),
        "_offset": f.col("offset"),
        # Of times that are too far away for nanoseconds there are none.
        "_ts_ns": f.try_multiply(f.unix_micros("timestamp"), f.lit(_NS).cast("long")),
        KEY: f.col("key"),
        VALUE: f.col("value"),
        HEADERS: f.col("headers"),
        "_source": f.lit(source),
    }
    if inside:
        del own[VALUE]
    return rows.select(
        *[f.col("value").getField(name).alias(name) for name in inside],
        *[column.alias(name) for name, column in own.items()],
    )


def archived(names: Sequence[str], decoders: Decoders) -> Sequence[str]:
    """
    The columns that are read of an archive for these: where values are decoded, it can be said which one cannot.
    """
    if decoders.keys().isdisjoint(names):
        return names
    return [name for name in COLUMNS if name in {*names, *_WHERE}]


def typed(rows: DataFrame, names: Sequence[str], decoders: Decoders) -> DataFrame:
    """
    These columns of an archive with the types that those of the log have.
    """
    if decoders.keys().isdisjoint(names):
        return rows
    made = Wanted(tuple(names), decoders=decoders).schema

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = [_decoded(batch, name, decoders) for name in names]
            yield pa.RecordBatch.from_arrays(columns, schema=made)

    return rows.mapInArrow(decode, schema(decoders, names))


def whole(rows: DataFrame, decoders: Decoders) -> DataFrame:
    """
    Rows with all columns. Nothing needs those that are not there, or the query ends with an error.
    """
    return rows.select(*[field.name if field.name in rows.columns else _missing(field) for field in schema(decoders)])


def _missing(field: Any) -> Column:
    reason = f.lit(f"the column {field.name} was not read, for the statement was thought not to need it")
    return f.raise_error(reason).cast(field.dataType).alias(field.name)


def _decoded(batch: pa.RecordBatch, name: str, decoders: Decoders) -> pa.Array:
    column = batch.column(name)
    if name not in decoders:
        return column
    try:
        return decoders[name].decode(column)
    except ValueError as error:
        topic, partition = batch.column("topic")[0], batch.column("partition")[0]
        offsets = pc.min_max(batch.column("offset")).as_py()
        raise Unreadable(
            f"the {name} of an archived record cannot be decoded ({topic}-{partition}, offsets {offsets['min']} to "
            f"{offsets['max']}): {error}"
        ) from error
