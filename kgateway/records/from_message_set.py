"""
Makes a batch of the message set of an old producer, as Kafka's log did: all messages of the set, decompressed, at
consecutive offsets. They are checked as in Kafka. A set that cannot be read at all is refused with INVALID_RECORD,
after which no producer tries again.
"""

from functools import partial
from typing import NamedTuple, NoReturn

from kgateway.records.batch import CODEC_BITS, LOG_APPEND_TIME_BIT, MAGIC, Batch
from kgateway.records.builder import BatchBuilder
from kgateway.records.compression import Codec, decompress
from kgateway.records.message_set import ENTRY_SIZE, LegacyMessage, crc_holds, magic_of, message_at, places
from kgateway.records.old_lz4 import mended
from kgateway.records.record import RECORDS_BYTES_MAX
from kgateway.records.slices import RECORDS_A_STEP, Steps
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed
from kgateway.wire.types import Buffer


class BatchTarget(NamedTuple):
    """
    What a topic takes: the largest batch, and its compression. Without a codec the batch gets the producer's.
    """

    bytes_max: int
    codec: Codec | None = None
    level: int | None = None


class _Outline(NamedTuple):
    messages: int
    codec: Codec


def upgraded(records: Buffer, target: BatchTarget) -> Steps[Batch | None]:
    """
    The batch of this set; `None` if it has no whole message.
    """
    try:
        return (yield from _upgraded(records, target))
    except Malformed as malformed:
        raise KafkaError(ErrorCode.INVALID_RECORD, str(malformed)) from None


def _upgraded(records: Buffer, target: BatchTarget) -> Steps[Batch | None]:
    data: bytes = yield partial(bytes, records)
    outline = yield from _outline(data, target.bytes_max)
    if not outline.messages:
        return None
    codec = outline.codec if target.codec is None else target.codec
    builder = BatchBuilder(codec=codec, level=target.level if codec is target.codec else None)
    take = _take_bare if outline.codec is Codec.NONE else _take_wrapped
    yield from take(builder, data, target.bytes_max)
    batch: Batch = yield builder.batch
    return batch


def _outline(data: bytes, bytes_max: int) -> Steps[_Outline]:
    count, first_magic, codec = 0, 0, Codec.NONE
    for count, (_, start, end) in enumerate(places(data), 1):
        if count % RECORDS_A_STEP == 0:
            yield None
        if end - start + ENTRY_SIZE > bytes_max:
            _refuse_size(f"the message has {end - start + ENTRY_SIZE} bytes", bytes_max)
        magic = magic_of(data, start)
        if magic > MAGIC:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"there is no magic {magic}")
        if count == 1:
            first_magic = magic
        if magic != first_magic or magic == MAGIC:
            _refuse(f"a message of magic {magic} is among those of magic {first_magic}")
        if not crc_holds(data, start, end):
            _refuse_crc()
        message = message_at(data, start, end)
        if magic and message.attributes & LOG_APPEND_TIME_BIT:
            _refuse_stamp()
        codec = codec or _codec(message)
    if codec and count > 1:
        _refuse(f"a compressed message must be the only one, but there are {count}")
    return _Outline(count, codec)


def _take_bare(builder: BatchBuilder, data: bytes, bytes_max: int) -> Steps[None]:
    for count, (_, start, end) in enumerate(places(data)):
        if count % RECORDS_A_STEP == 0:
            yield None
        _put(builder, message_at(data, start, end), bytes_max)


def _take_wrapped(builder: BatchBuilder, data: bytes, bytes_max: int) -> Steps[None]:
    """
    Add the messages inside the one compressed message of a set to the batch.
    """
    [(offset, start, end), *_] = places(data)
    wrapper = message_at(data, start, end)
    inner: bytes = yield partial(_unwrapped, wrapper)
    last: int | None = None
    for count, (inner_offset, start, end) in enumerate(places(inner)):
        if count % RECORDS_A_STEP == 0:
            yield None
        if magic_of(inner, start) != wrapper.magic:
            _refuse(f"a message of magic {wrapper.magic} wraps one of magic {magic_of(inner, start)}")
        if not crc_holds(inner, start, end):
            _refuse_crc()
        message = message_at(inner, start, end)
        if _codec(message) is not Codec.NONE:
            _refuse("a message inside a compressed one is compressed")
        _put(builder, message, bytes_max)
        last = inner_offset
    if last is None:
        _refuse("a compressed message contains no messages")
    # Some versions of librdkafka send 0.
    if wrapper.magic and 0 != offset < last:
        _refuse(f"a compressed message has the offset {offset}, but the last one inside has {last}")


def _put(builder: BatchBuilder, message: LegacyMessage, bytes_max: int) -> None:
    builder.append(message.key, message.value, timestamp=message.timestamp)
    if builder.codec is Codec.NONE and builder.size > bytes_max:  # it will not be compressed
        _refuse_size("the messages make a batch of more", bytes_max)


def _codec(message: LegacyMessage) -> Codec:
    number = message.attributes & CODEC_BITS
    if number == Codec.ZSTD:
        _refuse(f"a message of magic {message.magic} cannot be compressed with zstd")
    if number > Codec.ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"there is no codec {number}")
    return Codec(number)


def _unwrapped(wrapper: LegacyMessage) -> bytes:
    codec, value = _codec(wrapper), wrapper.value
    if value is None:
        _refuse("a compressed message has no value")
    if codec is Codec.LZ4 and wrapper.magic == 0:
        value = mended(value)
    try:
        return decompress(codec, value, RECORDS_BYTES_MAX)
    except ValueError as damage:
        _refuse(str(damage))


def _refuse(reason: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_RECORD, reason)


def _refuse_crc() -> NoReturn:
    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the CRC of a message does not match its contents")


def _refuse_stamp() -> NoReturn:
    reason = "the message is marked LogAppendTime, which only the broker may do"
    raise KafkaError(ErrorCode.INVALID_TIMESTAMP, reason)


def _refuse_size(what: str, bytes_max: int) -> NoReturn:
    raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"{what}, but the topic accepts at most {bytes_max}")
