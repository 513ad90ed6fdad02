"""
What a task of an archive does: a range of offsets becomes files, one after the other.

A file ends where it has enough bytes. Memory is bounded by what one row group has, whatever the range.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from kgateway.client.offsets import Partition
from kgateway.spark.archive.parquet import COLUMNS, Output, Target, file_of
from kgateway.spark.archive.tiles import File, Gap, tile_of_name
from kgateway.spark.archive.watching import Seen, Watched, counted
from kgateway.spark.failures import DataLost, Unreadable
from kgateway.spark.logs import Logs
from kgateway.spark.place import Place
from kgateway.spark.ranges import OffsetRange
from kgateway.spark.reading import Wanted, read


@dataclass(frozen=True, slots=True)
class Task:
    """
    Which offsets, from where, to where.
    """

    place: Place
    target: Target
    of: OffsetRange

    def run(self) -> list[File | Gap]:
        """
        The tiles that the range has become.
        """
        with closing(self.place.open(planning=False)) as logs:
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
        What a job that was killed has written, if it begins here and lies in the range.
        """
        folder = self.target.folder
        for name in folder.staged_names():
            tile = tile_of_name(self.target.identity.topic, name)
            if tile and (tile.partition, tile.first) == (self.of.partition.index, position) and tile.last < self.of.end:
                return file_of(folder.store, folder.staged / name)
        return None

    def _written(self, logs: Logs, left: OffsetRange) -> Iterator[File | Gap]:
        """
        One file, and the gap behind it, if there is one.
        """
        seen = Seen()
        output = Output(self.target, left.partition.index, left.start)
        try:
            last = self._filled(output, records(logs, left, seen), left)
            end = min(last, seen.gone.offset - 1) if seen.gone else last
            if end >= left.start:
                markers, aborted = (counted(spans, left.start, end) for spans in (seen.markers, seen.aborted))
                yield output.end(end, markers, aborted)
        finally:
            output.give_up()
        if seen.gone:
            behind = min(seen.gone.extent.start, left.end) - 1
            yield Gap(partition=left.partition.index, first=seen.gone.offset, last=behind)

    def _filled(self, output: Output, rows: Iterator[pa.RecordBatch], left: OffsetRange) -> int:
        """
        The last offset that the file is of.
        """
        for batch in rows:
            output.add(batch)
            if output.checksum.bytes >= self.target.file_bytes:
                return int(batch.column("offset")[-1].as_py())
        return left.end - 1


def records(logs: Logs, of: OffsetRange, seen: Seen) -> Iterator[pa.RecordBatch]:
    """
    The records of a range. They end early where the next ones went from the log, which is noted; that the log ends too
    early is an error.
    """
    try:
        yield from read(Watched(logs, seen), of, Wanted(COLUMNS))
    except DataLost:
        if seen.gone is None:
            raise ended(of.partition, of.end) from None
        if seen.gone.offset >= seen.gone.extent.end:
            raise ended(of.partition, seen.gone.offset) from None


def ended(partition: Partition, offset: int) -> Unreadable:
    """
    A log that is shorter than it was.
    """
    return Unreadable(
        f"{partition} ends before offset {offset}, which was there: the topic was made anew since, or has lost its end"
    )
