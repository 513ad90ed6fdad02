"""
Heartbeats that contradict themselves.
"""

from typing import Any

import pytest

from kgateway.groups.consumer.member_check import check_heartbeat
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.groups.consumer.model import topic_id

ASSIGNORS = "uniform,range"
OWNED = [ConsumerGroupHeartbeatRequest.TopicPartition(topic_id=topic_id(1), partitions=[0])]
JOIN: dict[str, Any] = {
    "group_id": "g",
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 1000,
    "subscribed_topic_names": [],
    "topic_partitions": [],
}
BEAT: dict[str, Any] = {"group_id": "g", "member_id": "m", "member_epoch": 5}


def check(version: int = 1, **values: Any) -> None:
    check_heartbeat(ConsumerGroupHeartbeatRequest(**values), version, ASSIGNORS)


@pytest.mark.parametrize(
    "values",
    [
        JOIN,
        {**JOIN, "subscribed_topic_names": None, "subscribed_topic_regex": ""},
        {**JOIN, "instance_id": "i", "rack_id": "r", "server_assignor": "range"},
        BEAT,
        {**BEAT, "member_epoch": -1},
        {**BEAT, "member_epoch": -2, "instance_id": "i"},
        {**BEAT, "topic_partitions": OWNED},
    ],
)
def test_valid_requests_pass(values: dict[str, Any]) -> None:
    check(**values)


@pytest.mark.parametrize(
    "values",
    [
        {**JOIN, "group_id": ""},
        {**JOIN, "member_id": ""},
        {**JOIN, "instance_id": ""},
        {**JOIN, "rack_id": ""},
        {**JOIN, "rebalance_timeout_ms": -1},
        {**JOIN, "topic_partitions": None},
        {**JOIN, "topic_partitions": OWNED},
        {**JOIN, "subscribed_topic_names": None},
        {**BEAT, "member_epoch": -3},
        {**BEAT, "member_epoch": -2},
        {**BEAT, "member_id": ""},
    ],
)
def test_contradictory_requests_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(KafkaError) as raised:
        check(**values)
    assert raised.value.code is ErrorCode.INVALID_REQUEST
    assert raised.value.message


def test_a_member_id_is_needed_after_the_join() -> None:
    """
    Before v1 a member may join without an id.
    """
    check(0, **{**JOIN, "member_id": ""})
    for epoch in (1, -1):
        with pytest.raises(KafkaError, match="member_id"):
            check(0, **{**BEAT, "member_id": "", "member_epoch": epoch})


def test_unknown_assignors_are_refused() -> None:
    """
    The message lists the known ones.
    """
    with pytest.raises(KafkaError, match="mine is not one of uniform, range") as raised:
        check(**JOIN, server_assignor="mine")
    assert raised.value.code is ErrorCode.UNSUPPORTED_ASSIGNOR
