"""
DataFrames of the records in an archive's files, or in a log.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import PurePath

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.gap_reasons import GapReasons
from kgateway.spark.archive.manifest import File
from kgateway.spark.archive.parquet import COLUMNS, SCHEMA, rows_of
from kgateway.spark.archive.task import records
from kgateway.spark.errors import Unreadable
from kgateway.spark.logs.offset_range import OffsetRange
from kgateway.spark.query import LogLocation

_PATTERN = re.compile(r"([\\*?\[\]{}])")  # what Spark would take for a glob in a path


def path_of(folder: Folder, file: File) -> PurePath:
    """
    The path of a file; Unreadable if it is missing.
    """
    try:
        return folder.find(file.name)
    except FileNotFoundError as error:
        raise Unreadable(f"{error.filename} is missing: run `kgateway spark verify`") from None


def archive_frame(
    spark: SparkSession, folder: Folder, paths: Sequence[PurePath], columns: Sequence[str] = COLUMNS
) -> DataFrame:
    """
    The records in these files of an archive. Spark itself reads only files of this machine.
    """
    if folder.is_here:
        return file_frame(spark, paths, columns)
    store, wanted = folder.store, pa.schema([SCHEMA.field(name) for name in columns])

    def read(number: int) -> Iterator[pa.RecordBatch]:
        return rows_of(store, paths[number], columns)

    return _made(spark, len(paths), read, wanted)


def file_frame(spark: SparkSession, paths: Iterable[PurePath], columns: Sequence[str] = COLUMNS) -> DataFrame:
    """
    The records in local files or folders.
    """
    wanted = from_arrow_schema(pa.schema([SCHEMA.field(name) for name in columns]))
    names = ["file:" + _PATTERN.sub(r"\\\1", str(path)) for path in paths]
    return spark.read.schema(wanted).parquet(*names) if names else spark.createDataFrame([], wanted)


def log_frame(spark: SparkSession, location: LogLocation, ranges: Sequence[OffsetRange], *, may_go: bool) -> DataFrame:
    """
    The records of a log, one task a range. With `may_go`, records may vanish meanwhile; otherwise that is an error.
    """
    return _made(spark, len(ranges), lambda number: _read(location, ranges[number], may_go=may_go), SCHEMA)


def _made(
    spark: SparkSession, tasks: int, read: Callable[[int], Iterator[pa.RecordBatch]], schema: pa.Schema
) -> DataFrame:
    wanted = from_arrow_schema(schema)
    if not tasks:
        return spark.createDataFrame([], wanted)

    def run(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column("id").to_pylist():
                yield from read(number)

    return spark.range(0, tasks, 1, tasks).mapInArrow(run, wanted)


def _read(location: LogLocation, of: OffsetRange, *, may_go: bool) -> Iterator[pa.RecordBatch]:
    seen = GapReasons()
    with closing(location.open(planning=False)) as logs:
        yield from records(logs, of, seen)
    if seen.gone and not may_go:
        raise Unreadable(f"{of.partition} has lost offset {seen.gone.offset} and later ones while they were read")
