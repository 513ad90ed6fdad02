"""
Checks a client's batch for the topic it is sent to, in the same way for every broker.

Kafka opens every batch and checks each record. Here the header stands for them as far as possible, with the two of
their timestamps that it has: the first record's and the largest. A batch is opened if these are not enough: in a
compacted topic each record needs a key, and a topic may limit how old timestamps are. It is also opened before it is
refused, because the answer names the records that are to blame, unless there are too many of them.
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
    check_produced,
    check_size,
)
from kgateway.records.record import Payload, entries, payload_of, timestamp_at
from kgateway.records.slices import AT_ONCE_MAX, RECORDS_A_STEP, Steps, at_once
from kgateway.wire.errors import BadRecord, ErrorCode, KafkaError, Malformed, RecordsRefused

BAD_RECORDS_MAX = 1_000  # named to the client: a small, well compressed batch may have millions


class Bounds(NamedTuple):
    """
    The earliest and the latest timestamp that a topic accepts now.
    """

    earliest: int
    latest: int


def check_batch(batch: Batch, config: TopicConfig, now_ms: int, partition: str) -> None:
    """
    Refuse a batch that no producer may send, or not to this partition with these configs.
    """
    check_header(batch, config)
    bounds = _bounds_to_check(batch, config, now_ms)
    if bounds or config.compacts:
        at_once(_check_contents(batch, config, bounds, partition))


def check_batch_in_steps(batch: Batch, config: TopicConfig, now_ms: int, partition: str) -> Steps[None]:
    check_header(batch, config)
    bounds = _bounds_to_check(batch, config, now_ms)
    if bounds or config.compacts:
        yield from _check_contents(batch, config, bounds, partition)


def check_header(batch: Batch, config: TopicConfig) -> None:
    """
    Refuse what the header alone shows to be wrong.
    """
    check_size(batch, config.max_message_bytes)  # first, so that the CRC of too large a batch is not computed
    check_produced(batch)
    # A topic with LogAppendTime refuses this in Kafka too. One with CreateTime takes it there and removes the mark.
    if batch.header.attributes & LOG_APPEND_TIME_BIT:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "the batch is marked LogAppendTime, which only the broker may do")


def _bounds_to_check(batch: Batch, config: TopicConfig, now_ms: int) -> Bounds | None:
    """
    The bounds against which the records must be checked one by one, if the header leaves that open. One within them
    stands for every record if only the largest timestamp matters, as it does unless the topic limits the age of
    records.
    """
    if config.stamps:
        return None
    earliest, latest = now_ms - config.timestamp_before_max_ms, now_ms + config.timestamp_after_max_ms
    if config.timestamp_before_max_ms == LONG_MAX:
        header = batch.header
        if earliest <= header.base_timestamp <= latest and earliest <= header.max_timestamp <= latest:
            return None
    return Bounds(earliest, latest)


def _check_contents(batch: Batch, config: TopicConfig, bounds: Bounds | None, partition: str) -> Steps[None]:
    header = batch.header
    if bounds and not config.validates_records and header.records_count > AT_ONCE_MAX:
        between = f"between {bounds.earliest} and {bounds.latest}"
        reason = f"the timestamps in the header, {header.base_timestamp} and {header.max_timestamp}, are not {between}"
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, reason)
    yield from _check_records(batch, config.compacts, bounds, partition)
    if bounds:
        _check_largest(header.max_timestamp, bounds)


def _check_records(batch: Batch, compacts: bool, bounds: Bounds | None, partition: str) -> Steps[None]:
    """
    Open the batch; refuse it, in Kafka's words, and name its records that the topic does not accept.
    """
    bad = list[BadRecord]()
    try:
        payload = yield partial(payload_of, batch)
        for number, found in enumerate(_bad_records(batch.header, payload, compacts, bounds, partition)):
            if not number % RECORDS_A_STEP:
                yield None
            if found and len(bad) < BAD_RECORDS_MAX:
                bad.append(found)
    except Malformed as malformed:
        reason = f"the topic accepts only records that can be read: {malformed}"
        raise KafkaError(ErrorCode.INVALID_RECORD, reason) from None
    if bad:
        raise RecordsRefused(tuple(bad))


def _bad_records(
    header: BatchHeader, payload: Payload, compacts: bool, bounds: Bounds | None, partition: str
) -> Iterator[BadRecord | None]:
    earliest, latest = bounds or (0, 0)  # unused then
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
    Refuse a header whose max timestamp is out of bounds although no record's is. Kafka overwrites it with the true
    maximum.
    """
    if not bounds.earliest <= timestamp <= bounds.latest and timestamp != NO_TIMESTAMP:
        between = f"between {bounds.earliest} and {bounds.latest}"
        reason = f"the largest timestamp in the header is {timestamp}, not {between}"
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, reason)
