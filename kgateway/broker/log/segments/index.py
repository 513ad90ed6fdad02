"""
The two sparse indexes of a segment, as Kafka writes them: one entry for every few thousand bytes of batches.

    .index       4  the last offset of a batch, counted from the segment's base
                 4  where in the file the batch begins

    .timeindex   8  the largest timestamp so far
                 4  the last offset of the batch that has it, counted from the segment's base

Both fields grow from entry to entry. In memory an index has the bytes of its file: it is read when it is first needed,
saved by appending what the file lacks, and unloaded when memory is wanted. An index only saves time: if it is missing
or damaged, it is rebuilt from the batches.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path
from struct import Struct

from kgateway.broker.log.files.disk import Disk, File

OFFSETS = Struct(">ii")
TIMES = Struct(">qi")
FIRST, SECOND = 0, 1  # field of an entry
_LOOKED_AT_ONCE = 4096


class Index:
    """
    Entries of two growing numbers.
    """

    __slots__ = ("_data", "_entry", "is_saved", "saved_bytes")

    def __init__(self, entry: Struct, data: bytes = b"") -> None:
        self._entry = entry
        self._data = bytearray(data[: len(data) - len(data) % entry.size])
        self.saved_bytes = len(self._data)  # that are in the file
        self.is_saved = bool(self._data)  # whether the file has these bytes and no others

    def __len__(self) -> int:
        return len(self._data) // self._entry.size

    def append(self, first: int, second: int) -> None:
        self._data += self._entry.pack(first, second)
        self.is_saved = False

    def entry(self, number: int) -> tuple[int, int]:
        """
        The entry of this number; -1 is the last.
        """
        size = self._entry.size
        first, second = self._entry.unpack_from(self._data, (number % len(self)) * size)
        return first, second

    def at_most(self, field: int, value: int) -> tuple[int, int]:
        """
        The last entry whose field is at most the value; zeros if there is none.
        """
        unpack, data, size = self._entry.unpack_from, self._data, self._entry.size
        number = bisect_right(range(len(self)), value, key=lambda n: unpack(data, n * size)[field])
        return self.entry(number - 1) if number else (0, 0)

    def at_least(self, field: int, value: int) -> tuple[int, int] | None:
        """
        The first entry whose field is at least the value; `None` if there is none.
        """
        number = self._first_from(field, value)
        return self.entry(number) if number < len(self) else None

    def _first_from(self, field: int, value: int) -> int:
        unpack, data, size = self._entry.unpack_from, self._data, self._entry.size
        return bisect_left(range(len(self)), value, key=lambda n: unpack(data, n * size)[field])

    def unsaved(self) -> bytes:
        return bytes(self._data[self.saved_bytes :])

    def cut(self, field: int, value: int) -> None:
        """
        Drop the entries whose field is at least the value.
        """
        del self._data[self._first_from(field, value) * self._entry.size :]
        if len(self._data) < self.saved_bytes:
            self.saved_bytes, self.is_saved = len(self._data), False

    def check_order(self) -> Iterator[bool]:
        """
        Yield, part by part, whether both fields grow from entry to entry.
        """
        size, last = self._entry.size, (0, -1)
        for start in range(0, len(self._data), _LOOKED_AT_ONCE * size):
            rows = [last, *self._entry.iter_unpack(self._data[start : start + _LOOKED_AT_ONCE * size])]
            yield all(a <= c and b < d for (a, b), (c, d) in pairwise(rows))
            last = rows[-1]


INDEX, TIME_INDEX = ".index", ".timeindex"


class SegmentIndexes:
    __slots__ = ("_disk", "_log_path", "_offsets", "_times")

    def __init__(self, disk: Disk, log_path: Path) -> None:
        self._disk = disk
        self._log_path = log_path  # of the segment's file, which they index
        self._offsets: Index | None = Index(OFFSETS)
        self._times: Index | None = Index(TIMES)

    @property
    def offsets(self) -> Index:
        index = self._offsets  # read once: threads use it while it is unloaded
        if index is None:
            index = self._offsets = self._read(OFFSETS, INDEX)
        return index

    @property
    def times(self) -> Index:
        index = self._times
        if index is None:
            index = self._times = self._read(TIMES, TIME_INDEX)
        return index

    @property
    def is_loaded(self) -> bool:
        return self._offsets is not None

    @property
    def last_time(self) -> tuple[int, int] | None:
        """
        The last entry of the time index, read alone: a search by timestamp asks every segment for it.
        """
        index = self._times
        if index is None:
            with closing(self._disk.open(self._log_path.with_suffix(TIME_INDEX))) as file:
                index = Index(TIMES, file.read(max(file.size - TIMES.size, 0), TIMES.size))
        return index.entry(-1) if len(index) else None

    def check(self) -> Iterator[bool]:
        """
        Yield, part by part, whether both are sound.
        """
        yield from self.offsets.check_order()
        yield from self.times.check_order()

    def clear(self) -> None:
        self._offsets, self._times = Index(OFFSETS), Index(TIMES)

    def forget(self) -> None:
        """
        Drop what is in memory: the files are right.
        """
        self._offsets = self._times = None

    def unload(self) -> None:
        if self._offsets and self._offsets.is_saved:
            self._offsets = None
        if self._times and self._times.is_saved:
            self._times = None

    def save(self) -> None:
        """
        Append to the files what they lack.
        """
        rows = ((self._offsets, INDEX), (self._times, TIME_INDEX))
        due = [(index, suffix) for index, suffix in rows if index is not None and not index.is_saved]
        with ExitStack() as stack:
            # The offset index is created first, because Kafka's tools read no time index without it; the time index is
            # written first: it reaches as far as the offset index, wherever a crash or a full disk intervenes.
            files = [(index, stack.enter_context(closing(self._file(suffix)))) for index, suffix in due]
            for index, file in reversed(files):
                _save(index, file)

    def _file(self, suffix: str) -> File:
        return self._disk.open(self._log_path.with_suffix(suffix), create=True)

    def _read(self, entry: Struct, suffix: str) -> Index:
        return Index(entry, self._disk.read(self._log_path.with_suffix(suffix)))


def _save(index: Index, file: File) -> None:
    if file.size != index.saved_bytes:
        file.truncate(index.saved_bytes)
    missing = index.unsaved()
    file.append([missing])
    index.saved_bytes += len(missing)
    index.is_saved = True
