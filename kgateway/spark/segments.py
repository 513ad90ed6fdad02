"""
The segments of one partition, read from their files: `kgateway.broker.log` says what is in them.

Nothing is locked, and whoever has the log may write to it and remove from it meanwhile. So nothing is looked at that is
not before the end which is given, and a segment that is gone is either told of, or in another one since a compaction.
"""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import PurePath
from struct import Struct
from typing import NamedTuple

from kgateway.broker.log.found_files import offsets_of
from kgateway.broker.log.index import FIRST, OFFSETS, Index
from kgateway.broker.log.segment import LOG, file_name
from kgateway.broker.log.segment_indexes import INDEX
from kgateway.client.offsets import Extent
from kgateway.records.batch import HEADER_SIZE, Batch, Incomplete, read_batch, read_header
from kgateway.spark.failures import Unreadable
from kgateway.spark.files import Files, OpenFile
from kgateway.spark.logs import Gone
from kgateway.wire.malformed import Malformed

WINDOW_BYTES = 4 << 20
_NO_END = 1 << 63


class Run(NamedTuple):
    """
    Batches in a row, and the offset behind them, before which there is nothing else.
    """

    batches: list[Batch]
    next_offset: int


class Segments:
    """
    Those in one folder.
    """

    def __init__(self, files: Files, folder: PurePath) -> None:
        self.files = files
        self.folder = folder

    def bases(self) -> list[int]:
        """
        The offsets with which they begin.
        """
        return offsets_of(self.files.names(self.folder), LOG)

    def end_offset(self) -> int:
        """
        The offset behind the last batch that is whole.
        """
        end = (self.bases() or [0])[-1]
        for run in self.batches(end, end, _NO_END):
            end = run.next_offset
        return end

    def windows(self, start: int, end: int) -> Iterator[Run]:
        """
        The batches with offsets from the start on, up to the end, some at a time. Gone where the start is not there.
        """
        position, base = start, -1
        while position < end:
            bases = self.bases()
            behind = bisect_right(bases, position)
            if not behind:
                raise Gone(position, Extent(bases[0] if bases else end, end))
            if bases[behind - 1] <= base:  # read to its end already
                if behind == len(bases):
                    return
                behind += 1
            base = bases[behind - 1]
            if base >= end:  # nothing is left of the range
                yield Run([], end)
                return
            position = max(position, base)
            try:
                for run in self.batches(base, position, end):
                    position = run.next_offset
                    yield run
            except FileNotFoundError:
                base = -1  # it went after its name was read

    def batches(self, base: int, start: int, end: int, position: int | None = None) -> Iterator[Run]:
        """
        Those of one segment, from the one on that has the start, or that stands at this position in the file.
        """
        path = self.folder / file_name(base, LOG)
        with closing(self.files.open(path)) as file:
            at = self._near(file, base, start) if position is None else position
            expected = base
            while expected < end:
                data = file.read(at, WINDOW_BYTES)
                if len(data) == WINDOW_BYTES:
                    data = self._with_first(path, file, data, at)
                run, used = _cut(data, at, expected, end, path)
                if run.next_offset == expected:
                    return
                wanted = [batch for batch in run.batches if batch.header.last_offset >= start]
                if wanted or run.next_offset >= end:
                    yield Run(wanted, run.next_offset)
                expected = run.next_offset
                at += used

    def index(self, base: int, suffix: str, entry: Struct) -> Index:
        """
        An index of a segment, without the zeroes behind its entries, which Kafka leaves while it writes to one; empty
        where the segment has none.
        """
        try:
            data = self.files.read(self.folder / file_name(base, suffix))
        except FileNotFoundError:
            data = b""
        used = len(data.rstrip(b"\0"))
        return Index(entry, data[: -(-used // entry.size) * entry.size])

    def _near(self, file: OpenFile, base: int, start: int) -> int:
        """
        Where to begin to look for an offset. An index may be wrong, and is never needed.
        """
        _, position = self.index(base, INDEX, OFFSETS).at_most(FIRST, start - base)
        try:
            header = read_header(file.read(position, HEADER_SIZE))
        except Malformed:
            return 0
        return position if base <= header.base_offset <= start else 0

    def _with_first(self, path: PurePath, file: OpenFile, data: bytes, at: int) -> bytes:
        """
        More of the file where a window is too small for its first batch.
        """
        with _telling(path, at):
            size = read_header(data).size
        return data if size <= len(data) else file.read(at, size)


def _cut(data: bytes, at: int, expected: int, end: int, path: PurePath) -> tuple[Run, int]:
    """
    The whole batches among the bytes, up to the one that reaches the end, and how many bytes they are.
    """
    found, used = list[Batch](), 0
    while used < len(data) and expected < end:
        with _telling(path, at + used):
            try:
                batch = read_batch(data, used)
            except Incomplete:
                break
        header = batch.header
        if header.base_offset >= end:
            expected = end
        elif header.base_offset < expected:
            raise _damaged(path, at + used, f"offset {header.base_offset} stands behind offset {expected - 1}")
        else:
            found.append(batch)
            used += len(batch.data)
            expected = header.last_offset + 1
    return Run(found, expected), used


@contextmanager
def _telling(path: PurePath, at: int) -> Iterator[None]:
    try:
        yield
    except Malformed as error:
        raise _damaged(path, at, error.reason) from error


def _damaged(path: PurePath, at: int, reason: str) -> Unreadable:
    return Unreadable(f"{path} is damaged at byte {at:,}: {reason}")
