"""
What a producer sends for one partition, as the batch that is appended.
"""

from kgateway.cluster.config import TopicConfig
from kgateway.records.batch import (
    CODEC_BITS,
    MAGIC,
    Batch,
    Incomplete,
    check_produced,
    check_size,
    read_batch,
    read_header,
)
from kgateway.records.compression import Codec
from kgateway.records.message_set import MAGIC_AT
from kgateway.records.recompressed import recompressed
from kgateway.records.steps import AT_ONCE_MAX, Steps
from kgateway.records.upgraded import Target, upgraded
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.malformed import Malformed
from kgateway.wire.types import Buffer

MESSAGE_SETS_UNTIL = 2  # the last version of Produce that has them
_ZSTD_SINCE = 7


def the_batch(records: Buffer | None, version: int) -> Batch:
    """
    The one batch that is there, refused as Kafka refuses it.
    """
    if not records:
        raise KafkaError(ErrorCode.INVALID_RECORD, "exactly one record batch is expected, and none came")
    try:
        batch = read_batch(records)
    except Malformed as malformed:
        old = len(records) > MAGIC_AT and records[MAGIC_AT] < MAGIC
        code = ErrorCode.INVALID_RECORD if old or isinstance(malformed, Incomplete) else ErrorCode.CORRUPT_MESSAGE
        raise KafkaError(code, str(malformed)) from None
    if version < _ZSTD_SINCE and batch.header.attributes & CODEC_BITS == Codec.ZSTD:
        # not `.codec`: the log refuses codecs without a name
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd came with Produce v7, this is v{version}")
    if len(batch.data) != len(records):
        more = len(records) - len(batch.data)
        raise KafkaError(ErrorCode.INVALID_RECORD, f"exactly one record batch is expected, {more} bytes follow it")
    return batch


def takes_long(records: Buffer | None) -> bool:
    """
    Whether more than some milliseconds may go by until all records of the batch were looked at.
    """
    try:
        header = read_header(records or b"")
    except Malformed:  # which is found soon
        return False
    return header.records_count > AT_ONCE_MAX or bool(header.attributes & CODEC_BITS)


def incoming(records: Buffer | None, version: int, config: TopicConfig) -> Steps[Batch | None]:
    """
    The batch, made of a message set where one came, and compressed as the topic wants it; `None` where there was no
    message, of which Kafka makes nothing either.
    """
    if version <= MESSAGE_SETS_UNTIL and not _begins_with_batch(records):
        target = Target(config.max_message_bytes, config.codec, config.compression_level)
        return (yield from upgraded(records or b"", target))
    batch = the_batch(records, version)
    codec = config.codec
    if codec is None or batch.header.attributes & CODEC_BITS == codec:
        return batch
    check_size(batch, config.max_message_bytes)
    check_produced(batch)  # as it came: nobody can tell it of what is made of it
    return (yield from recompressed(batch, codec, config.compression_level))


def _begins_with_batch(records: Buffer | None) -> bool:
    return records is not None and len(records) > MAGIC_AT and records[MAGIC_AT] == MAGIC
