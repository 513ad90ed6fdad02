"""
What a partition remembers of idempotent producers.
"""

import pytest

from kgateway.broker.partition.producer_state import (
    EXPECTED_MAX,
    EXPIRED_AT_ONCE,
    EXPIRY_MS,
    SEQUENCE_MAX,
    WINDOW,
    ProducerTable,
    WrittenBatch,
    last_sequence,
)
from kgateway.records.batch import BatchHeader
from kgateway.wire.errors import ErrorCode, KafkaError


def batch(sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 7) -> BatchHeader:
    """
    The header of a batch of `count` records.
    """
    return BatchHeader(
        base_offset=0,
        batch_length=100,
        partition_leader_epoch=-1,
        crc=0,
        attributes=0,
        last_offset_delta=count - 1,
        base_timestamp=5,
        max_timestamp=5,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        records_count=count,
    )


def table(*headers: BatchHeader) -> ProducerTable:
    """
    A table that has seen these batches at offsets 100, 200 and so on.
    """
    found = ProducerTable()
    for index, header in enumerate(headers, 1):
        assert found.check_sequence(header) is None
        found.remember(header, index * 100, now_ms=index)
    return found


def refused(found: ProducerTable, header: BatchHeader) -> KafkaError:
    with pytest.raises(KafkaError) as error:
        found.check_sequence(header)
    return error.value


def test_the_next_sequence_is_accepted() -> None:
    found = table(batch(0, 3), batch(3, 2))
    assert found.check_sequence(batch(5)) is None


@pytest.mark.parametrize("sequence", [0, 2, 4, 100])
def test_gaps_and_overlaps_are_out_of_order(sequence: int) -> None:
    """
    Neither a gap nor an overlap may be appended.
    """
    error = refused(table(batch(0, 3)), batch(sequence))
    assert error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error.message == f"producer 7 sent sequence {sequence}, but 3 is expected"


def test_a_refused_batch_comes_first_when_resent() -> None:
    """
    An unknown producer may begin anywhere, but not with a batch behind one of its epoch that was refused and will be
    resent.
    """
    found = table()
    for sequence in (5, 3, 4):
        found.expect_again(batch(sequence))
    assert found.check_sequence(batch(6, producer_id=8)) is None
    assert found.check_sequence(batch(6, epoch=1)) is None
    error = refused(found, batch(4))
    assert error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error.message == "producer 7 sent sequence 4, but 3 is expected"
    assert found.check_sequence(batch(3)) is None
    found.remember(batch(3), 100, now_ms=1)
    assert found.check_sequence(batch(4)) is None


def test_expected_resends_are_limited() -> None:
    """
    The oldest refusals are forgotten first.
    """
    found = table()
    for producer_id in range(EXPECTED_MAX + 1):
        found.expect_again(batch(0, producer_id=producer_id))
    assert found.check_sequence(batch(1, producer_id=0)) is None
    refused(found, batch(1, producer_id=1))


def test_a_duplicate_is_answered_with_its_first_offset() -> None:
    """
    Any of the last five batches is recognized, an older one is not.
    """
    headers = [batch(sequence) for sequence in range(WINDOW + 1)]
    found = table(*headers)
    assert refused(found, headers[0]).code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert found.check_sequence(headers[1]) == WrittenBatch(
        base_sequence=1, last_sequence=1, base_offset=200, timestamp_ms=5
    )
    assert found.check_sequence(headers[5]) == WrittenBatch(
        base_sequence=5, last_sequence=5, base_offset=600, timestamp_ms=5
    )


def test_a_batch_of_another_size_is_no_duplicate() -> None:
    """
    First and last sequence number must both match.
    """
    assert refused(table(batch(0, 3)), batch(0, 2)).code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_unknown_producer_may_begin_anywhere() -> None:
    """
    Its earlier records may have been deleted, and its state with them.
    """
    assert table().check_sequence(batch(42)) is None


def test_a_new_epoch_begins_at_zero() -> None:
    """
    A higher epoch restarts the sequence, and batches of the old epoch are no duplicates.
    """
    found = table(batch(0, 3), batch(0, 1, epoch=1))
    assert found.check_sequence(batch(1, epoch=1)) is None
    assert refused(found, batch(0, 3)).code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(table(batch(0)), batch(5, epoch=1)).code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_old_epoch_is_fenced() -> None:
    error = refused(table(batch(0, epoch=3)), batch(1, epoch=2))
    assert error.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(table(), batch(0, epoch=-2)).code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_sequences_wrap() -> None:
    """
    0 follows the largest number, also inside a batch.
    """
    wrapping = batch(SEQUENCE_MAX - 1, 3)
    assert last_sequence(wrapping) == 0
    found = table(wrapping)
    assert found.check_sequence(batch(1)) is None
    assert table(batch(SEQUENCE_MAX)).check_sequence(batch(0)) is None


@pytest.mark.parametrize(("sequence", "count"), [(0, 1), (5, 3), (SEQUENCE_MAX - 1, 4), (SEQUENCE_MAX, 2)])
def test_last_offset_of_a_producer(sequence: int, count: int) -> None:
    """
    It is known even where sequence numbers restart.
    """
    found = ProducerTable()
    found.remember(batch(9), 3, 0)
    found.remember(batch(sequence, count), 40, 0)
    assert found.producers[7].last_offset == 40 + count - 1


def test_producers_have_separate_sequences() -> None:
    assert table(batch(0, 3)).check_sequence(batch(0, producer_id=8)) is None


def test_a_producer_without_an_epoch_has_no_sequence() -> None:
    """
    A client may send an id and no epoch: its batches, and those of its first epoch, may have any sequence.
    """
    found = table(batch(0, epoch=-1), batch(42, epoch=-1), batch(9, epoch=0))
    assert refused(found, batch(42)).code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(found, batch(43, epoch=-1)).code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_batches_without_a_sequence_may_raise_the_epoch() -> None:
    """
    A coordinator's batch is not part of its producer's sequence and is no duplicate.
    """
    found = table(batch(0, 3), batch(-1), batch(3))
    assert found.check_sequence(batch(-1)) is None
    found = table(batch(0, 3), batch(-1, epoch=1))
    assert refused(found, batch(-1)).code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(found, batch(1, epoch=1)).message == "producer 7 sent sequence 1, but 0 is expected"
    assert found.check_sequence(batch(0, epoch=1)) is None


def test_silent_producers_expire() -> None:
    """
    A producer that was silent for the whole time may begin anywhere.
    """
    found = table(batch(0), batch(0, producer_id=8))
    found.expiry_ms = 10
    found.expire(now_ms=11, producer_id=9)
    assert list(found.producers) == [8]
    assert found.check_sequence(batch(42)) is None
    assert refused(found, batch(42, producer_id=8)).code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_active_producers_do_not_expire() -> None:
    """
    Silence is counted from the last batch.
    """
    found = table(batch(0), batch(0, producer_id=8), batch(1))
    found.expiry_ms = 10
    found.expire(now_ms=12, producer_id=9)
    assert list(found.producers) == [7]


def test_expiry_is_gradual() -> None:
    """
    A few of many silent producers expire at a time, and the one asked for, so that no append is slow.
    """
    many = range(100)
    found = table(*[batch(0, producer_id=producer_id) for producer_id in many])
    found.expire(now_ms=EXPIRY_MS + 100, producer_id=99)
    assert list(found.producers) == list(many[EXPIRED_AT_ONCE:-1])
    for _ in many:
        found.expire(now_ms=EXPIRY_MS + 100, producer_id=99)
    assert not found.producers
