"""
Judges a client's batch for the topic it is sent to: the same for every broker.

Kafka opens every batch and judges each record. Here the header speaks for them as far as it can, with the two it has of
their timestamps: the first record's and the largest. A batch is opened where these are not enough, as the topic is
compacted and so wants a key in every record, or has a bound for how old timestamps may be; and where it is going to be
refused, for the client is told which records are to blame, unless there are too many of them to look at.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.records.batch import (
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    Batch,
    BatchHeader,
    TimestampType,
    check_produced,
    check_size,
)
from kgateway.records.entries import entries, timestamp_at
from kgateway.records.payload import Payload, payload_of
from kgateway.records.steps import AT_ONCE_MAX, RECORDS_A_STEP, Steps, at_once
from kgateway.wire.errors import BadRecord, ErrorCode, KafkaError, RecordsRefused
from kgateway.wire.malformed import Malformed

BAD_RECORDS_MAX = 1_000  # that are told: behind a small batch that is compressed well there may be millions


class Bounds(NamedTuple):
    """
    Between which times a topic takes the timestamps of producers, now.
    """

    earliest: int
    latest: int


def check_admission(batch: Batch, config: TopicConfig, now_ms: int, partition: str) -> None:
    """
    Refuse a batch that no producer may send, or not to a partition (of this name) of a topic with these settings.
    """
    check_header(batch, config)
    bounds = _bounds(batch, config, now_ms)
    if bounds or config.compacts:
        at_once(_judged(batch, config, bounds, partition))


def admission(batch: Batch, config: TopicConfig, now_ms: int, partition: str) -> Steps[None]:
    """
    The same, where others may go on meanwhile.
    """
    check_header(batch, config)
    bounds = _bounds(batch, config, now_ms)
    if bounds or config.compacts:
        yield from _judged(batch, config, bounds, partition)


def check_header(batch: Batch, config: TopicConfig) -> None:
    """
    Refuse what the header alone tells of.
    """
    check_size(batch, config.max_message_bytes)  # first: the CRC of what is too large need not be computed
    check_produced(batch)
    # A topic with LogAppendTime refuses this in Kafka too. One with CreateTime takes it there and removes the mark.
    if batch.header.attributes & LOG_APPEND_TIME_BIT:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP, "the batch is marked LogAppendTime, which the broker alone may do"
        )


def _bounds(batch: Batch, config: TopicConfig, now_ms: int) -> Bounds | None:
    return _in_question(batch, config, now_ms) if config.timestamp_type is TimestampType.CREATE_TIME else None


def _in_question(batch: Batch, config: TopicConfig, now_ms: int) -> Bounds | None:
    """
    The bounds that a record of the batch may be out of. A header that is within them answers for every record where
    only the largest timestamp matters, as it does unless the topic limits the age of records.
    """
    earliest, latest = now_ms - config.timestamp_before_max_ms, now_ms + config.timestamp_after_max_ms
    if config.timestamp_before_max_ms == LONG_MAX:
        header = batch.header
        if earliest <= header.base_timestamp <= latest and earliest <= header.max_timestamp <= latest:
            return None
    return Bounds(earliest, latest)


def _judged(batch: Batch, config: TopicConfig, bounds: Bounds | None, partition: str) -> Steps[None]:
    header = batch.header
    if bounds and not config.judges_records and header.records_count > AT_ONCE_MAX:
        between = f"between {bounds.earliest} and {bounds.latest}"
        reason = f"the timestamps in the header, {header.base_timestamp} and {header.max_timestamp}, are not {between}"
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, reason)
    yield from _check_records(batch, config.compacts, bounds, partition)
    if bounds:
        _check_largest(header.max_timestamp, bounds)


def _check_records(batch: Batch, compacts: bool, bounds: Bounds | None, partition: str) -> Steps[None]:
    """
    Open the batch, and refuse it with all its records that the topic does not take, in Kafka's words.
    """
    bad = list[BadRecord]()
    try:
        payload = yield partial(payload_of, batch)
        for number, found in enumerate(_judgements(batch.header, payload, compacts, bounds, partition)):
            if not number % RECORDS_A_STEP:
                yield None
            if found and len(bad) < BAD_RECORDS_MAX:
                bad.append(found)
    except Malformed as malformed:
        reason = f"the topic takes only records that can be read: {malformed}"
        raise KafkaError(ErrorCode.INVALID_RECORD, reason) from None
    if bad:
        raise RecordsRefused(tuple(bad))


def _judgements(
    header: BatchHeader, payload: Payload, compacts: bool, bounds: Bounds | None, partition: str
) -> Iterator[BadRecord | None]:
    """
    What is wrong with each record.
    """
    earliest, latest = bounds or (0, 0)  # which nobody asks for then
    for number, (start, _, offset, key, _) in enumerate(entries(payload, header.records_count)):
        found = None
        if compacts and key is None:
            reason = f"Compacted topic cannot accept message without key in topic partition {partition}"
            found = BadRecord(ErrorCode.INVALID_RECORD, number, reason)
        elif bounds:
            timestamp = header.base_timestamp + timestamp_at(payload.data, start)[0]
            if not earliest <= timestamp <= latest and timestamp != NO_TIMESTAMP:
                found = BadRecord(ErrorCode.INVALID_TIMESTAMP, number, _out_of_range(timestamp, offset, bounds))
        yield found


def _out_of_range(timestamp: int, offset: int, bounds: Bounds) -> str:
    within = f"The timestamp should be within [{bounds.earliest}, {bounds.latest}]"
    return f"Timestamp {timestamp} of message with offset {offset} is out of range. {within}"


def _check_largest(timestamp: int, bounds: Bounds) -> None:
    """
    Refuse a header that names as the largest timestamp what is not even one. Kafka writes the true one over it.
    """
    if not bounds.earliest <= timestamp <= bounds.latest and timestamp != NO_TIMESTAMP:
        between = f"between {bounds.earliest} and {bounds.latest}"
        reason = f"the largest timestamp is {timestamp} by the header, not {between}"
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, reason)
