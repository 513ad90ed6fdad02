"""
Refused requests leave no reference cycles, because a cycle may keep a large frame alive.
"""

import gc
from collections.abc import Iterator
from types import FrameType

import pytest

from kgateway.context import Context
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.handlers.consumer_group_heartbeat import consumer_group_heartbeat
from kgateway.handlers.delete_groups import delete_groups
from kgateway.handlers.heartbeat import heartbeat
from kgateway.handlers.incremental_alter_configs import incremental_alter_configs
from kgateway.handlers.join_group import join_group
from kgateway.handlers.offset_commit import offset_commit
from kgateway.handlers.offset_delete import offset_delete
from kgateway.handlers.produce import produce
from kgateway.handlers.sync_group import sync_group
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.messages.delete_groups import DeleteGroupsRequest
from kgateway.messages.heartbeat import HeartbeatRequest
from kgateway.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kgateway.messages.join_group import JoinGroupRequest
from kgateway.messages.offset_commit import OffsetCommitRequest
from kgateway.messages.offset_delete import OffsetDeleteRequest
from kgateway.messages.produce import ProduceRequest
from kgateway.messages.sync_group import SyncGroupRequest
from kgateway.server.request_queue import PendingAnswer
from kgateway.wire.schema import Message
from tests.groups.empty_groups import beginning, empty_consumer
from tests.server.dispatcher import Dispatching

TIMES = 20
HANDLERS = (
    consumer_group_heartbeat,
    delete_groups,
    heartbeat,
    incremental_alter_configs,
    join_group,
    offset_commit,
    offset_delete,
    produce,
    sync_group,
)

ALTERED = IncrementalAlterConfigsRequest.Resource(
    resource_type=32,
    resource_name="g",
    configs=[IncrementalAlterConfigsRequest.Resource.Config(name="unknown", config_operation=0, value="1")],
)
OFFSET = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=1, committed_metadata="")
PRODUCED = ProduceRequest.TopicData(
    name="t", partition_data=[ProduceRequest.TopicData.PartitionData(index=0, records=b"")]
)
REFUSED: list[tuple[Message, int]] = [
    (
        SyncGroupRequest(
            group_id="none", generation_id=1, member_id="m", protocol_type="t", protocol_name="p", assignments=[]
        ),
        5,
    ),
    (
        SyncGroupRequest(
            group_id="g", generation_id=1, member_id="m", protocol_type=None, protocol_name=None, assignments=[]
        ),
        5,
    ),
    (
        JoinGroupRequest(
            group_id="busy",
            member_id="",
            rebalance_timeout_ms=1,
            session_timeout_ms=10_000,
            protocol_type="connect",
            protocols=[],
        ),
        9,
    ),
    (
        JoinGroupRequest(
            group_id="none",
            member_id="",
            rebalance_timeout_ms=1,
            session_timeout_ms=1,
            protocol_type="consumer",
            protocols=[],
        ),
        9,
    ),
    (
        JoinGroupRequest(
            group_id="g",
            member_id="",
            rebalance_timeout_ms=1,
            session_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[],
        ),
        9,
    ),
    (HeartbeatRequest(group_id="none", generation_id=1, member_id="m"), 4),
    (ConsumerGroupHeartbeatRequest(group_id="busy", member_id="other", member_epoch=4), 1),
    (ConsumerGroupHeartbeatRequest(group_id="none", member_id="other", member_epoch=4), 1),
    (OffsetDeleteRequest(group_id="none", topics=[]), 0),
    (DeleteGroupsRequest(groups_names=["none", "busy"]), 2),
    (
        OffsetCommitRequest(
            group_id="none",
            generation_id_or_member_epoch=4,
            member_id="m",
            topics=[OffsetCommitRequest.Topic(name="t", partitions=[OFFSET])],
        ),
        9,
    ),
    (ProduceRequest(acks=2, timeout_ms=1_000, topic_data=[PRODUCED]), 9),
    (IncrementalAlterConfigsRequest(resources=[ALTERED], validate_only=False), 1),
]


@pytest.fixture
def serving() -> Iterator[Dispatching]:
    """
    A gateway without automatic garbage collection.
    """
    gc.disable()
    made = Dispatching(*HANDLERS)
    groups = made.parts.service(GroupCoordinator)
    empty_consumer(groups, "g")
    made.send(beginning("busy"), 1)
    yield made
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


def names(value: object) -> str:
    return type(value).__name__ if isinstance(value, Message) else str(value)


@pytest.mark.parametrize(("request_", "version"), REFUSED, ids=names)
def test_a_refused_request_is_freed(serving: Dispatching, request_: Message, version: int) -> None:
    """
    It is freed with its answer, without the garbage collector.
    """
    assert not isinstance(serving.send(request_, version), PendingAnswer)
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    for _ in range(TIMES):
        serving.send(request_, version)
    gc.collect()
    assert [found for found in gc.garbage if isinstance(found, Context | FrameType | type(request_))] == []
    assert serving.reasons.latest(1)
