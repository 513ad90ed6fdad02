"""
The file with the producer state of a partition.
"""

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.partition.producer_snapshot import encode_snapshot, load_snapshot
from kgateway.broker.partition.producer_state import SEQUENCE_MAX, WINDOW, Producer, ProducerTable, WrittenBatch
from tests.broker.behaviour import START_MS, batch, sequenced
from tests.broker.transaction_model import in_transaction, marked

BATCHES = st.tuples(st.integers(0, SEQUENCE_MAX), st.integers(1, 9), st.integers(0, 1 << 40), st.integers(-1, 1 << 40))
WINDOWS = st.lists(BATCHES, max_size=WINDOW)
PRODUCERS = st.dictionaries(st.integers(0, 1 << 40), st.tuples(st.integers(0, (1 << 15) - 1), WINDOWS), max_size=4)

Rows = dict[int, tuple[int, list[tuple[int, int, int, int]]]]


def table(rows: Rows) -> ProducerTable:
    """
    Producers by epoch with their batches: sequence, count, offset, timestamp.
    """
    found = ProducerTable()
    for producer_id, (epoch, window) in rows.items():
        producer = found.producers[producer_id] = Producer(epoch, START_MS)
        for sequence, count, offset, timestamp in window:
            last = (sequence + count - 1) % (SEQUENCE_MAX + 1)
            producer.window.append(WrittenBatch(sequence, last, offset, timestamp))
    return found


def reread(data: bytes) -> ProducerTable | None:
    found = ProducerTable()
    return found if load_snapshot(data, found, START_MS) else None


def numbers(*fields: tuple[int, int]) -> bytes:
    """
    Integers and the number of bytes they take.
    """
    return b"".join(value.to_bytes(size, "big", signed=True) for value, size in fields)


@given(PRODUCERS)
def test_snapshots_are_read_back(rows: Rows) -> None:
    """
    Each producer has its epoch and all batches of its window in order; those seen longest ago are still first.
    """
    before = table(rows)
    after = reread(encode_snapshot(before))
    assert after == before
    assert after
    assert list(after.producers) == list(before.producers)


def test_entries_have_kafkas_format() -> None:
    """
    The file has a version, the CRC of the rest, a count, and one entry for each batch of a producer.
    """
    rows: Rows = {7: (3, [(10, 4, 100, 1_000)])}
    entry = numbers((7, 8), (3, 2), (13, 4), (103, 8), (3, 4), (1_000, 8), (-1, 4), (-1, 8))
    body = numbers((1, 4)) + entry
    assert encode_snapshot(table(rows)) == b"\0\1" + crc32c(body).to_bytes(4, "big") + body


def test_kafka_reads_the_last_batch_of_a_producer() -> None:
    """
    Batches are written oldest first, so a reader that keeps one entry per producer keeps the last.
    """
    data = encode_snapshot(table({7: (0, [(0, 1, 5, 9), (1, 2, 6, 9)])}))
    assert data[6:10] == numbers((2, 4))
    assert data[-46:] == numbers((7, 8), (0, 2), (2, 4), (7, 8), (1, 4), (9, 8), (-1, 4), (-1, 8))


def test_a_producer_with_markers_only() -> None:
    """
    Its epoch is stored and no batch.
    """
    before = ProducerTable()
    before.remember(batch(is_control=True, producer_id=7, producer_epoch=4).header, 5, START_MS)
    data = encode_snapshot(before)
    assert data[10:] == numbers((7, 8), (4, 2), (-1, 4), (-1, 8), (0, 4), (-1, 8), (-1, 4), (-1, 8))
    assert reread(data) == before


def test_a_last_batch_without_a_sequence() -> None:
    """
    Its offset is stored, as in Kafka.
    """
    before = table({7: (3, [])})
    before.producers[7].unnumbered_offset = 5
    assert (reread(encode_snapshot(before)) or table({})).producers == before.producers
    assert numbers((7, 8), (3, 2), (-1, 4), (5, 8), (0, 4)) in encode_snapshot(before)


def test_open_transactions_are_stored() -> None:
    """
    They have their first offset, are sorted by it, and carry the epoch of the coordinator that ended the previous
    one.
    """
    before = ProducerTable()
    for offset, sent in enumerate(
        (in_transaction(8, b"a"), in_transaction(7, b"a"), in_transaction(8, b"b", sequence=1))
    ):
        before.update(sent, offset, START_MS)
    before.update(marked(9, commits=True, coordinator_epoch=6), 3, START_MS)
    before.update(in_transaction(9, b"a"), 4, START_MS)
    before.remember(sequenced(5, producer_id=8).header, 99, START_MS)  # seen last, and longest in a transaction
    data = encode_snapshot(before)
    assert data.endswith(numbers((99, 8), (0, 4), (START_MS, 8), (-1, 4), (0, 8)))
    after = reread(data)
    assert after == before
    assert after
    assert list(after.transactions.open.items()) == [(8, 0), (7, 1), (9, 4)]
    assert after.producers[9].coordinator_epoch == 6


def test_sequences_wrap_inside_a_batch() -> None:
    """
    A batch that crosses the largest sequence number is recognized as a duplicate.
    """
    before, sent = ProducerTable(), sequenced(SEQUENCE_MAX, 3).header
    before.remember(sent, 40, START_MS)
    data = encode_snapshot(before)
    assert data[20:36] == numbers((1, 4), (42, 8), (2, 4))  # as Kafka counts them
    after = reread(data)
    assert after
    assert after.check_sequence(sent) == WrittenBatch(SEQUENCE_MAX, 1, 40, START_MS)


def test_silence_is_counted_from_the_read() -> None:
    """
    Producers count as seen when the file is read, so that they survive a long stop.
    """
    found = ProducerTable()
    assert load_snapshot(encode_snapshot(table({7: (0, [])})), found, START_MS + 5)
    assert found.producers[7].seen_ms == START_MS + 5


def test_the_later_epoch_of_a_producer_counts() -> None:
    """
    Entries with two epochs for one producer begin a new window at the second.
    """
    one, two = encode_snapshot(table({7: (0, [(0, 1, 5, 9)])})), encode_snapshot(table({7: (1, [(0, 1, 6, 9)])}))
    body = numbers((2, 4)) + one[10:] + two[10:]
    found = reread(b"\0\1" + crc32c(body).to_bytes(4, "big") + body)
    assert found == table({7: (1, [(0, 1, 6, 9)])})


@pytest.mark.parametrize("how", ["flipped", "cut", "longer"])
def test_damaged_files_are_not_read(how: str) -> None:
    """
    One byte changed, missing or added anywhere is noticed.
    """
    data = encode_snapshot(table({7: (0, [(0, 1, 5, 9)]), 8: (2, [])}))
    for at in range(len(data)):
        changed = {"flipped": data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], "cut": data[:at]}
        assert reread(changed.get(how, data + bytes(at + 1))) is None, at


def test_a_count_beyond_the_entries_is_damage() -> None:
    """
    The CRC of such a file may be valid.
    """
    body = numbers((2, 4)) + encode_snapshot(table({7: (0, [])}))[10:]
    assert reread(b"\0\1" + crc32c(body).to_bytes(4, "big") + body) is None
