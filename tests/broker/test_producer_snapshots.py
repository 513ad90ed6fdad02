"""
The producers of a partition, as a file.
"""

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.producer_snapshots import read, written
from kgateway.broker.producers import SEQUENCE_MAX, WINDOW, Producer, ProducerTable, Written
from tests.broker.behaviour import START_MS, batch, sequenced
from tests.broker.transacting import in_transaction, marked

BATCHES = st.tuples(st.integers(0, SEQUENCE_MAX), st.integers(1, 9), st.integers(0, 1 << 40), st.integers(-1, 1 << 40))
WINDOWS = st.lists(BATCHES, max_size=WINDOW)
PRODUCERS = st.dictionaries(st.integers(0, 1 << 40), st.tuples(st.integers(0, (1 << 15) - 1), WINDOWS), max_size=4)

Rows = dict[int, tuple[int, list[tuple[int, int, int, int]]]]


def table(rows: Rows) -> ProducerTable:
    """
    Producers by their epoch, and the batches of each: sequence, count, offset, timestamp.
    """
    found = ProducerTable()
    for producer_id, (epoch, window) in rows.items():
        producer = found.producers[producer_id] = Producer(epoch, START_MS)
        for sequence, count, offset, timestamp in window:
            last = (sequence + count - 1) % (SEQUENCE_MAX + 1)
            producer.window.append(Written(sequence, last, offset, timestamp))
    return found


def reread(data: bytes) -> ProducerTable | None:
    found = ProducerTable()
    return found if read(data, found, START_MS) else None


def numbers(*fields: tuple[int, int]) -> bytes:
    """
    Integers and how many bytes they take.
    """
    return b"".join(value.to_bytes(size, "big", signed=True) for value, size in fields)


@given(PRODUCERS)
def test_what_is_written_is_read(rows: Rows) -> None:
    """
    Each producer comes back with its epoch and all batches of its window, in their order; those that were seen longest
    ago are still first.
    """
    before = table(rows)
    after = reread(written(before))
    assert after == before
    assert after
    assert list(after.producers) == list(before.producers)


def test_entries_are_as_kafka_writes_them() -> None:
    """
    A version, the CRC of the rest, a count, and an entry for each batch of a producer.
    """
    rows: Rows = {7: (3, [(10, 4, 100, 1_000)])}
    entry = numbers((7, 8), (3, 2), (13, 4), (103, 8), (3, 4), (1_000, 8), (-1, 4), (-1, 8))
    body = numbers((1, 4)) + entry
    assert written(table(rows)) == b"\0\1" + crc32c(body).to_bytes(4, "big") + body


def test_kafka_reads_the_last_batch_of_a_producer() -> None:
    """
    Batches are written oldest first: the last entry of a producer is the one that counts where only one does.
    """
    data = written(table({7: (0, [(0, 1, 5, 9), (1, 2, 6, 9)])}))
    assert data[6:10] == numbers((2, 4))
    assert data[-46:] == numbers((7, 8), (0, 2), (2, 4), (7, 8), (1, 4), (9, 8), (-1, 4), (-1, 8))


def test_a_producer_without_sequences() -> None:
    """
    Of one that wrote only markers the epoch is known, and no batch.
    """
    before = ProducerTable()
    before.remember(batch(is_control=True, producer_id=7, producer_epoch=4).header, 5, START_MS)
    data = written(before)
    assert data[10:] == numbers((7, 8), (4, 2), (-1, 4), (-1, 8), (0, 4), (-1, 8), (-1, 4), (-1, 8))
    assert reread(data) == before


def test_the_last_batch_without_a_sequence() -> None:
    """
    Its offset is there, as Kafka has it.
    """
    before = table({7: (3, [])})
    before.producers[7].unnumbered_offset = 5
    assert (reread(written(before)) or table({})).producers == before.producers
    assert numbers((7, 8), (3, 2), (-1, 4), (5, 8), (0, 4)) in written(before)


def test_open_transactions() -> None:
    """
    With where they began, in the order of that, and the epoch of the coordinator that ended the one before.
    """
    before = ProducerTable()
    for offset, sent in enumerate(
        (in_transaction(8, b"a"), in_transaction(7, b"a"), in_transaction(8, b"b", sequence=1))
    ):
        before.note(sent, offset, START_MS)
    before.note(marked(9, commits=True, coordinator_epoch=6), 3, START_MS)
    before.note(in_transaction(9, b"a"), 4, START_MS)
    before.remember(sequenced(5, producer_id=8).header, 99, START_MS)  # seen last, and longest in a transaction
    data = written(before)
    assert data.endswith(numbers((99, 8), (0, 4), (START_MS, 8), (-1, 4), (0, 8)))
    after = reread(data)
    assert after == before
    assert after
    assert list(after.transactions.open.items()) == [(8, 0), (7, 1), (9, 4)]
    assert after.producers[9].coordinator_epoch == 6


def test_sequences_wrap_inside_a_batch() -> None:
    """
    A batch that goes over the largest sequence number is still known as the one it is.
    """
    before, sent = ProducerTable(), sequenced(SEQUENCE_MAX, 3).header
    before.remember(sent, 40, START_MS)
    data = written(before)
    assert data[20:36] == numbers((1, 4), (42, 8), (2, 4))  # as Kafka counts them
    after = reread(data)
    assert after
    assert after.repeated(sent) == Written(SEQUENCE_MAX, 1, 40, START_MS)


def test_time_of_silence_begins_anew() -> None:
    """
    Producers count as seen when the file is read: who comes back after a long stop is still known.
    """
    found = ProducerTable()
    assert read(written(table({7: (0, [])})), found, START_MS + 5)
    assert found.producers[7].seen_ms == START_MS + 5


def test_a_later_epoch_in_the_file_begins_a_new_window() -> None:
    """
    Where the entries of a producer have two epochs, the last one counts.
    """
    one, two = written(table({7: (0, [(0, 1, 5, 9)])})), written(table({7: (1, [(0, 1, 6, 9)])}))
    body = numbers((2, 4)) + one[10:] + two[10:]
    found = reread(b"\0\1" + crc32c(body).to_bytes(4, "big") + body)
    assert found == table({7: (1, [(0, 1, 6, 9)])})


@pytest.mark.parametrize("how", ["flipped", "cut", "longer"])
def test_a_damaged_file_is_none(how: str) -> None:
    """
    Wherever a byte is changed, missing or too much, nothing is read.
    """
    data = written(table({7: (0, [(0, 1, 5, 9)]), 8: (2, [])}))
    for at in range(len(data)):
        changed = {"flipped": data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], "cut": data[:at]}
        assert reread(changed.get(how, data + bytes(at + 1))) is None, at


def test_a_count_that_is_too_large() -> None:
    """
    A file that announces more entries than it has is none, though its CRC holds.
    """
    body = numbers((2, 4)) + written(table({7: (0, [])}))[10:]
    assert reread(b"\0\1" + crc32c(body).to_bytes(4, "big") + body) is None
