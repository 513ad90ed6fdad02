"""
Which batches of clients a topic accepts.
"""

from dataclasses import replace
from typing import Any

import pytest

from kgateway.broker.partition import admission
from kgateway.broker.partition.admission import BAD_RECORDS_MAX, check_batch
from kgateway.cluster.config import TopicConfig
from kgateway.records.batch import Batch, TimestampType
from kgateway.records.compression import Codec
from kgateway.records.record import Record
from kgateway.records.slices import AT_ONCE_MAX, RECORDS_A_STEP
from kgateway.wire.errors import BadRecord, ErrorCode, KafkaError, RecordsRefused
from tests.broker.behaviour import START_MS, at_times, batch
from tests.records.crc_batches import sealed
from tests.records.handmade_batches import holding
from tests.records.values import batch_of

BY_APPEND: dict[str, Any] = {"timestamp_type": TimestampType.LOG_APPEND_TIME}
BOUNDS: dict[str, Any] = {"timestamp_before_max_ms": 1_000, "timestamp_after_max_ms": 10}
RANGE = "[1799999999000, 1800000000010]"
PARTITION = "orders-3"
LATE, EARLY = ErrorCode.INVALID_TIMESTAMP, START_MS - 1_001


def refused(sent: Batch, **config: Any) -> str:
    """
    The message with which a batch is refused.
    """
    with pytest.raises(KafkaError) as error:
        check_batch(sent, TopicConfig(**config), START_MS, PARTITION)
    return str(error.value)


def refusal(sent: Batch, **config: Any) -> RecordsRefused:
    """
    The refusal that names the bad records.
    """
    with pytest.raises(RecordsRefused) as error:
        check_batch(sent, TopicConfig(**config), START_MS, PARTITION)
    return error.value


def bad_records(sent: Batch, **config: Any) -> tuple[BadRecord, ...]:
    return refusal(sent, **config).records


def out_of_range(timestamp: int, offset: int) -> str:
    """
    Kafka's message for a record with this timestamp.
    """
    head = f"Timestamp {timestamp} of message with offset {offset} is out of range."
    return f"{head} The timestamp should be within {RANGE}"


def test_batch_size_is_limited() -> None:
    """
    A batch, header included, may have max.message.bytes and not one more.
    """
    sent = batch(3, codec=Codec.GZIP)
    size = len(sent.data)
    check_batch(sent, TopicConfig(max_message_bytes=size), START_MS, PARTITION)
    reason = f"MESSAGE_TOO_LARGE: the batch has {size} bytes, but the topic accepts at most {size - 1}"
    assert refused(sent, max_message_bytes=size - 1) == reason


def test_size_is_checked_first() -> None:
    """
    Nothing else is examined in a batch that is too large.
    """
    damaged = replace(batch(), data=memoryview(bytes(100)))
    assert refused(damaged, max_message_bytes=99).startswith("MESSAGE_TOO_LARGE: ")
    assert refused(damaged, max_message_bytes=100).startswith("CORRUPT_MESSAGE: ")


def test_headers_are_checked() -> None:
    """
    Batches that no producer may send are refused by every topic.
    """
    assert refused(sealed(batch(), records_count=2)) == "INVALID_RECORD: 2 records end at offset delta 1, not 0"


@pytest.mark.parametrize("timestamp", [START_MS - 1_000, START_MS, START_MS + 10, -1])
def test_timestamps_in_range(timestamp: int) -> None:
    """
    A timestamp may differ from the broker's clock as far as the topic allows, or be absent.
    """
    check_batch(batch(timestamp=timestamp), TopicConfig(**BOUNDS), START_MS, PARTITION)


@pytest.mark.parametrize("timestamp", [EARLY, START_MS + 11, -2, 0])
def test_timestamps_out_of_range_are_refused(timestamp: int) -> None:
    """
    A single timestamp too far before or after is enough.
    """
    [bad] = bad_records(batch(timestamp=timestamp), **BOUNDS)
    assert bad == BadRecord(LATE, 0, out_of_range(timestamp, 0))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_each_timestamp_is_checked(codec: Codec) -> None:
    """
    A topic that limits the age of records refuses a batch for any record out of bounds, in whatever position.
    """
    times = START_MS, EARLY, START_MS - 1_000, START_MS - 100_000, START_MS + 11, -1, START_MS + 10
    sent = at_times(*times, codec=codec)
    error = refusal(sent, **BOUNDS)
    told = [(bad.number, bad.reason) for bad in error.records]
    assert told == [(number, out_of_range(times[number], number)) for number in (1, 3, 4)]
    assert (error.code, error.message) == (LATE, "One or more records have been rejected due to invalid timestamp")


def test_a_limit_on_future_timestamps_alone() -> None:
    """
    Without a limit on age the header shows that a record is ahead; the batch is opened to say which.
    """
    [bad] = bad_records(at_times(0, START_MS + 11, START_MS), timestamp_after_max_ms=10)
    assert (bad.code, bad.number) == (LATE, 1)


def test_the_first_record_may_be_the_one_ahead() -> None:
    """
    It is found whatever max timestamp the header has.
    """
    [bad] = bad_records(sealed(batch(), base_timestamp=START_MS + 11), timestamp_after_max_ms=10)
    assert bad.reason.startswith(f"Timestamp {START_MS + 11} of message with offset 0 is out of range.")


def test_usual_batches_are_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The header suffices where age is unlimited and the max timestamp is not too far ahead.
    """
    monkeypatch.setattr(admission, "payload_of", None)
    check_batch(at_times(0, START_MS + 10, -1), TopicConfig(timestamp_after_max_ms=10), START_MS, PARTITION)
    with pytest.raises(TypeError):
        check_batch(at_times(START_MS), TopicConfig(**BOUNDS), START_MS, PARTITION)


@pytest.mark.parametrize("timestamp", [EARLY, START_MS + 11])
def test_a_max_timestamp_out_of_range_is_refused(timestamp: int) -> None:
    """
    The header decides, even if no record has that timestamp.
    """
    sent = sealed(batch(), max_timestamp=timestamp)
    reason = f"the largest timestamp in the header is {timestamp}, not between 1799999999000 and 1800000000010"
    assert refused(sent, **BOUNDS) == f"INVALID_TIMESTAMP: {reason}"


def test_missing_keys_and_bad_timestamps_together() -> None:
    """
    A record without a key on a compacted topic is named for that; one bad timestamp decides the error code.
    """
    rows = [Record(0, EARLY, None, b""), Record(1, EARLY, b"k", b""), Record(2, START_MS, None, b"")]
    error = refusal(batch_of(rows), cleanup_policy=("compact",), **BOUNDS)
    assert error.code is LATE
    keyless = ErrorCode.INVALID_RECORD
    assert [(bad.code, bad.number) for bad in error.records] == [(keyless, 0), (LATE, 1), (keyless, 2)]


def test_named_records_are_limited() -> None:
    """
    However many records are bad, the client is told of a bounded number.
    """
    sent = batch(BAD_RECORDS_MAX + 5, timestamp=0)
    assert [bad.number for bad in bad_records(sent, **BOUNDS)] == [*range(BAD_RECORDS_MAX)]


def test_unreadable_records_are_refused() -> None:
    """
    This applies where each record has to be examined.
    """
    sent = sealed(holding(b"these are no records", 2), last_offset_delta=1)
    assert refused(sent, **BOUNDS).startswith("INVALID_RECORD: the topic accepts only records that can be read: ")


def test_default_timestamp_limits() -> None:
    """
    A timestamp may be of any age, and one hour ahead.
    """
    hour_ms = 3_600_000
    check_batch(at_times(0, START_MS + hour_ms), TopicConfig(), START_MS, PARTITION)
    assert refused(batch(timestamp=START_MS + hour_ms + 1)).startswith("INVALID_TIMESTAMP: ")


def test_producer_timestamps_do_not_matter_with_log_append_time() -> None:
    check_batch(at_times(0, START_MS * 2), TopicConfig(**BY_APPEND, **BOUNDS), START_MS, PARTITION)


@pytest.mark.parametrize("config", [{}, BY_APPEND])
def test_only_the_broker_sets_log_append_time(config: dict[str, Any]) -> None:
    """
    A batch that arrives with LogAppendTime is refused by every topic.
    """
    reason = "INVALID_TIMESTAMP: the batch is marked LogAppendTime, which only the broker may do"
    assert refused(batch(log_append_time_ms=START_MS), **config) == reason


def test_records_are_checked_in_slices() -> None:
    """
    Slices of a few records let other work run, with the same result.
    """
    for count, late in ((10 * RECORDS_A_STEP, 0), (10 * RECORDS_A_STEP, 11)):
        steps = admission.check_batch_in_steps(
            batch(count, timestamp=START_MS + late), TopicConfig(**BOUNDS), START_MS, PARTITION
        )
        payload = next(steps)
        assert payload
        assert steps.send(payload()) is None
        for _ in range(count // RECORDS_A_STEP - 1):
            assert next(steps) is None
        with pytest.raises(RecordsRefused if late else StopIteration):
            next(steps)


def test_too_many_records_to_examine() -> None:
    """
    A header out of bounds suffices to refuse a large batch, whose records would be examined only to name the bad ones.
    """
    late = START_MS + 11
    assert len(bad_records(batch(AT_ONCE_MAX, timestamp=late), timestamp_after_max_ms=10)) == BAD_RECORDS_MAX
    sent = batch(AT_ONCE_MAX + 1, timestamp=late)
    earliest = START_MS - ((1 << 63) - 1)
    between = f"between {earliest} and {START_MS + 10}"
    reason = f"INVALID_TIMESTAMP: the timestamps in the header, {late} and {late}, are not {between}"
    assert refused(sent, timestamp_after_max_ms=10) == reason
    assert len(bad_records(sent, **BOUNDS)) == BAD_RECORDS_MAX
