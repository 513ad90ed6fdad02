"""
The columns of a topic in SQL: those of its values, where they have a schema, and those that every topic has. The
latter, and the values of `_source`, have the names that SeaweedFS's SQL gives them; some columns are additional.

Which columns a statement needs: Spark does not tell a Python source, which would read them all. But it tells for files,
so it explains the statement over empty folders of Parquet with the same columns.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from kgateway.spark.archive.parquet import COLUMNS
from kgateway.spark.decoders.parse_mode import ColumnDecoder, Columns
from kgateway.spark.errors import Unreadable, WrongOption
from kgateway.spark.readers.range_reader import ReadSpec

ARCHIVE, LOG = "parquet_archive", "live_log"  # SeaweedFS's words
_WHERE = ("topic", "partition", "offset")
_NS = 1_000  # nanoseconds in a microsecond
KEY, VALUE, HEADERS = "_key", "_value", "_headers"
NAMES = ("_partition", "_offset", "_ts_ns", KEY, VALUE, HEADERS, "_source")
Decoders = Mapping[str, ColumnDecoder]
_SCAN = re.compile(r"^\(\d+\) Scan parquet.*\n(?P<facts>(?:.+\n)+)", re.MULTILINE)
_OUTPUT = re.compile(r"^Output(?: \[(?P<count>\d+)\])?: \[(?P<names>.*)\]$", re.MULTILINE)
_NAME = re.compile(r"(\w+)#\d+")


def schema(decoders: Decoders, names: Iterable[str] = COLUMNS) -> Any:
    """
    The schema of rows from the data source and from archives, with these types of keys and values.
    """
    return from_arrow_schema(ReadSpec(tuple(names), decoders=decoders).schema)


def fields(decoders: Decoders) -> list[str]:
    """
    The columns that values have.
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
    Rows as SQL shows them.
    """
    inside = fields(decoders)
    own = {
        "_partition": f.col("partition"),
        "_offset": f.col("offset"),
        # Null where nanoseconds overflow.
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
    The columns to read from an archive for these: with decoders also those that say which record cannot be decoded.
    """
    needed = _decoded_for(names, decoders)
    return [name for name in COLUMNS if name in {*names, *needed, *_WHERE}] if needed else names


def _decoded_for(names: Sequence[str], decoders: Decoders) -> list[str]:
    """
    The columns to decode: those that are wanted, and those that decide which rows are dropped.
    """
    return [name for name, decoder in decoders.items() if name in names or decoder.drops]


def typed(rows: DataFrame, names: Sequence[str], decoders: Decoders) -> DataFrame:
    """
    Columns of an archive with the types that those of the log have.
    """
    needed = _decoded_for(names, decoders)
    if not needed:
        return rows
    made = ReadSpec(tuple(names), decoders=decoders).schema

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            for name in needed:
                columns = _decoded(columns, name, decoders[name])
            yield pa.RecordBatch.from_arrays([columns[name] for name in names], schema=made)

    return rows.mapInArrow(decode, schema(decoders, names))


def whole(rows: DataFrame, decoders: Decoders) -> DataFrame:
    """
    Rows with all columns. A column that was not read fails the query if it is used after all.
    """
    return rows.select(*[field.name if field.name in rows.columns else _missing(field) for field in schema(decoders)])


def _missing(field: Any) -> Column:
    reason = f.lit(f"the column {field.name} was not read, because the statement seemed not to need it")
    return f.raise_error(reason).cast(field.dataType).alias(field.name)


def _decoded(columns: Columns, name: str, decoder: ColumnDecoder) -> Columns:
    try:
        return decoder.decode(columns, name)
    except ValueError as error:
        topic, partition = columns["topic"][0], columns["partition"][0]
        offsets = pc.min_max(columns["offset"]).as_py()
        raise Unreadable(
            f"the {name} of an archived record cannot be decoded ({topic}-{partition}, offsets {offsets['min']} to "
            f"{offsets['max']}): {error}"
        ) from error


def outline(spark: Any, folder: Path, source: str, decoders: Decoders) -> DataFrame:
    """
    An empty table with the columns of a topic, in a folder of its own.
    """
    folder.mkdir(exist_ok=True)
    return as_table(spark.read.schema(schema(decoders)).parquet(folder.as_uri()), source, decoders)


def explained(spark: Any, statement: str) -> str:
    [row] = spark.sql(f"EXPLAIN FORMATTED {statement}").collect()
    return str(row[0])


def columns_read(plan: str, folder: Path) -> Collection[str] | None:
    """
    The columns that a plan reads from this folder; None if the plan does not say.
    """
    found = None
    for scan in _SCAN.finditer(plan):
        if f"[file:{folder}]" not in scan["facts"]:
            continue
        output = _OUTPUT.search(scan["facts"])
        names = _NAME.findall(output["names"]) if output else []
        if output is None or len(names) != int(output["count"] or 0):
            return None
        found = {*(found or ()), *names}
    return found
