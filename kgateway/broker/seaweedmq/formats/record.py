"""
The format `record`: a message is a record, with columns that SeaweedMQ's own tools read, and nothing is lost.

    key                     bytes; absent if it is null. The message has the same key, or `(none)` for one that is
                            null or empty: SeaweedFS's SQL, subscribers and Parquet files leave out messages with none
    value                   bytes; absent if it is null, which makes the record a tombstone
    _kafka_offset           int64
    _kafka_partition        int32
    _kafka_timestamp        int64, milliseconds
    _kafka_timestamp_type   string, only with LogAppendTime
    _kafka_headers          string, if there are any: a text that people read in SQL, and from which they come back
                            as they were; a value that is no UTF-8 is in base64:
                            [["trace", "17"], ["none", null], ["image", {"base64": "/9j/4A=="}]]
                            SeaweedFS's Parquet files have no lists of records
    _kafka_producer         bytes, only of idempotent producers:
                              8  producer id
                              2  producer epoch
                              4  base sequence of the batch
                              4  which of its records this is
                              4  how many it has
    _offset                 int64, never in a message: SeaweedFS fills it in its Parquet files if a topic has such a
                            column, and its reader of these files panics if it is missing

The batch of an idempotent producer is a batch again when it is read, unless it is too large. Messages that others wrote
into the topic have no `_kafka_` columns: their columns are read as JSON text, any other bytes as they are, and their
offset continues from that of the last one of ours.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from struct import Struct
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from kgateway.broker.seaweed.protos.schema_pb2 import (
    BYTES,
    INT32,
    INT64,
    STRING,
    Field,
    RecordType,
    RecordValue,
    ScalarType,
    Type,
    Value,
)
from kgateway.broker.seaweedmq.formats.columns import columns_of, json_of
from kgateway.broker.seaweedmq.formats.format import (
    Message,
    MessageFormat,
    PlacedMessage,
    Report,
    SkippedMessage,
    raise_unless_repeated,
    repeated,
)
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.formats.record_batches import BatchRuns, ProducerSequence, single_records
from kgateway.records.batch import Batch, BatchHeader, TimestampType
from kgateway.records.record import Header
from kgateway.wire.errors import Malformed, MessageField
from kgateway.wire.types import Buffer

_BASE64 = "base64"


def headers_text(headers: Iterable[Header]) -> str:
    pairs = [(header.key, _header_text(header.value)) for header in headers]
    text = json.dumps(pairs, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a key that is no UTF-8
        return json.dumps(pairs)
    return text


def headers_of(text: str) -> tuple[Header, ...]:
    """
    The headers in a text. Raises a ValueError if the text is not one of ours.
    """
    try:
        return tuple(Header(_key(key), _value(told)) for key, told in json.loads(text))
    except (TypeError, KeyError, ValueError, RecursionError) as error:
        raise ValueError(f"{text[:80]!r} does not describe headers") from error


def _header_text(value: bytes | None) -> str | dict[str, str] | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {_BASE64: b64encode(value).decode()}


def _key(told: Any) -> str:
    if not isinstance(told, str):
        raise TypeError(told)
    return told


def _value(told: Any) -> bytes | None:
    match told:
        case None:
            return None
        case str():
            return told.encode()
        case _:
            return b64decode(told[_BASE64], validate=True)


_KEY, _VALUE = "key", "value"
_OFFSET, _PARTITION = "_kafka_offset", "_kafka_partition"
_TIMESTAMP, _TIMESTAMP_TYPE = "_kafka_timestamp", "_kafka_timestamp_type"
_HEADERS, _PRODUCER = "_kafka_headers", "_kafka_producer"
_SEAWEEDS_OFFSET = "_offset"
_LOG_APPEND_TIME = "LogAppendTime"
_NO_KEY = b"(none)"
_SEQUENCE = Struct(">qhiii")
_MILLISECOND_NS = 1_000_000


class _Row(NamedTuple):
    offset: int | None  # `None` if another program wrote the message
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    by_append: bool = False
    sequence: ProducerSequence | None = None


class RecordFormat(MessageFormat):
    name, shifts = "record", True

    def record_type(self) -> RecordType:
        return RecordType(
            fields=[
                _scalar(0, _KEY, BYTES),
                _scalar(1, _VALUE, BYTES),
                _scalar(2, _OFFSET, INT64),
                _scalar(3, _PARTITION, INT32),
                _scalar(4, _TIMESTAMP, INT64),
                _scalar(5, _TIMESTAMP_TYPE, STRING),
                _scalar(6, _HEADERS, STRING),
                _scalar(7, _PRODUCER, BYTES),
                _scalar(8, _SEAWEEDS_OFFSET, INT64),
            ]
        )

    def encode(self, batch: Batch, base_offset: int, partition: int) -> list[Message]:
        header = batch.header
        by_append = header.timestamp_type is TimestampType.LOG_APPEND_TIME
        found = single_records(batch)
        messages = []
        for index, record in enumerate(found):
            columns = RecordValue()
            fields = columns.fields
            if record.key is not None:
                fields[_KEY].bytes_value = record.key
            if record.value is not None:
                fields[_VALUE].bytes_value = record.value
            fields[_OFFSET].int64_value = base_offset + index
            fields[_PARTITION].int32_value = partition
            fields[_TIMESTAMP].int64_value = record.timestamp
            if by_append:
                fields[_TIMESTAMP_TYPE].string_value = _LOG_APPEND_TIME
            if record.headers:
                fields[_HEADERS].string_value = headers_text(record.headers)
            if header.producer_id >= 0:
                sequence = header.producer_id, header.producer_epoch, header.base_sequence, index, len(found)
                fields[_PRODUCER].bytes_value = _SEQUENCE.pack(*sequence)
            messages.append(Message(record.key or _NO_KEY, columns.SerializeToString()))
        return messages

    def walk(
        self, entries: Iterable[LoggedMessage], shift: int = 0, end: int = 0, report: Report = raise_unless_repeated
    ) -> Iterator[PlacedMessage]:
        for entry, offset, row in _new(entries, shift, end, report):
            yield PlacedMessage(offset, 1, entry.offset, entry.ts_ns, row.timestamp, _ended(offset, row))

    def decode(
        self, entries: Iterable[LoggedMessage], shift: int = 0, end: int = 0, report: Report = raise_unless_repeated
    ) -> list[Buffer]:
        runs = BatchRuns()
        for _, offset, row in _new(entries, shift, end, report):
            _, timestamp, key, value, headers, by_append, sequence = row
            runs.add(offset, timestamp, key, value, headers, by_append=by_append, sequence=sequence)
        return runs.finish()

    def shift_after(self, entries: list[LoggedMessage], shift: int) -> int:
        """
        The last message of ours has the shift, if there is one.
        """
        for entry in reversed(entries):
            columns = _columns(entry)
            if columns:
                return columns[_OFFSET].int64_value - entry.offset
        return shift


def _new(
    entries: Iterable[LoggedMessage], shift: int, end: int, report: Report
) -> Iterator[tuple[LoggedMessage, int, _Row]]:
    for entry in entries:
        try:
            row = _read(entry)
        except Malformed as failure:
            report(SkippedMessage(entry.offset, f"the value is not a record of kgateway: {failure}"))
            continue
        offset = row.offset
        if offset is None:
            offset = entry.offset + shift
        else:
            shift = offset - entry.offset
        if offset < end:
            report(repeated(entry, offset, end))
            continue
        yield entry, offset, row
        end = offset + 1


def _scalar(index: int, name: str, kind: ScalarType) -> Field:
    return Field(name=name, field_index=index, type=Type(scalar_type=kind))


def _columns(entry: LoggedMessage) -> Mapping[str, Value]:
    """
    The columns of one of our messages; none if another program has written it.
    """
    try:
        fields = RecordValue.FromString(entry.value).fields
    except DecodeError:
        return {}
    return fields if _OFFSET in fields else {}


def _read(entry: LoggedMessage) -> _Row:
    fields = _columns(entry)
    if not fields:
        return _foreign(entry)
    return _Row(
        fields[_OFFSET].int64_value,
        fields[_TIMESTAMP].int64_value,
        fields[_KEY].bytes_value if _KEY in fields else None,
        fields[_VALUE].bytes_value if _VALUE in fields else None,
        _read_headers(fields[_HEADERS].string_value) if _HEADERS in fields else (),
        _TIMESTAMP_TYPE in fields,
        _read_sequence(fields[_PRODUCER].bytes_value) if _PRODUCER in fields else None,
    )


def _read_headers(text: str) -> tuple[Header, ...]:
    try:
        return headers_of(text)
    except ValueError as error:
        raise Malformed(MessageField("RecordValue", 0, _HEADERS), 0, str(error)) from None


def _read_sequence(data: bytes) -> ProducerSequence:
    if len(data) != _SEQUENCE.size:
        reason = f"{len(data)} bytes, not {_SEQUENCE.size}"
        raise Malformed(MessageField("RecordValue", 0, _PRODUCER), 0, reason)
    return ProducerSequence(*_SEQUENCE.unpack(data))


def _foreign(entry: LoggedMessage) -> _Row:
    key = _readable(entry.key) if entry.key else None
    return _Row(None, entry.ts_ns // _MILLISECOND_NS, key, _readable(entry.value))


def _readable(data: bytes) -> bytes:
    columns = columns_of(data)
    return json_of(columns) if columns else data


def _ended(offset: int, row: _Row) -> BatchHeader | None:
    """
    The batch of an idempotent producer that ends with this record.
    """
    sequence = row.sequence
    if sequence is None or sequence.number != sequence.records - 1:
        return None
    return BatchHeader(
        base_offset=offset - sequence.number,
        batch_length=0,
        partition_leader_epoch=-1,
        crc=0,
        attributes=0,
        last_offset_delta=sequence.number,
        base_timestamp=row.timestamp,
        max_timestamp=row.timestamp,
        producer_id=sequence.producer_id,
        producer_epoch=sequence.producer_epoch,
        base_sequence=sequence.base_sequence,
        records_count=sequence.records,
    )
