"""
The two sparse indexes of a segment, as Kafka writes them: one entry for every few thousand bytes of batches.

    .index       4  the last offset of a batch, counted from the segment's base
                 4  where in the file the batch begins

    .timeindex   8  the largest timestamp so far
                 4  the last offset of the batch that has it, counted from the segment's base

Both fields grow from entry to entry. In memory an index is what it is in its file; what the file lacks is appended to
it now and then. An index is never needed, only fast: it is made again from the batches where it is missing or damaged.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise

OFFSETS = struct.Struct(">ii")
TIMES = struct.Struct(">qi")
FIRST, SECOND = 0, 1  # field of an entry
_LOOKED_AT_ONCE = 4096


class Index:
    """
    Entries of two growing numbers.
    """

    __slots__ = ("_data", "_entry", "is_saved", "saved")

    def __init__(self, entry: struct.Struct, data: bytes = b"") -> None:
        self._entry = entry
        self._data = bytearray(data[: len(data) - len(data) % entry.size])
        self.saved = len(self._data)  # bytes that the file has
        self.is_saved = bool(self._data)  # whether it has these and no others

    def __len__(self) -> int:
        return len(self._data) // self._entry.size

    def append(self, first: int, second: int) -> None:
        """
        Add an entry behind the others.
        """
        self._data += self._entry.pack(first, second)
        self.is_saved = False

    def entry(self, number: int) -> tuple[int, int]:
        """
        An entry by its number; -1 is the last.
        """
        size = self._entry.size
        first, second = self._entry.unpack_from(self._data, (number % len(self)) * size)
        return first, second

    def at_most(self, field: int, value: int) -> tuple[int, int]:
        """
        The last entry whose field is not larger; zeros where there is none.
        """
        unpack, data, size = self._entry.unpack_from, self._data, self._entry.size
        number = bisect_right(range(len(self)), value, key=lambda n: unpack(data, n * size)[field])
        return self.entry(number - 1) if number else (0, 0)

    def at_least(self, field: int, value: int) -> tuple[int, int] | None:
        """
        The first entry whose field is not smaller; `None` where there is none.
        """
        number = self._first_from(field, value)
        return self.entry(number) if number < len(self) else None

    def _first_from(self, field: int, value: int) -> int:
        unpack, data, size = self._entry.unpack_from, self._data, self._entry.size
        return bisect_left(range(len(self)), value, key=lambda n: unpack(data, n * size)[field])

    def unsaved(self) -> bytes:
        """
        What the file lacks.
        """
        return bytes(self._data[self.saved :])

    def cut(self, field: int, value: int) -> None:
        """
        Drop the entries whose field is this or larger.
        """
        del self._data[self._first_from(field, value) * self._entry.size :]
        if len(self._data) < self.saved:
            self.saved, self.is_saved = len(self._data), False

    def grows(self) -> Iterator[bool]:
        """
        Whether it is what an index can be, part by part.
        """
        size, last = self._entry.size, (0, -1)
        for start in range(0, len(self._data), _LOOKED_AT_ONCE * size):
            rows = [last, *self._entry.iter_unpack(self._data[start : start + _LOOKED_AT_ONCE * size])]
            yield all(a <= c and b < d for (a, b), (c, d) in pairwise(rows))
            last = rows[-1]
