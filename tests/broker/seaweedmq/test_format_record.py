"""
The format record.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.partition.producer_state import SEQUENCE_MAX, ProducerTable
from kgateway.broker.seaweed.protos.schema_pb2 import BYTES, INT32, INT64, STRING, RecordValue, Value
from kgateway.broker.seaweedmq.formats.format import SkippedMessage
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.formats.record import RecordFormat
from kgateway.records.batch import Batch, TimestampType, read_batch
from kgateway.records.record import Header, Record, records
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed
from tests.broker.seaweedmq.log_messages import NOW_NS, logged
from tests.records.handmade_batches import body, holding
from tests.records.values import SAMPLE, batch_of, with_header

FORM = RecordFormat()
MS = NOW_NS // 1_000_000


def columns(batch: Batch, base_offset: int = 0, partition: int = 0) -> list[dict[str, Value]]:
    """
    The columns of each message.
    """
    messages = FORM.encode(batch, base_offset, partition)
    return [dict(RecordValue.FromString(bytes(message.value)).fields) for message in messages]


def passed(batch: Batch, base_offset: int = 0) -> list[Batch]:
    """
    The batches that are read when this one was written.
    """
    found = FORM.decode(logged(FORM.encode(batch, base_offset, 0), base_offset))
    return [read_batch(data) for data in found]


def test_a_record_has_columns() -> None:
    """
    They have the key, the value, and Kafka's metadata.
    """
    batch = batch_of([Record(0, 1_234, b"k", b"v"), Record(1, 1_235, b"", b"")])
    assert columns(batch, 40, 3) == [
        {
            "key": Value(bytes_value=key),
            "value": Value(bytes_value=value),
            "_kafka_offset": Value(int64_value=40 + n),
            "_kafka_partition": Value(int32_value=3),
            "_kafka_timestamp": Value(int64_value=1_234 + n),
        }
        for n, (key, value) in enumerate([(b"k", b"v"), (b"", b"")])
    ]


def test_every_message_has_a_key() -> None:
    """
    It is the record's, if that has any: tools of SeaweedMQ skip messages without a key.
    """
    batch = batch_of([Record(n, 5, key, None) for n, key in enumerate([b"k", b"", None])])
    assert [message.key for message in FORM.encode(batch, 0, 0)] == [b"k", b"(none)", b"(none)"]


def test_the_last_message_of_ours_says_how_offsets_go_on() -> None:
    """
    Later messages of others do not matter; without a message of ours the shift stays the same.
    """
    ours = logged(FORM.encode(batch_of([Record(40, 5, None, b"v"), Record(41, 5, None, b"w")]), 40, 0), 7)
    others = [LoggedMessage(9 + n, NOW_NS, b"", value) for n, value in enumerate([b"", b"x", b"\xff" * 9])]
    assert FORM.shift_after(others, 12) == 12
    assert FORM.shift_after([*ours, *others], 12) == 33
    assert FORM.shift_after([], 12) == 12


def test_null_is_not_empty() -> None:
    """
    A null key and a null value have no column, and are read as null.
    """
    rows = [Record(0, 5, None, b""), Record(1, 5, b"", None), Record(2, 5, None, None)]
    assert [sorted({"key", "value"} & set(row)) for row in columns(batch_of(rows))] == [["value"], ["key"], []]
    assert [record for batch in passed(batch_of(rows)) for record in records(batch)] == rows


def test_headers_keep_order_repetitions_nulls_and_bytes() -> None:
    """
    A key may be no UTF-8.
    """
    headers = (
        Header("b", b"1"),
        Header("a", None),
        Header("b", b""),
        Header("\udcff\udcfe", b"\xff"),
        Header("", b"x"),
    )
    (batch,) = passed(batch_of([Record(0, 5, b"k", b"v", headers), Record(1, 5, b"k", b"v")]))
    assert [record.headers for record in records(batch)] == [headers, ()]


def test_the_type_of_a_timestamp_is_kept() -> None:
    """
    Only LogAppendTime has a column for it; records with another one begin another batch.
    """
    assert "_kafka_timestamp_type" not in columns(batch_of(SAMPLE))[0]
    stamped = batch_of(SAMPLE, log_append_time_ms=99)
    assert columns(stamped)[0]["_kafka_timestamp_type"].string_value == "LogAppendTime"
    messages = FORM.encode(stamped, 0, 0) + FORM.encode(batch_of(SAMPLE), 4, 0)
    first, second = map(read_batch, FORM.decode(logged(messages)))
    assert first.header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert second.header.timestamp_type is TimestampType.CREATE_TIME
    assert first.header.max_timestamp == 99


def test_records_of_different_times_of_appending_are_in_different_batches() -> None:
    """
    A batch with LogAppendTime has one time for all records.
    """
    messages = FORM.encode(batch_of(SAMPLE, log_append_time_ms=1), 0, 0)
    messages += FORM.encode(batch_of(SAMPLE, log_append_time_ms=2), 4, 0)
    found = [read_batch(data) for data in FORM.decode(logged(messages))]
    assert [(batch.header.base_offset, batch.header.max_timestamp) for batch in found] == [(0, 1), (4, 2)]


@given(
    count=st.integers(1, 6),
    producer=st.integers(0, (1 << 63) - 1),
    epoch=st.integers(0, (1 << 15) - 1),
    sequence=st.integers(0, SEQUENCE_MAX),
)
def test_batches_of_an_idempotent_producer_come_back(count: int, producer: int, epoch: int, sequence: int) -> None:
    """
    The batches are restored, also if sequence numbers begin again at 0, and so is the broker's state of the producer.
    """
    rows = [Record(n, 1_000 - n, b"k", b"v") for n in range(count)]
    batch = batch_of(rows, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
    found = logged(FORM.encode(batch, 0, 0) + FORM.encode(batch, count, 0))
    headers = [read_batch(data).header for data in FORM.decode(found)]
    assert [(each.base_offset, each.records_count, each.base_sequence) for each in headers] == [
        (0, count, sequence),
        (count, count, sequence),
    ]
    assert {(each.producer_id, each.producer_epoch) for each in headers} == {(producer, epoch)}
    table, again = ProducerTable(), ProducerTable()
    for base in (0, count):
        table.remember(batch.header, base, 5)
    for placed in FORM.walk(found):
        if placed.batch:
            again.remember(placed.batch, placed.batch.base_offset, 5)
    windows = [[written[:3] for written in each.producers[producer].window] for each in (table, again)]
    assert windows[0] == windows[1]
    assert again.producers[producer].epoch == epoch


def test_a_part_of_a_producers_batch_has_its_own_sequence() -> None:
    """
    If reading begins amid a batch, the sequence is that of the first record read; after the largest number comes 0.
    """
    batch = batch_of(SAMPLE, producer_id=7, producer_epoch=1, base_sequence=SEQUENCE_MAX - 1)
    found = logged(FORM.encode(batch, 0, 0))
    assert [read_batch(FORM.decode(found[n:])[0]).header.base_sequence for n in range(4)] == [
        SEQUENCE_MAX - 1,
        SEQUENCE_MAX,
        0,
        1,
    ]


def test_a_batch_that_was_cut_off_has_not_ended() -> None:
    """
    The state of its producer does not have it.
    """
    batch = batch_of(SAMPLE, producer_id=7, producer_epoch=1, base_sequence=0)
    found = logged(FORM.encode(batch, 0, 0))
    assert [bool(placed.batch) for placed in FORM.walk(found)] == [False, False, False, True]


def test_the_offset_in_a_record_is_kafkas() -> None:
    """
    SeaweedMQ's may differ after an accident.
    """
    (data,) = FORM.decode(logged(FORM.encode(batch_of(SAMPLE), 100, 0), 7))
    assert read_batch(data).header.base_offset == 100


def test_messages_of_others_go_on_counting() -> None:
    """
    They count on from the last message of ours, or by the shift that the caller knows.
    """
    ours = logged(FORM.encode(batch_of(SAMPLE), 100, 0), 7)
    theirs = LoggedMessage(11, NOW_NS, b"k", b"hello")
    assert [placed.offset for placed in FORM.walk([theirs], shift=50)] == [61]
    assert [placed.offset for placed in FORM.walk([*ours, theirs], shift=50)] == [100, 101, 102, 103, 104]
    last = read_batch(FORM.decode([*ours, theirs])[-1])
    assert list(records(last))[-1] == Record(104, MS, b"k", b"hello")


@pytest.mark.parametrize("value", [b"", b"hello", b"\0\0\0\0\7x", bytes(range(256)), b"\x0a\x00"])
def test_values_without_columns_are_read_as_they_are(value: bytes) -> None:
    """
    Values of others are read byte for byte; an empty key is read as null.
    """
    (data,) = FORM.decode([LoggedMessage(5, NOW_NS, b"", value)])
    assert list(records(read_batch(data))) == [Record(5, MS, None, value)]


def test_columns_of_others_are_read_as_json() -> None:
    """
    The value has columns, and the key may have some.
    """
    theirs = RecordValue(fields={"b": Value(int32_value=1), "a": Value(string_value="ü")}).SerializeToString()
    (data,) = FORM.decode([LoggedMessage(5, NOW_NS, theirs, theirs)])
    text = '{"a": "ü", "b": 1}'.encode()
    assert list(records(read_batch(data))) == [Record(5, MS, text, text)]


@pytest.mark.parametrize(
    ("column", "value"),
    [("_kafka_producer", Value(bytes_value=b"short")), ("_kafka_headers", Value(string_value="[[1]]"))],
)
def test_a_damaged_column_is_reported(column: str, value: Value) -> None:
    """
    The report has the offset of the message; without a report reading fails.
    """
    fields = {"_kafka_offset": Value(int64_value=5), column: value}
    damaged = LoggedMessage(41, NOW_NS, b"", RecordValue(fields=fields).SerializeToString())
    reported: list[SkippedMessage] = []
    assert FORM.decode([damaged], report=reported.append) == []
    assert [(left.offset, left.is_repeated) for left in reported] == [(41, False)]
    assert column in reported[0].reason
    with pytest.raises(Malformed, match="byte 41"):
        FORM.decode([damaged])


def test_timestamps_far_apart_come_back() -> None:
    """
    A batch stores differences from its first timestamp, so one too far away begins another batch.
    """
    rows = [Record(0, -(1 << 62), b"", b""), Record(1, (1 << 63) - 1, b"", b""), Record(2, -(1 << 61), b"", b"")]
    messages = [message for row in rows for message in FORM.encode(batch_of([row]), row.offset, 0)]
    found = [read_batch(data) for data in FORM.decode(logged(messages))]
    assert [record for batch in found for record in records(batch)] == rows


def test_what_cannot_be_read_is_refused() -> None:
    """
    Records are invalid, have wrong numbers, or timestamps out of range.
    """
    broken = [
        (holding(b"nothing", 1), "cannot be read"),
        (with_header(holding(body(offset_delta=1), 1), base_offset=70), "record 0 has the offset delta 1$"),
        (with_header(holding(b"\x0c\0\2\0\0\0\0", 1), base_timestamp=(1 << 63) - 1), "more than 64 bits"),
        (with_header(batch_of(SAMPLE), attributes=0x10), "transactions"),
    ]
    for batch, reason in broken:
        with pytest.raises(KafkaError, match=reason) as refused:
            FORM.encode(batch, 0, 0)
        assert refused.value.code is ErrorCode.INVALID_RECORD


def test_the_topic_has_the_columns_of_its_messages() -> None:
    """
    Their types are those of the values, so that SeaweedMQ's own tools read them.
    """
    fields = FORM.record_type().fields
    scalars = {field.name: field.type.scalar_type for field in fields if field.type.HasField("scalar_type")}
    assert scalars == {
        "key": BYTES,
        "value": BYTES,
        "_kafka_offset": INT64,
        "_kafka_partition": INT32,
        "_kafka_timestamp": INT64,
        "_kafka_timestamp_type": STRING,
        "_kafka_headers": STRING,
        "_kafka_producer": BYTES,
        "_offset": INT64,
    }
    assert [field.field_index for field in fields] == list(range(9))
    full = batch_of([Record(0, 5, b"k", b"v", (Header("h", b"x"),))], log_append_time_ms=5, producer_id=1)
    assert {field.name for field in fields} == {*columns(full)[0], "_offset"}
