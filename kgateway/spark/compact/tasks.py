"""
The tasks that compact an archive. Spark finds the offsets to remove and writes them into files beside the archive;
tasks read these files and write the archive's files again without those records.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.frames import path_of
from kgateway.spark.archive.manifest import SUFFIX, File
from kgateway.spark.archive.parquet import ChecksumSink, OutputFile, Target, crc_of, first_line
from kgateway.spark.archive.store import Store
from kgateway.spark.archive.task import rows_as_written
from kgateway.spark.decoders.columns import TYPES
from kgateway.spark.errors import Unreadable

_SCHEMA = pa.schema([pa.field("partition", pa.int32()), pa.field("offset", pa.int64())])


def write_offsets(records: DataFrame, store: Store, folder: PurePath) -> tuple[PurePath, ...]:
    """
    The files that list these records.
    """

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for name in _written(batches, store, folder):
            yield pa.RecordBatch.from_pydict({"name": [name]})

    ordered = records.select(*_SCHEMA.names).orderBy(*_SCHEMA.names)
    return tuple(folder / row["name"] for row in ordered.mapInArrow(write, "name string").collect())


def read_offsets(file: File, store: Store, going: Sequence[PurePath]) -> np.ndarray:
    """
    The listed offsets of one file of the archive.
    """
    partition, offset = ds.field("partition"), ds.field("offset")
    mine = (partition == file.partition) & (offset >= file.first) & (offset <= file.last)
    found = [np.empty(0, np.int64)]
    for path in going:
        with store.open(path) as listed:
            found.append(pq.read_table(listed, columns=["offset"], filters=mine)["offset"].to_numpy())
    return np.concatenate(found)


def _written(batches: Iterable[pa.RecordBatch], store: Store, folder: PurePath) -> Iterator[str]:
    writer, making, name = None, store.make(folder), f"{uuid.uuid4().hex}{SUFFIX}"
    try:
        for batch in batches:
            writer = writer or pq.ParquetWriter(pa.PythonFile(ChecksumSink(making), "w"), _SCHEMA)
            writer.write_batch(batch.cast(_SCHEMA))
        if writer:
            writer.close()
            making.finish(name)
            yield name
    finally:
        making.discard()


@dataclass(frozen=True, slots=True)
class ScanTask:
    """
    Verifies one file, and finds its first record that is not old.
    """

    folder: Folder
    file: File
    before_ms: int | None  # None: all records are old

    def run(self) -> int:
        """
        The offset of that record, or the one behind the file. Unreadable where the file was changed: a compaction based
        on it might remove records that exist nowhere else.
        """
        path = path_of(self.folder, self.file)
        if crc_of(self.folder.store, path) != self.file.crc:
            raise Unreadable(f"{path} was changed since it was written: run `kgateway spark verify`")
        first = None if self.before_ms is None else _first_since(self.folder.store, path, self.before_ms)
        return self.file.last + 1 if first is None else first


def _first_since(store: Store, path: PurePath, since_ms: int) -> int | None:
    since = pa.scalar(since_ms * 1_000, TYPES["timestamp"])
    try:
        with store.open(path) as bytes_of, pq.ParquetFile(bytes_of) as file:
            for number in range(file.num_row_groups):
                rows = file.read_row_group(number, columns=["offset", "timestamp"], use_threads=False)
                times = rows["timestamp"].cast(TYPES["timestamp"])
                place = pc.index(pc.fill_null(pc.greater_equal(times, since), fill_value=True), value=True).as_py()
                if place >= 0:
                    return int(rows["offset"][place].as_py())
    except (pa.ArrowException, KeyError) as error:
        raise Unreadable(f"{path} cannot be read: {first_line(error)}") from None
    return None


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """
    Rewrites one file without the listed records.
    """

    target: Target
    file: File
    going: tuple[PurePath, ...]

    def run(self) -> File | None:
        """
        The new file, which covers the same offsets; None where nothing is to be removed.
        """
        going = read_offsets(self.file, self.target.folder.store, self.going)
        if not len(going):
            return None
        output = OutputFile(self.target, self.file.partition, self.file.first)
        try:
            for rows in rows_as_written(self.target.folder, self.file):
                goes = np.isin(rows.column("offset").to_numpy(), going, assume_unique=True)
                output.add(rows.filter(pa.array(~goes)))
            removed = self.file.removed + self.file.count - output.checksum.count
            return output.end(self.file.last, self.file.markers, self.file.aborted, removed)
        finally:
            output.discard()
