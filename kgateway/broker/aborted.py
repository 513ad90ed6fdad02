"""
The transactions of a log that were aborted: what consumers of committed records are told, so that they leave theirs
out.

On disk they stand beside the segment with the marker that ended them, in Kafka's form:

    00000000000000000000.txnindex    2  version, 0
                                     8  the producer
                                     8  the first offset of the transaction
                                     8  the last, that of the marker
                                     8  the last stable offset then

In memory they are numbers in rows, thirty-two bytes a transaction, in the order of their markers.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from struct import Struct
from typing import NamedTuple

ABORTED_INDEX = ".txnindex"
_ENTRY = Struct(">hqqqq")
_VERSION = 0
_ANY = (1 << 63) - 1


class AbortedTransaction(NamedTuple):
    """
    One of them: whatever its producer wrote between these offsets does not count.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable: int  # before this offset nothing was open any more, once the marker was there


class AbortedTransactions:
    """
    Those of one log.
    """

    __slots__ = ("_firsts", "_lasts", "_producers", "_stables")

    def __init__(self, entries: Iterable[AbortedTransaction] = ()) -> None:
        self._producers, self._firsts, self._lasts, self._stables = (array("q") for _ in range(4))
        for entry in entries:
            self.add(entry)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbortedTransactions) and self._rows == other._rows

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __len__(self) -> int:
        return len(self._lasts)

    def add(self, entry: AbortedTransaction) -> None:
        """
        Its marker comes behind those of all others.
        """
        for row, value in zip(self._rows, entry, strict=True):
            row.append(value)

    def any_from(self, start: int) -> bool:
        """
        Whether one has offsets from this one on.
        """
        return bool(self._lasts) and self._lasts[-1] >= start

    def reaching(self, start: int, end: int) -> list[AbortedTransaction]:
        """
        Those that have offsets from the one on, and before the other.
        """
        found = list[AbortedTransaction]()
        for number in range(bisect_left(self._lasts, start), len(self)):
            if self._firsts[number] < end:
                found.append(self._entry(number))
            if self._stables[number] >= end:
                break  # what began before the end had ended by then
        return found

    def ended_between(self, start: int, end: int) -> list[AbortedTransaction]:
        """
        Those whose markers have these offsets.
        """
        return [self._entry(number) for number in range(*self._place(start, end))]

    def replace(self, start: int, end: int, entries: Sequence[AbortedTransaction]) -> None:
        """
        Of those whose markers have these offsets only these are left.
        """
        place = slice(*self._place(start, end))
        for row, values in zip(self._rows, zip(*entries, strict=True) if entries else ((),) * 4, strict=True):
            row[place] = array("q", values)

    def begin_at(self, offset: int) -> None:
        """
        What ended before this offset is nobody's concern any more.
        """
        self.replace(0, offset, ())

    @property
    def _rows(self) -> tuple["array[int]", ...]:
        return self._producers, self._firsts, self._lasts, self._stables

    def _place(self, start: int, end: int) -> tuple[int, int]:
        return bisect_left(self._lasts, start), bisect_left(self._lasts, end)

    def _entry(self, number: int) -> AbortedTransaction:
        return AbortedTransaction(*(row[number] for row in self._rows))


def written(entries: Iterable[AbortedTransaction]) -> bytes:
    """
    The file of these.
    """
    return b"".join(_ENTRY.pack(_VERSION, *entry) for entry in entries)


def read(data: bytes) -> Iterator[AbortedTransaction]:
    """
    What a file tells of; a ValueError where it is none. An entry that is cut off at the end does not count.
    """
    for version, *numbers in _ENTRY.iter_unpack(data[: len(data) - len(data) % _ENTRY.size]):
        if version != _VERSION:
            raise ValueError(f"an entry has version {version}, not {_VERSION}")
        yield AbortedTransaction(*numbers)


def sound(data: bytes, base_offset: int, end: int = _ANY) -> list[AbortedTransaction] | None:
    """
    What the file of the segment that has these offsets tells; `None` where it cannot be what was written.
    """
    if len(data) % _ENTRY.size:
        return None
    try:
        entries = list(read(data))
    except ValueError:
        return None
    ends = [base_offset - 1, *(one.last_offset for one in entries), end]
    grows = all(one < following for one, following in pairwise(ends))
    return entries if grows and all(map(_can_be, entries)) else None


def _can_be(one: AbortedTransaction) -> bool:
    began, ended = 0 <= one.first_offset < one.last_offset, one.last_offset + 1
    return began and one.producer_id >= 0 and 0 <= one.last_stable <= ended
