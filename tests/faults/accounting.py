"""
Accounts for every promised record by comparing what is in a partition with the ledger.

It is pure: it receives what was read, and describes what is wrong. It demands of a partition

    offsets         0, 1, 2, ... without a hole, in records and in the batch headers
    records         as they were sent
    order           0, 1, 2, ... of each producer; one without idempotence may repeat its last batch, because it
                    sends one at a time, and does not know its outcome when the connection ends
    promises        each record at its acknowledged offset, which may be that of the last repeat only
    producer ids    each assigned once
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tests.faults.ledger import Ledger, NotSent, PartitionName, Sent, Stream, read


class Read(NamedTuple):
    """
    A record as a consumer received it.
    """

    offset: int
    value: bytes


class Head(NamedTuple):
    """
    Fields of a batch header.
    """

    base_offset: int
    last_offset: int
    producer_id: int


class AccountRow:
    """
    The records of one producer in a partition.
    """

    def __init__(self, may_repeat: bool) -> None:
        self.offsets: list[int] = []  # by sequence number; a repeated one counts where it is last
        self.repeats = 0
        self._may_repeat = may_repeat
        self._next = 0
        self._batch: tuple[int, int] = (-1, 0)  # base offset and first sequence number of the last batch

    def add(self, sequence: int, offset: int, base_offset: int) -> str | None:
        """
        Add the next record and return what is wrong with it.
        """
        last_base_offset, first_of_last = self._batch
        begins = base_offset != last_base_offset
        if begins:
            self._batch = base_offset, sequence
        expected, self._next = self._next, sequence + 1
        if sequence < len(self.offsets):
            self.offsets[sequence] = offset
            self.repeats += 1
            begins_again = begins and sequence == first_of_last
            if self._may_repeat and (begins_again or sequence == expected):
                return None
            return "is there again"
        known = len(self.offsets)
        self.offsets += [-1] * (sequence - known) + [offset]
        return f"follows {expected - 1}" if sequence != expected else None


class Accounts:
    def __init__(self, ledger: Ledger) -> None:
        self.records = 0
        self.repeats = 0
        self._ledger = ledger
        self._owners: dict[int, tuple[int, int]] = {}

    def faults(self, place: PartitionName, heads: Iterable[Head], records: Iterable[Read]) -> Iterator[str]:
        """
        Report what is wrong with a partition.
        """
        heads = list(heads)
        yield from _holes(place, heads)
        rows: dict[int, AccountRow] = {}
        following, batches = 0, iter(heads)
        head: Head | None = None
        for offset, value in records:
            if offset != following:
                yield f"{place}: a consumer gets offset {offset} behind {following - 1}"
            following = offset + 1
            while head is None or head.last_offset < offset:
                head = next(batches, None)
                if head is None:
                    yield f"{place}: no batch has offset {offset}"
                    return
            self.records += 1
            try:
                sent = read(place, value)
            except NotSent as error:
                yield f"{place}: the record at offset {offset} was changed: {error}"
                continue
            row = rows.setdefault(sent.producer, AccountRow(sent.producer in self._ledger.repeating))
            fault = row.add(sent.sequence, offset, head.base_offset)
            if fault:
                yield f"{place}: {sent} {fault}, at offset {offset}"
            yield from self._wrong_id(place, sent, head)
        end = heads[-1].last_offset + 1 if heads else 0
        if following != end:
            yield f"{place}: a consumer gets nothing behind offset {following - 1}, and batches end at {end - 1}"
        self.repeats += sum(row.repeats for row in rows.values())
        yield from self._broken_promises(place, rows)

    def _wrong_id(self, place: PartitionName, sent: Sent, head: Head) -> Iterator[str]:
        if sent.producer in self._ledger.repeating:
            return
        owner = self._owners.setdefault(head.producer_id, (sent.producer, sent.life))
        if owner != (sent.producer, sent.life):
            yield f"{place}: {sent} has producer id {head.producer_id}, which is that of producer and life {owner}"

    def _broken_promises(self, place: PartitionName, rows: Mapping[int, AccountRow]) -> Iterator[str]:
        for stream, promised in self._ledger.acknowledged.items():
            if stream.place != place:
                continue
            row = rows.get(stream.producer)
            for sequence, offset in promised.items():
                found = row.offsets[sequence] if row and sequence < len(row.offsets) else -1
                if found < 0 or offset not in (None, found):
                    at = "" if offset is None else f" at offset {offset}"
                    where = f"at {found}" if found >= 0 else "lost"
                    yield f"{Stream(*stream)}: record {sequence} was acknowledged{at}, and is {where}"


def _holes(place: PartitionName, heads: Iterable[Head]) -> Iterator[str]:
    following = 0
    for head in heads:
        if head.base_offset != following or head.last_offset < head.base_offset:
            yield f"{place}: a batch {head.base_offset} to {head.last_offset} follows offset {following - 1}"
        following = head.last_offset + 1
