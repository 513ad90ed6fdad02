"""
Waiting for the streams of the previous leader, by a clock that the test sets, and in front of a real broker.
"""

from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.protos.messaging_pb2 import BrokerPartitionAssignment
from kgateway.broker.seaweedmq.partitions.predecessor_streams import GONE_S, PredecessorStreams
from kgateway.broker.seaweedmq.topics.broker_rpc import BrokerRpc
from tests.broker.seaweedmq.foreign_topic import ForeignTopic
from tests.broker.seaweedmq.gateways import Start, running


class Brokers:
    """
    Two brokers, each the leader of some partitions.
    """

    def __init__(self) -> None:
        self.leaders = ["one", "one", "two"]  # of the partitions
        self.published = {0, 1, 2}  # partitions with a publisher
        self.asked = 0

    async def has_publisher(self, topic: str, assignment: BrokerPartitionAssignment) -> bool:
        self.asked += 1
        return int(topic.removeprefix("t")) in self.published


class World:
    def __init__(self) -> None:
        self.clock, self.brokers = Clock(), Brokers()
        self.streams = PredecessorStreams(cast("BrokerRpc", self.brokers), self.clock)

    def waiting(self, index: int) -> Deferred[Any]:
        async def assignment() -> BrokerPartitionAssignment:
            return BrokerPartitionAssignment(leader_broker=self.brokers.leaders[index])

        return Deferred.fromCoroutine(self.streams.until_gone(f"t{index}", index, assignment))


@pytest.fixture
def world() -> World:
    return World()


def test_it_waits_until_the_broker_has_closed_the_stream(world: World) -> None:
    waiting = world.waiting(0)
    world.clock.pump([0.05] * 5)
    assert not waiting.called
    world.brokers.published.remove(0)
    world.clock.advance(0.05)
    assert waiting.called


def test_a_partition_without_publishers_is_ready_at_once(world: World) -> None:
    world.brokers.published.clear()
    assert world.waiting(0).called
    assert world.brokers.asked == 1


def test_streams_of_other_programs_delay_all_partitions_of_a_broker_once(world: World) -> None:
    """
    The deadline of another broker begins when that one responds.
    """
    first, second = world.waiting(0), world.waiting(1)
    world.clock.advance(GONE_S - 0.1)
    third = world.waiting(2)
    assert not first.called
    world.clock.pump([0.05] * 3)
    assert first.called
    assert second.called
    assert world.waiting(1).called
    assert not third.called
    world.clock.pump([GONE_S, 0.05])
    assert third.called


def test_a_gateway_that_begins_to_lead_waits_for_streams_that_are_open(
    cluster: DevCluster, namespace: str, start: Start
) -> None:
    """
    It says so, and opens the partition nevertheless.
    """
    theirs = ForeignTopic(cluster, None, "theirs", namespace)
    with theirs.stream(), capturedLogs() as events, running(start):
        lines = [str(formatEvent(event)) for event in events]
    [line] = [line for line in lines if "earlier publish streams" in line]
    assert line.startswith("theirs-0: waited ")
