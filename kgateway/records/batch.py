"""
The record batch, the unit that producers send, logs store and consumers receive: its header, and what can be read and
done without decompressing it.

     byte  size
        0     8  base offset                  written by the broker
        8     4  batch length                 of all that follows this field
       12     4  partition leader epoch       written by the broker
       16     1  magic                        2
       17     4  CRC-32C                      of all that follows this field
       21     2  attributes                   bits 0-2 codec, 3 LogAppendTime, 4 transactional, 5 control,
                                              6 delete horizon
       23     4  last offset delta            last offset = base offset + this, also after compaction
       27     8  base timestamp               or the delete horizon; timestamps of records count from it either way
       35     8  max timestamp                with LogAppendTime the timestamp of every record
       43     8  producer id                  -1 without idempotence
       51     2  producer epoch               -1 without idempotence
       53     4  base sequence                -1 without idempotence
       57     4  records count                0 after compaction has removed them all
       61        records, compressed as a whole

The fields that the broker writes stand before what the CRC covers, so a batch gets its offset with a new head of 16
bytes.
"""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import cast

from crc32c import crc32c

from kgateway.records.compression import Codec
from kgateway.wire.codec import decoder, encode
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed, MessageField
from kgateway.wire.schema import Message, v
from kgateway.wire.types import Buffer, i8, i16, i32, i64, u32

MAGIC = 2
HEADER_SIZE = 61
HEAD_SIZE = 16  # what the broker writes: as far as the partition leader epoch
CRC_PLACE, CRC_START = 17, 21  # where the CRC is, and where the bytes it covers begin
NO_TIMESTAMP = -1

MAGIC_AT = 16  # in a batch and in a message set alike

_LENGTH_END = 12
_ZSTD_SINCE = 7  # version of Produce
_RECORD_SIZE_MIN = 7  # a byte each for length, attributes, two deltas, and the sizes of key, value and headers
CODEC_BITS = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40


_UNCOMPRESSED, _LAST_CODEC = int(Codec.NONE), int(Codec.ZSTD)  # plain numbers, because they are compared for each batch


class TimestampType(IntEnum):
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class BatchHeader(Message, versions="2"):
    base_offset: i64
    batch_length: i32
    partition_leader_epoch: i32
    magic: i8 = v(default=MAGIC)
    crc: u32
    attributes: i16
    last_offset_delta: i32
    base_timestamp: i64
    max_timestamp: i64
    producer_id: i64 = v(default=-1)
    producer_epoch: i16 = v(default=-1)
    base_sequence: i32 = v(default=-1)
    records_count: i32

    @property
    def size(self) -> int:
        return _LENGTH_END + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> Codec:
        """
        The codec of the records; ValueError for an unknown number.
        """
        return Codec(self.attributes & CODEC_BITS)

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType(bool(self.attributes & LOG_APPEND_TIME_BIT))

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        """
        Whether compaction has stored in the base timestamp when tombstones and markers may be deleted (KIP-534).
        """
        return bool(self.attributes & DELETE_HORIZON_BIT)


@dataclass(slots=True)  # not frozen, and no NamedTuple: those take twice as long to make
class Batch:
    """
    A whole batch: its decoded header, and its bytes from the header on.
    """

    header: BatchHeader
    data: memoryview


class Incomplete(Malformed):
    """
    The bytes end before the batch does.
    """


# Decoders are typed for bytes, which slices need. A table of numbers can be read from any buffer.
_decode_header = cast(Callable[[Buffer, int], tuple[BatchHeader, int]], decoder(BatchHeader, MAGIC))
_pack_head = Struct(">qii").pack  # base offset, batch length, partition leader epoch


def _field(field: str) -> MessageField:
    return MessageField("RecordBatch", MAGIC, field)


def read_header(data: Buffer, pos: int = 0) -> BatchHeader:
    """
    The header at this position, with a possible size and magic. The records need not be there.
    """
    left = len(data) - pos
    if left < HEADER_SIZE:
        raise Incomplete(_field("header"), pos, f"{left} bytes are left, but a header has {HEADER_SIZE}")
    header, _ = _decode_header(data, pos)
    if header.magic != MAGIC:
        raise Malformed(_field("magic"), pos + MAGIC_AT, f"magic {header.magic}, not {MAGIC}")
    if _LENGTH_END + header.batch_length < HEADER_SIZE:
        raise Malformed(_field("batch_length"), pos + 8, f"a batch of {header.size} bytes is shorter than its header")
    return header


def read_batch(data: Buffer, pos: int = 0) -> Batch:
    header = read_header(data, pos)
    end = pos + _LENGTH_END + header.batch_length
    if end > len(data):
        raise Incomplete(_field("batch_length"), pos + 8, f"{header.size} declared, with {len(data) - pos} bytes left")
    return Batch(header, memoryview(data)[pos:end])


def batches(data: Buffer, pos: int = 0, *, cut_tail: bool = False) -> Iterator[Batch]:
    """
    The batches from this position on. With `cut_tail` the last one may be incomplete, as in a fetch response or after a
    crash, and is left out.
    """
    while pos < len(data):
        try:
            batch = read_batch(data, pos)
        except Incomplete:
            if cut_tail:
                return
            raise
        yield batch
        pos += len(batch.data)


def last_header(data: Buffer) -> BatchHeader:
    """
    The header of the last of these whole batches. Only the lengths of the others are read.
    """
    position = following = 0
    while following < len(data):
        position = following
        following += _LENGTH_END + int.from_bytes(data[position + 8 : position + _LENGTH_END], "big")
    return read_header(data, position)


def crc_holds(batch: Batch) -> bool:
    return crc32c(batch.data[CRC_START:]) == batch.header.crc


def was_batch(data: Buffer) -> bool:
    """
    Whether these bytes are a batch, or were one before they were damaged in one place: then they still have the size
    and the magic of the header, or the CRC still matches what it covers.
    """
    if len(data) < HEADER_SIZE:
        return False
    header, _ = _decode_header(data, 0)
    return (header.magic == MAGIC and header.size == len(data)) or crc_holds(Batch(header, memoryview(data)))


def placed(batch: Batch, base_offset: int, leader_epoch: int) -> list[Buffer]:
    """
    The batch at its offset in a log: a new head, and a view of the other bytes as they came.
    """
    return [_pack_head(base_offset, batch.header.batch_length, leader_epoch), batch.data[HEAD_SIZE:]]


def stamped(batch: Batch, timestamp_ms: int) -> Batch:
    """
    The batch with LogAppendTime: one timestamp for all records, whose bytes stay as they came, compressed or not.
    """
    header, payload = copy(batch.header), batch.data[HEADER_SIZE:]
    header.attributes |= LOG_APPEND_TIME_BIT
    header.max_timestamp = timestamp_ms
    header.crc = crc32c(payload, crc32c(encode(header, MAGIC)[CRC_START:]))
    return Batch(header, memoryview(encode(header, MAGIC) + payload))


def written(header: BatchHeader, payload: Buffer) -> Batch:
    """
    The batch of this header and these records. Sets the length and the CRC in the header.
    """
    header.batch_length = HEADER_SIZE - _LENGTH_END + len(payload)
    head = encode(header, MAGIC)
    header.crc = crc32c(payload, crc32c(head[CRC_START:]))
    crc = header.crc.to_bytes(CRC_START - CRC_PLACE, "big")
    return Batch(header, memoryview(b"".join((head[:CRC_PLACE], crc, head[CRC_START:], payload))))


def sent_batch(records: Buffer | None, version: int) -> Batch:
    """
    The one batch that the client sent; a KafkaError, as in Kafka, if it is not one.
    """
    if not records:
        raise KafkaError(ErrorCode.INVALID_RECORD, "exactly one record batch is expected, but there is none")
    try:
        batch = read_batch(records)
    except Malformed as malformed:
        old = len(records) > MAGIC_AT and records[MAGIC_AT] < MAGIC
        code = ErrorCode.INVALID_RECORD if old or isinstance(malformed, Incomplete) else ErrorCode.CORRUPT_MESSAGE
        raise KafkaError(code, str(malformed)) from None
    if version < _ZSTD_SINCE and batch.header.attributes & CODEC_BITS == Codec.ZSTD:
        # `.codec` would fail for unknown codecs, which the log refuses
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd requires Produce v7, but this is v{version}")
    if len(batch.data) != len(records):
        more = len(records) - len(batch.data)
        raise KafkaError(ErrorCode.INVALID_RECORD, f"exactly one record batch is expected, but {more} bytes follow it")
    return batch


def check_size(batch: Batch, bytes_max: int) -> None:
    size = len(batch.data)
    if size > bytes_max:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE, f"the batch has {size} bytes, but the topic accepts at most {bytes_max}"
        )


def check_produced(batch: Batch) -> None:
    """
    Refuse a batch that no producer may send, as Kafka's log does, as far as the header shows it.

    Two checks are not possible here. On a topic with LogAppendTime, Kafka refuses a batch that is flagged so already,
    and overwrites the timestamps of others. And a max timestamp is not to be trusted: Kafka takes any, even one below
    the base, and overwrites it with the largest of the records.
    """
    header, payload_size = batch.header, len(batch.data) - HEADER_SIZE
    count, last = header.records_count, header.last_offset_delta
    if header.base_offset != 0:
        _refuse(f"a batch must have base offset 0, not {header.base_offset}")
    if not crc_holds(batch):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the CRC of the batch does not match its contents")
    if count < 1:
        _refuse(f"the batch declares {count} records")
    if last != count - 1:
        _refuse(f"{count} records end at offset delta {count - 1}, not {last}")
    codec = header.attributes & CODEC_BITS
    if codec == _UNCOMPRESSED and count * _RECORD_SIZE_MIN > payload_size:
        _refuse(f"{count} records do not fit into {payload_size} bytes")
    if header.attributes & CONTROL_BIT:
        _refuse("only the broker may write control batches")
    if header.producer_id >= 0 and header.base_sequence < 0:
        _refuse(f"producer {header.producer_id} sends the sequence number {header.base_sequence}")
    if codec > _LAST_CODEC:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"there is no codec {codec}")


def _refuse(reason: str) -> None:
    raise KafkaError(ErrorCode.INVALID_RECORD, reason)
