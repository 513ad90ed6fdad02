"""
Rows of files to rows of a topic: which columns are key, value and time, the partition of each row, and the order.

The order is always the same, however Spark splits the files: rows that the ordering columns do not distinguish are in
the order of the files' names, and within a file in its own order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    IntegralType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from kgateway.spark.errors import WrongOption
from kgateway.spark.writers.partition_rows import partitions_of

_PLACE = ("file", "block", "row")
_COMPOUND = (StructType, ArrayType, MapType)
_TIMES = (TimestampType, TimestampNTZType, DateType, StringType)


class RowCounts(NamedTuple):
    """
    The number of rows for each partition, and the oldest timestamp.
    """

    rows: dict[int, int]
    oldest_ms: int | None


@dataclass(frozen=True, slots=True)
class RowMapping:
    """
    Which column is what. Without a value column the value is all columns as JSON; without a time column rows have the
    time of their arrival.
    """

    key: str | None = None
    value: str | None = None
    timestamp: str | None = None
    order: Sequence[str] = ()

    def placed(self, frame: DataFrame, partitions: int) -> DataFrame:
        """
        The rows as they are written, with the columns that order them.
        """
        self._check(frame)
        ordering = [F.col(_quoted(name)).alias(f"order{place}") for place, name in enumerate(self.order)]
        place = (
            F.col("_metadata.file_path").alias("file"),
            F.col("_metadata.file_block_start").alias("block"),
            F.monotonically_increasing_id().alias("row"),
        )
        key = F.lit(None).cast("binary") if self.key is None else _bytes(frame, self.key)
        value = _all_as_json(frame) if self.value is None else _bytes(frame, self.value)
        columns = key.alias("key"), value.alias("value"), self._time(frame).alias("timestamp")
        rows = frame.select(*columns, *ordering, *place)

        def partition(hashed: pa.Array) -> pa.Array:
            return pa.array(partitions_of(hashed, partitions))

        return rows.withColumn("partition", F.arrow_udf(partition, "int")(F.coalesce("key", "value")))

    def ordered(self, placed: DataFrame, partitions: int) -> DataFrame:
        """
        Each partition in a task of its own, in order.
        """
        order = [f"order{place}" for place in range(len(self.order))]
        apart = placed.repartitionById(partitions, "partition")
        inside = apart.sortWithinPartitions("partition", *order, *_PLACE)
        now = F.unix_millis(F.current_timestamp())
        return inside.select("partition", "key", "value", F.coalesce("timestamp", now).alias("timestamp"))

    def counted(self, placed: DataFrame, texts_only: bool) -> RowCounts:
        """
        Count rows; WrongOption where the columns do not fit the options.
        """
        numbers = [_numbers(f"order{place}") for place in range(len(self.order) if texts_only else 0)]
        checks = [F.count("*").alias("rows"), F.count("timestamp").alias("timed"), F.min("timestamp").alias("oldest")]
        counted = placed.groupBy("partition").agg(*checks, *numbers).collect()
        rows = {row.partition: row.rows for row in counted}
        timed = sum(row.timed for row in counted)
        if self.timestamp is not None and timed < sum(rows.values()):
            raise WrongOption(f"{sum(rows.values()) - timed:,} rows have no time in the column {self.timestamp}")
        for place, name in enumerate(self.order if texts_only else ()):
            if counted and all(row[f"order{place}"] for row in counted):
                raise WrongOption(
                    f"the numbers in {name} are strings, which sort 10 before 9: name the types of the columns, as in "
                    f"--schema 'id long, {name} long'"
                )
        oldest = [row.oldest for row in counted if row.oldest is not None]
        return RowCounts(rows, min(oldest, default=None))

    def _check(self, frame: DataFrame) -> None:
        if not frame.columns:
            raise WrongOption("these files have no columns")
        for name in filter(None, (self.key, self.value, self.timestamp, *self.order)):
            if name not in frame.columns:
                near = get_close_matches(name, frame.columns) or frame.columns
                advice = f"did you mean {' or '.join(near)}?" if near != frame.columns else f"choose from {_some(near)}"
                raise WrongOption(f"there is no column {name} in these files; {advice}")

    def _time(self, frame: DataFrame) -> Any:
        if self.timestamp is None:
            return F.lit(None).cast("long")
        kind, column = _type(frame, self.timestamp), F.col(_quoted(self.timestamp))
        if isinstance(kind, IntegralType):
            return column.cast("long")
        if isinstance(kind, _TIMES):
            return F.unix_millis(column.try_cast("timestamp"))
        raise WrongOption(f"the column {self.timestamp} is of type {kind.simpleString()}, which is not a time")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _numbers(column: str) -> Any:
    """
    Whether all strings of a column are numbers.
    """
    is_number = F.isnotnull(F.col(column).try_cast("double"))
    return F.bool_and(F.coalesce(F.when(F.isnotnull(column), is_number), F.lit(True))).alias(column)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _type(frame: DataFrame, name: str) -> DataType:
    return frame.schema[name].dataType


def _bytes(frame: DataFrame, name: str) -> Any:
    """
    A column as bytes: strings and numbers as text, nested types as JSON.
    """
    kind, column = _type(frame, name), F.col(_quoted(name))
    if isinstance(kind, BinaryType):
        return column
    text = F.to_json(column) if isinstance(kind, _COMPOUND) else column.cast("string")
    return text.cast("binary")


def _all_as_json(frame: DataFrame) -> Any:
    columns = [F.col(_quoted(name)) for name in frame.columns]
    return F.to_json(F.struct(*columns), {"ignoreNullFields": "false"}).cast("binary")
