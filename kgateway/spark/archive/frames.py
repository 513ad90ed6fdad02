"""
Records as frames of Spark: those in files of an archive, and those that a log has.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import PurePath

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.parquet import COLUMNS, SCHEMA, rows_of
from kgateway.spark.archive.task import records
from kgateway.spark.archive.tiles import File
from kgateway.spark.archive.watching import Seen
from kgateway.spark.failures import Unreadable
from kgateway.spark.place import Place
from kgateway.spark.ranges import OffsetRange

_PATTERN = re.compile(r"([\\*?\[\]{}])")  # what Spark would take for a pattern in a path


def path_of(folder: Folder, file: File) -> PurePath:
    """
    Where a file of an archive is. Unreadable where it is gone.
    """
    try:
        return folder.place(file.name)
    except FileNotFoundError as error:
        raise Unreadable(f"{error.filename} is gone: `kgateway spark verify`") from None


def of_archive(
    spark: SparkSession, folder: Folder, paths: Sequence[PurePath], columns: Sequence[str] = COLUMNS
) -> DataFrame:
    """
    The records in these files of an archive. Spark itself reads files of this machine alone.
    """
    if folder.is_here:
        return of_files(spark, paths, columns)
    store, wanted = folder.store, pa.schema([SCHEMA.field(name) for name in columns])

    def read(number: int) -> Iterator[pa.RecordBatch]:
        return rows_of(store, paths[number], columns)

    return _made(spark, len(paths), read, wanted)


def of_files(spark: SparkSession, paths: Iterable[PurePath], columns: Sequence[str] = COLUMNS) -> DataFrame:
    """
    The records in these files of this machine, or in these folders.
    """
    wanted = from_arrow_schema(pa.schema([SCHEMA.field(name) for name in columns]))
    names = ["file:" + _PATTERN.sub(r"\\\1", str(path)) for path in paths]
    return spark.read.schema(wanted).parquet(*names) if names else spark.createDataFrame([], wanted)


def of_log(spark: SparkSession, place: Place, ranges: Sequence[OffsetRange], *, may_go: bool) -> DataFrame:
    """
    The records that a log has there, a task a range. They may go meanwhile, or that is an error.
    """
    return _made(spark, len(ranges), lambda number: _read(place, ranges[number], may_go=may_go), SCHEMA)


def _made(
    spark: SparkSession, tasks: int, read: Callable[[int], Iterator[pa.RecordBatch]], schema: pa.Schema
) -> DataFrame:
    """
    What so many tasks read, each by its number.
    """
    wanted = from_arrow_schema(schema)
    if not tasks:
        return spark.createDataFrame([], wanted)

    def run(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column("id").to_pylist():
                yield from read(number)

    return spark.range(0, tasks, 1, tasks).mapInArrow(run, wanted)


def _read(place: Place, of: OffsetRange, *, may_go: bool) -> Iterator[pa.RecordBatch]:
    seen = Seen()
    with closing(place.open(planning=False)) as logs:
        yield from records(logs, of, seen)
    if seen.gone and not may_go:
        raise Unreadable(f"{of.partition} has lost offset {seen.gone.offset} and later ones while they were read")
