"""
What a topic takes from a client.
"""

from typing import Any

import pytest

from kgateway.broker.admission import check_admission
from kgateway.cluster.config import TopicConfig
from kgateway.records.batch import Batch, TimestampType
from kgateway.records.compression import Codec
from kgateway.wire.errors import KafkaError
from tests.broker.behaviour import START_MS, at_times, batch
from tests.records.sealed import sealed

BY_APPEND: dict[str, Any] = {"timestamp_type": TimestampType.LOG_APPEND_TIME}
BOUNDS: dict[str, Any] = {"timestamp_before_max_ms": 1_000, "timestamp_after_max_ms": 10}
RANGE = "is not between 1799999999000 and 1800000000010, as the topic has it now"


def refused(sent: Batch, **config: Any) -> str:
    """
    In which words a batch is refused, now.
    """
    with pytest.raises(KafkaError) as error:
        check_admission(sent, TopicConfig(**config), START_MS)
    return str(error.value)


def test_size_has_a_limit() -> None:
    """
    A batch may have as many bytes as the topic says, header and all, and not one more.
    """
    sent = batch(3, codec=Codec.GZIP)
    size = len(sent.data)
    check_admission(sent, TopicConfig(max_message_bytes=size), START_MS)
    reason = f"MESSAGE_TOO_LARGE: the batch has {size} bytes, and the topic takes {size - 1}"
    assert refused(sent, max_message_bytes=size - 1) == reason


def test_size_is_judged_first() -> None:
    """
    Nothing more is looked at in a batch that is too large.
    """
    damaged = batch()._replace(data=memoryview(bytes(100)))
    assert refused(damaged, max_message_bytes=99).startswith("MESSAGE_TOO_LARGE: ")
    assert refused(damaged, max_message_bytes=100).startswith("CORRUPT_MESSAGE: ")


def test_header_is_judged() -> None:
    """
    What no producer may send is refused, whatever the topic.
    """
    assert refused(sealed(batch(), records_count=2)) == "INVALID_RECORD: 2 records end at offset delta 1, not 0"


@pytest.mark.parametrize("timestamp", [START_MS - 1_000, START_MS, START_MS + 10, -1])
def test_timestamps_in_range(timestamp: int) -> None:
    """
    Timestamps may be as far from the broker's time as the topic says, or not be there.
    """
    check_admission(batch(timestamp=timestamp), TopicConfig(**BOUNDS), START_MS)


@pytest.mark.parametrize("timestamp", [START_MS - 1_001, START_MS + 11, -2, 0])
@pytest.mark.parametrize("where", ["base_timestamp", "max_timestamp"])
def test_timestamps_out_of_range(where: str, timestamp: int) -> None:
    """
    One of the two timestamps in the header too far before or after is enough.
    """
    sent = sealed(batch(), **{where: timestamp})
    assert refused(sent, **BOUNDS) == f"INVALID_TIMESTAMP: the timestamp {timestamp} {RANGE}"


def test_bounds_of_a_topic_by_default() -> None:
    """
    A timestamp may be as old as it likes, and an hour ahead.
    """
    hour_ms = 3_600_000
    check_admission(at_times(0, START_MS + hour_ms), TopicConfig(), START_MS)
    assert refused(batch(timestamp=START_MS + hour_ms + 1)).startswith("INVALID_TIMESTAMP: ")


def test_timestamps_that_the_broker_sets() -> None:
    """
    With LogAppendTime the producer's timestamps do not matter.
    """
    check_admission(at_times(0, START_MS * 2), TopicConfig(**BY_APPEND, **BOUNDS), START_MS)


@pytest.mark.parametrize("config", [{}, BY_APPEND])
def test_only_the_broker_stamps(config: dict[str, Any]) -> None:
    """
    A batch that comes with LogAppendTime is refused by every topic.
    """
    reason = "INVALID_TIMESTAMP: the batch is marked LogAppendTime, which the broker alone may do"
    assert refused(batch(log_append_time_ms=START_MS), **config) == reason
