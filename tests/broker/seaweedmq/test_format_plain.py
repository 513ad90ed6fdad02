"""
The format plain.
"""

import pytest

from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.formats.plain import PlainFormat
from kgateway.cluster.config import TopicConfig
from kgateway.records.batch import TimestampType, read_batch
from kgateway.records.record import Header, Record, records
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.seaweedmq.log_messages import NOW_NS
from tests.records.values import batch_of, with_header

FORM = PlainFormat()
BY_APPEND = TopicConfig(timestamp_type=TimestampType.LOG_APPEND_TIME)
PLAIN = Record(0, 5, b"k", b"v")


def test_key_and_value_are_the_message() -> None:
    """
    Bytes are kept; a null key is written as an empty one.
    """
    batch = batch_of([PLAIN, Record(1, 5, None, b"\0\1"), Record(2, 5, b"k", b"")])
    assert FORM.encode(batch, 0, 0) == [(b"k", b"v"), (b"", b"\0\1"), (b"k", b"")]


def test_an_empty_key_is_read_as_null() -> None:
    """
    The Go gateway writes null keys so; a value is never null.
    """
    (data,) = FORM.decode([LoggedMessage(7, NOW_NS, b"", b""), LoggedMessage(8, NOW_NS, b"k", b"v")])
    assert list(records(read_batch(data))) == [
        Record(7, NOW_NS // 1_000_000, None, b""),
        Record(8, NOW_NS // 1_000_000, b"k", b"v"),
    ]


def test_each_record_has_the_time_of_its_message() -> None:
    """
    A batch with LogAppendTime has one time, so another millisecond begins another batch.
    """
    found = FORM.decode([LoggedMessage(n, NOW_NS + n * 600_000, b"", b"v") for n in range(4)])
    stamps = [(record.offset, record.timestamp) for data in found for record in records(read_batch(data))]
    assert stamps == [(n, (NOW_NS + n * 600_000) // 1_000_000) for n in range(4)]
    assert len(found) == len({stamp for _, stamp in stamps})


def test_offsets_are_the_messages_and_a_shift() -> None:
    """
    If SeaweedMQ counts from elsewhere, the caller knows the difference.
    """
    entry = LoggedMessage(7, NOW_NS, b"", b"v")
    assert FORM.placed(entry, 93) == (100, 1, 7, NOW_NS, NOW_NS // 1_000_000, None)
    (data,) = FORM.decode([entry], shift=93)
    assert read_batch(data).header.base_offset == 100


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (Record(1, 5, b"k", b"v", (Header("h", b"x"),)), "headers"),
        (Record(1, 5, b"k", None), "no value"),
        (Record(1, 5, b"", b"v"), "a key that is empty but not null"),
    ],
)
def test_what_has_no_place_is_refused(record: Record, what: str) -> None:
    """
    The error names the number of the record, and what has no place.
    """
    batch = batch_of([PLAIN, record, PLAIN])
    with pytest.raises(KafkaError, match=f"record 1 of the batch has {what}") as refused:
        FORM.encode(batch, 0, 0)
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_timestamps_of_producers_are_refused() -> None:
    """
    The form cannot report them, so the topic must have LogAppendTime.
    """
    FORM.check(BY_APPEND)
    with pytest.raises(KafkaError, match=r"message\.timestamp\.type=LogAppendTime") as refused:
        FORM.check(TopicConfig())
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("attributes", [0x10, 0x20])
def test_batches_of_transactions_are_refused(attributes: int) -> None:
    """
    The form cannot say whether a record was committed.
    """
    with pytest.raises(KafkaError, match="transactions"):
        FORM.encode(with_header(batch_of([PLAIN]), attributes=attributes), 0, 0)


def test_a_topic_needs_what_the_form_does() -> None:
    """
    Without that config every batch would be refused.
    """
    FORM.check(TopicConfig.of(FORM.needs))


def test_there_are_no_columns() -> None:
    """
    The topic is configured without a record type, as the Go gateway does.
    """
    assert FORM.record_type() is None
