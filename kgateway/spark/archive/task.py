"""
The tasks of an archive: a range of offsets becomes files, one after the other, and small files become larger ones, for
a job that runs on writes one for each partition in each round.

A file ends when it has enough bytes. Memory is bounded by the size of a row group, whatever the range.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from kgateway.spark.archive.checksums import Checksum
from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.gap_reasons import GapReasons, offsets_in, watched_windows
from kgateway.spark.archive.manifest import File, Gap, Manifest, tile_of_name
from kgateway.spark.archive.parquet import COLUMNS, OutputFile, Target, file_of, rows_of
from kgateway.spark.errors import DataLost, Unreadable
from kgateway.spark.logs.interface import Logs
from kgateway.spark.logs.offset_range import OffsetRange
from kgateway.spark.query import LogLocation
from kgateway.spark.readers.range_reader import ReadSpec, read_range
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import KafkaError, Malformed

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_TASKS_A_CORE = 4  # that Spark gets at once
MANY = 16  # so many small neighbours are merged even if the result is small
_SUMMED = ("markers", "aborted", "removed")


@dataclass(frozen=True, slots=True)
class ArchiveTask:
    location: LogLocation
    target: Target
    of: OffsetRange

    def run(self) -> list[File | Gap]:
        with closing(self.location.open(planning=False)) as logs:
            return list(self._tiles(logs))

    def _tiles(self, logs: Logs) -> Iterator[File | Gap]:
        position = self.of.start
        while position < self.of.end:
            found = self._staged(position)
            tiles = [found] if found else self._written(logs, OffsetRange(self.of.partition, position, self.of.end))
            for tile in tiles:
                yield tile
                position = tile.last + 1

    def _staged(self, position: int) -> File | None:
        """
        A file that a killed job has written, if it begins at this position and lies in the range.
        """
        folder = self.target.folder
        for name in folder.staged_names():
            tile = tile_of_name(self.target.identity.topic, name)
            if tile and (tile.partition, tile.first) == (self.of.partition.index, position) and tile.last < self.of.end:
                return file_of(folder.store, folder.staged / name)
        return None

    def _written(self, logs: Logs, left: OffsetRange) -> Iterator[File | Gap]:
        """
        Write one file; a gap may follow it.
        """
        seen = GapReasons()
        output = OutputFile(self.target, left.partition.index, left.start)
        try:
            last = self._filled(output, records(logs, left, seen), left)
            end = min(last, seen.gone.offset - 1) if seen.gone else last
            if end >= left.start:
                markers, aborted = (offsets_in(spans, left.start, end) for spans in (seen.markers, seen.aborted))
                yield output.end(end, markers, aborted)
        finally:
            output.discard()
        if seen.gone:
            behind = min(seen.gone.extent.start, left.end) - 1
            yield Gap(partition=left.partition.index, first=seen.gone.offset, last=behind)

    def _filled(self, output: OutputFile, rows: Iterator[pa.RecordBatch], left: OffsetRange) -> int:
        """
        Fill the file; returns the last offset that it covers.
        """
        for batch in rows:
            output.add(batch)
            if output.checksum.bytes >= self.target.file_bytes:
                return int(batch.column("offset")[-1].as_py())
        return left.end - 1


def records(logs: Logs, of: OffsetRange, seen: GapReasons) -> Iterator[pa.RecordBatch]:
    """
    The records of a range. They end early where the log has lost the next ones, which is noted; a log that ends too
    early is an error.
    """
    try:
        yield from read_range(partial(watched_windows, logs, seen), of, ReadSpec(COLUMNS))
    except DataLost:
        if seen.gone is None:
            raise log_ended(of.partition, of.end) from None
        if seen.gone.offset >= seen.gone.extent.end:
            raise log_ended(of.partition, seen.gone.offset) from None


def log_ended(partition: TopicPartition, offset: int) -> Unreadable:
    return Unreadable(
        f"{partition} ends before offset {offset}, which existed before: the topic was recreated, or has lost its end"
    )


class SparkTask(Protocol[T_co]):
    """
    A task, which is a picklable value, as is its result.
    """

    def run(self) -> T_co: ...


def run_all(spark: Any, tasks: Sequence[SparkTask[T]]) -> list[T]:
    """
    Run tasks in Spark; returns their results in order, and raises Unreadable with the words of one that failed.
    """
    if not tasks:
        return []
    found = spark.sparkContext.parallelize(tasks, len(tasks)).map(_result_or_failure).collect()
    for _, failure in found:
        if failure is not None:
            raise Unreadable(failure)
    return [result for result, _ in found]


def chunks(spark: Any, items: Sequence[T]) -> Iterator[Sequence[T]]:
    """
    The items, as many at a time as Spark gets tasks at once.
    """
    size = int(spark.sparkContext.defaultParallelism) * _TASKS_A_CORE
    for at in range(0, len(items), size):
        yield items[at : at + size]


def _result_or_failure(task: SparkTask[T]) -> tuple[T | None, str | None]:
    """
    Return a failure in place of raising it: the task has been patient, and Spark should not try it again.
    """
    try:
        return task.run(), None
    except (DataLost, KafkaError, Malformed, OSError, Unreadable) as error:
        return None, str(error)


@dataclass(frozen=True, slots=True)
class MergeTask:
    target: Target
    files: tuple[File, ...]

    def run(self) -> File:
        output = OutputFile(self.target, self.files[0].partition, self.files[0].first)
        try:
            for file in self.files:
                for rows in rows_as_written(self.target.folder, file):
                    output.add(rows)
            summed = {name: sum(getattr(file, name) for file in self.files) for name in _SUMMED}
            return output.end(self.files[-1].last, **summed)
        finally:
            output.discard()


def rows_as_written(folder: Folder, file: File) -> Iterator[pa.RecordBatch]:
    """
    The records of a file; Unreadable at the end where they are not those that were written to it.
    """
    path, checksum = folder.find(file.name), Checksum()
    try:
        for rows in rows_of(folder.store, path):
            checksum.add(rows)
            yield rows
    except Unreadable as error:
        raise Unreadable(f"{path}: {error}") from error
    if checksum.text != file.checksum:
        raise Unreadable(f"{path} does not have the records that were written to it: run `kgateway spark verify`")


def mergeable(manifest: Manifest, file_bytes: int) -> list[list[File]]:
    groups = []
    for partition in manifest.ends:
        for run in _small_runs(manifest, partition, file_bytes):
            groups += _groups(run, file_bytes)
    return groups


def _small_runs(manifest: Manifest, partition: int, file_bytes: int) -> list[list[File]]:
    """
    Neighbouring files without gaps between them, each smaller than half the target size.
    """
    runs: list[list[File]] = [[]]
    for tile in manifest.of(partition):
        if isinstance(tile, File) and tile.raw_bytes < file_bytes // 2:
            runs[-1].append(tile)
        else:
            runs.append([])
    return runs


def _groups(run: Sequence[File], file_bytes: int) -> list[list[File]]:
    groups: list[list[File]] = [[]]
    for file in run:
        groups[-1].append(file)
        if sum(one.raw_bytes for one in groups[-1]) >= file_bytes:
            groups.append([])
    return [*groups[:-1], *([groups[-1]] if len(groups[-1]) >= MANY else [])]
