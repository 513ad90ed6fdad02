"""
The accounting after crashes finds lost, duplicated, changed and moved records.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate

import pytest

from tests.faults.accounting import Accounts, Head, Read
from tests.faults.ledger import Ledger, NotSent, PartitionName, Sent, read, written

PLACE = "orders", 1
IDEMPOTENT, PLAIN = 0, 1
SIZE = 60


def batches(*rows: Sequence[Sent]) -> tuple[list[Head], list[Read]]:
    """
    A partition with these batches; their producer id is that of the first record.
    """
    ends = list(accumulate(map(len, rows)))
    heads = [
        Head(end - len(row), end - 1, row[0].producer * 10 + row[0].life) for end, row in zip(ends, rows, strict=True)
    ]
    values = [written(PLACE, sent, SIZE) for row in rows for sent in row]
    return heads, [Read(offset, value) for offset, value in enumerate(values)]


def sent(producer: int, sequences: Iterable[int], life: int = 0) -> list[Sent]:
    return [Sent(producer, life, sequence) for sequence in sequences]


def ledger(*promises: tuple[int, int, int | None]) -> Ledger:
    """
    A ledger with acknowledged records: producer, sequence, offset.
    """
    made = Ledger()
    made.repeating.add(PLAIN)
    for producer, sequence, offset in promises:
        made.promise(PLACE, Sent(producer, 0, sequence), offset)
    return made


def faults(ledger: Ledger, found: tuple[list[Head], list[Read]], place: PartitionName = PLACE) -> list[str]:
    return list(Accounts(ledger).faults(place, *found))


def test_a_promise_without_an_offset() -> None:
    """
    The record is at any offset, or it is lost.
    """
    promised = ledger((0, 0, None), (0, 1, 1))
    assert not faults(promised, batches(sent(0, [0, 1])))
    (fault,) = faults(ledger((0, 0, None)), batches(sent(1, [0])))
    assert fault == "Stream(place=('orders', 1), producer=0): record 0 was acknowledged, and is lost"


def test_a_sound_partition_has_no_faults() -> None:
    """
    Each acknowledged record is at its offset; unacknowledged ones may be present or absent.
    """
    promised = ledger((0, 0, 0), (0, 1, 1), (1, 0, 2), (0, 2, 3))
    assert not faults(promised, batches(sent(0, [0, 1]), sent(1, [0]), sent(0, [2, 3])))
    assert not promised.faults


def test_records_name_their_sender_and_partition() -> None:
    value = written(PLACE, Sent(7, 8, 9), 100)
    assert len(value) == 100
    assert read(PLACE, value) == (7, 8, 9)
    for place, changed in [
        (("orders", 2), value),
        (("orderz", 1), value),
        *((PLACE, value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]) for at in range(len(value))),
        (PLACE, value[:-1]),
        (PLACE, b""),
    ]:
        with pytest.raises(NotSent):
            read(place, changed)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_acknowledged_records_lost_at_the_end_are_faults(count: int) -> None:
    """
    Each lost record is named.
    """
    promised = ledger(*((0, sequence, sequence) for sequence in range(3)))
    found = batches(sent(0, range(count))) if count else batches()
    assert faults(promised, found) == [
        f"Stream(place=('orders', 1), producer=0): record {sequence} was acknowledged at offset {sequence}, and is lost"
        for sequence in range(count, 3)
    ]


def test_a_record_lost_in_the_middle_is_a_fault() -> None:
    """
    It is found although nobody was told that it was written.
    """
    assert faults(ledger(), batches(sent(0, [0, 2]))) == [
        "('orders', 1): Sent(producer=0, life=0, sequence=2) follows 0, at offset 1"
    ]


def test_holes_between_offsets_are_faults() -> None:
    """
    A hole is an offset that no batch has or that a consumer does not receive.
    """
    heads, records = batches(sent(0, [0, 1]), sent(0, [2]))
    moved = [Head(0, 0, 0), Head(2, 2, 0)]
    assert "a batch 2 to 2 follows offset 0" in faults(ledger(), (moved, records))[0]
    assert "a consumer gets offset 2 behind 0" in faults(ledger(), (heads, [records[0], records[2]]))[0]
    assert "gets nothing behind offset 1" in faults(ledger(), (heads, records[:2]))[0]
    assert "no batch has offset 2" in faults(ledger(), (heads[:1], records))[0]


def test_a_duplicate_of_an_idempotent_producer_is_a_fault() -> None:
    """
    Acknowledgement and offsets do not matter.
    """
    found = batches(sent(0, [0]), sent(0, [1, 2]), sent(0, [1, 2]), sent(0, [3]))
    again = [f"Sent(producer=0, life=0, sequence={n}) is there again, at offset {n + 2}" for n in (1, 2)]
    assert faults(ledger(), found) == [f"('orders', 1): {each}" for each in again]
    assert len(faults(ledger((0, 1, 1)), found)) == 3
    assert len(faults(ledger((0, 1, 3)), found)) == 2


def test_an_unacknowledged_batch_may_be_repeated() -> None:
    """
    A producer without idempotence may repeat its last batch, with more or fewer records, and continue behind it.
    """
    for rows in (
        [[0], [1, 2], [1, 2], [1, 2], [3]],
        [[0], [1, 2], [1, 2, 3], [1, 2], [3]],
        [[0], [1, 2, 3, 4], [1, 2], [3]],
    ):
        found = batches(*(sent(1, row) for row in rows))
        at = sum(map(len, rows)) - 2
        assert not faults(ledger((1, 2, at)), found), rows
        assert faults(ledger((1, 2, 2)), found), rows


def test_a_repeat_of_more_than_the_last_batch_is_a_fault() -> None:
    """
    A retry begins where the last batch did.
    """
    for rows in ([[0], [1, 2], [0]], [[0], [1, 2], [2]], [[0, 1, 1]], [[0], [1], [1], [0]]):
        assert faults(ledger(), batches(*(sent(1, row) for row in rows))), rows


def test_a_repeat_of_an_acknowledged_batch_is_a_fault() -> None:
    """
    The client does not resend an acknowledged record, so somebody else wrote it twice.
    """
    found = batches(sent(1, [0]), sent(1, [0]))
    assert not faults(ledger((1, 0, 1)), found)
    assert "was acknowledged at offset 0, and is at 1" in faults(ledger((1, 0, 0)), found)[0]


@pytest.mark.parametrize("producer", [IDEMPOTENT, PLAIN])
def test_reordered_records_are_a_fault(producer: int) -> None:
    """
    Records may change places with their batches or within one.
    """
    assert faults(ledger(), batches(sent(producer, [0]), sent(producer, [2]), sent(producer, [1])))
    assert faults(ledger(), batches(sent(producer, [0, 2, 1, 3])))


def test_changed_bytes_are_a_fault() -> None:
    heads, records = batches(sent(0, [0, 1]))
    records[1] = Read(1, records[1].value[:20] + b"!" + records[1].value[21:])
    found = faults(ledger((0, 0, 0), (0, 1, 1)), (heads, records))
    assert [fault.partition("changed")[1] for fault in found] == ["changed", ""]
    assert "is lost" in found[1]


def test_a_record_in_another_partition_is_a_fault() -> None:
    assert "was changed" in faults(ledger(), batches(sent(0, [0])), ("orders", 2))[0]


def test_a_producer_id_assigned_twice_is_a_fault() -> None:
    heads, records = batches(sent(0, [0]), sent(0, [1], life=1))
    assert not faults(ledger(), (heads, records))
    same = [head._replace(producer_id=5) for head in heads]
    assert "which is that of producer and life (0, 0)" in faults(ledger(), (same, records))[0]


def test_missing_acknowledgements_are_named() -> None:
    waiting = Ledger()
    first = waiting.next(PLACE, 0, 0)
    second = waiting.next(PLACE, 0, 0)
    assert (first.sequence, second.sequence) == (0, 1)
    waiting.promise(PLACE, first, 0)
    assert waiting.missing() == ["Stream(place=('orders', 1), producer=0): 2 records were sent, 1 acknowledged"]
    waiting.promise(PLACE, second, 1)
    assert not waiting.missing()
    assert waiting.promises == 2
