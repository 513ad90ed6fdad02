"""
The transactions of a partition: which are open, and which were aborted, so that consumers with read_committed leave
their records out.

Everything before the last stable offset is decided, and will not change. That is the first offset of the first
transaction that is open, or has ended with a marker that is not committed yet.

Aborted transactions are kept beside the segment with the marker that ended them, in Kafka's form:

    00000000000000000000.txnindex    2  version, 0
                                     8  the producer
                                     8  the first offset of the transaction
                                     8  the last, that of the marker
                                     8  the last stable offset at that time

In memory they are four columns of numbers, thirty-two bytes a transaction, in the order of their markers.
"""

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from struct import Struct
from typing import NamedTuple

ABORTED_INDEX = ".txnindex"
_ENTRY = Struct(">hqqqq")
_VERSION = 0
_ANY = (1 << 63) - 1


class AbortedTransaction(NamedTuple):
    """
    A transaction whose records do not count: those of its producer between these offsets.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable: int  # once the marker was written, nothing before this offset was open


class AbortedTransactions:
    __slots__ = ("_firsts", "_lasts", "_producers", "_stables")

    def __init__(self, entries: Iterable[AbortedTransaction] = ()) -> None:
        self._producers, self._firsts, self._lasts, self._stables = (array("q") for _ in range(4))
        for entry in entries:
            self.add(entry)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbortedTransactions) and self._columns == other._columns

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __len__(self) -> int:
        return len(self._lasts)

    def add(self, entry: AbortedTransaction) -> None:
        for column, value in zip(self._columns, entry, strict=True):
            column.append(value)

    def any_from(self, start: int) -> bool:
        """
        Whether any transaction has offsets from this one on.
        """
        return bool(self._lasts) and self._lasts[-1] >= start

    def reaching(self, start: int, end: int) -> list[AbortedTransaction]:
        """
        The transactions that have offsets between the two.
        """
        found = list[AbortedTransaction]()
        for number in range(bisect_left(self._lasts, start), len(self)):
            if self._firsts[number] < end:
                found.append(self._entry(number))
            if self._stables[number] >= end:
                break  # everything that began before the end had ended by then
        return found

    def ended_between(self, start: int, end: int) -> list[AbortedTransaction]:
        """
        The transactions whose markers are between the two offsets.
        """
        return [self._entry(number) for number in range(*self._indexes(start, end))]

    def replace(self, start: int, end: int, entries: Sequence[AbortedTransaction]) -> None:
        """
        Replace the transactions whose markers are between the two offsets.
        """
        within = slice(*self._indexes(start, end))
        for column, values in zip(self._columns, zip(*entries, strict=True) if entries else ((),) * 4, strict=True):
            column[within] = array("q", values)

    def begin_at(self, offset: int) -> None:
        """
        Drop the transactions that ended before this offset.
        """
        self.replace(0, offset, ())

    @property
    def _columns(self) -> tuple["array[int]", ...]:
        return self._producers, self._firsts, self._lasts, self._stables

    def _indexes(self, start: int, end: int) -> tuple[int, int]:
        return bisect_left(self._lasts, start), bisect_left(self._lasts, end)

    def _entry(self, number: int) -> AbortedTransaction:
        return AbortedTransaction(*(column[number] for column in self._columns))


def encode_aborted(entries: Iterable[AbortedTransaction]) -> bytes:
    return b"".join(_ENTRY.pack(_VERSION, *entry) for entry in entries)


def decode_aborted(data: bytes) -> Iterator[AbortedTransaction]:
    """
    Decode a file; raises ValueError if it is none. An entry that is cut off at the end does not count.
    """
    for version, *numbers in _ENTRY.iter_unpack(data[: len(data) - len(data) % _ENTRY.size]):
        if version != _VERSION:
            raise ValueError(f"an entry has version {version}, not {_VERSION}")
        yield AbortedTransaction(*numbers)


def checked_aborted(data: bytes, base_offset: int, end: int = _ANY) -> list[AbortedTransaction] | None:
    """
    Decode the file of the segment with these offsets; `None` if it cannot be what was written.
    """
    if len(data) % _ENTRY.size:
        return None
    try:
        entries = list(decode_aborted(data))
    except ValueError:
        return None
    ends = [base_offset - 1, *(entry.last_offset for entry in entries), end]
    grows = all(before < after for before, after in pairwise(ends))
    return entries if grows and all(map(_is_possible, entries)) else None


def _is_possible(entry: AbortedTransaction) -> bool:
    began, ended = 0 <= entry.first_offset < entry.last_offset, entry.last_offset + 1
    return began and entry.producer_id >= 0 and 0 <= entry.last_stable <= ended


@dataclass(slots=True)
class PartitionTransactions:
    open: dict[int, int] = field(default_factory=dict)  # producer id -> first offset of its transaction; sorted by that
    aborted: AbortedTransactions = field(default_factory=AbortedTransactions)
    # Transactions whose markers are not committed: the first offset, and that of the marker.
    _uncommitted: deque[tuple[int, int]] = field(default_factory=deque, compare=False)

    @property
    def any_undecided(self) -> bool:
        """
        Whether a transaction is open, or has ended and its marker is not committed.
        """
        return bool(self.open or self._uncommitted)

    def begin(self, producer_id: int, offset: int) -> None:
        """
        Add a record of a transaction, with this offset.
        """
        self.open.setdefault(producer_id, offset)

    def end(self, producer_id: int, marker_offset: int, *, commits: bool) -> None:
        """
        Add a marker: it ends the transaction of this producer, if one is open here.
        """
        first_offset = self.open.pop(producer_id, None)
        if first_offset is None:
            return
        self._uncommitted.append((first_offset, marker_offset))
        if not commits:
            stable = next(iter(self.open.values()), marker_offset + 1)
            self.aborted.add(AbortedTransaction(producer_id, first_offset, marker_offset, stable))

    def compacted(self, end: int) -> None:
        """
        Compaction has been here before this offset, and touches nothing undecided: transactions that began before have
        ended, even if their markers were removed.
        """
        self.open = {producer_id: began for producer_id, began in self.open.items() if began >= end}

    def drop_committed_markers(self, high_watermark: int) -> None:
        while self._uncommitted and self._uncommitted[0][1] < high_watermark:
            self._uncommitted.popleft()

    def stable(self, log_start: int, high_watermark: int) -> int:
        """
        The last stable offset, at most the high watermark.
        """
        self.drop_committed_markers(high_watermark)
        first = next(iter(self.open.values()), high_watermark)
        if self._uncommitted:
            first = min(first, *(began for began, _ in self._uncommitted))
        return max(log_start, min(first, high_watermark))

    def reopen(self, first_offsets: Iterable[tuple[int, int]]) -> None:
        """
        Load the open transactions of a snapshot: producer ids, and the first offsets of their transactions.
        """
        self.open = dict(sorted(first_offsets, key=lambda entry: entry[1]))
