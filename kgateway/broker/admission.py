"""
Judges a client's batch for the topic it is sent to, as far as its header tells: the same for every broker.

Kafka opens every batch and judges the timestamp of each record. Here the header speaks for them, with the two it has:
the first record's and the largest.
"""

from kgateway.cluster.config import TopicConfig
from kgateway.records.batch import LOG_APPEND_TIME_BIT, NO_TIMESTAMP, Batch, TimestampType, check_produced
from kgateway.wire.errors import ErrorCode, KafkaError


def check_admission(batch: Batch, config: TopicConfig, now_ms: int) -> None:
    """
    Refuse a batch that no producer may send, or not to a topic with these settings.
    """
    size = len(batch.data)
    if size > config.max_message_bytes:  # first: the CRC of what is too large need not be computed
        reason = f"the batch has {size} bytes, and the topic takes {config.max_message_bytes}"
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, reason)
    check_produced(batch)
    # A topic with LogAppendTime refuses this in Kafka too. One with CreateTime takes it there and removes the mark.
    if batch.header.attributes & LOG_APPEND_TIME_BIT:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP, "the batch is marked LogAppendTime, which the broker alone may do"
        )
    if config.timestamp_type is TimestampType.CREATE_TIME:
        _check_timestamps(batch, config, now_ms)


def _check_timestamps(batch: Batch, config: TopicConfig, now_ms: int) -> None:
    earliest, latest = now_ms - config.timestamp_before_max_ms, now_ms + config.timestamp_after_max_ms
    for timestamp in (batch.header.base_timestamp, batch.header.max_timestamp):
        if not earliest <= timestamp <= latest and timestamp != NO_TIMESTAMP:
            reason = f"the timestamp {timestamp} is not between {earliest} and {latest}, as the topic has it now"
            raise KafkaError(ErrorCode.INVALID_TIMESTAMP, reason)
