"""
A gateway stands still until its lock expires, and notices at the worst moments.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.logger import capturedLogs, formatEvent

from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.broker.seaweedmq.leader.led_topics import LedTopics
from kgateway.broker.seaweedmq.topics.broker_rpc import BrokerRpc
from kgateway.broker.seaweedmq.topics.catalog import TopicCatalog
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import NewTopic
from kgateway.groups.records import Row, encoded
from kgateway.messages.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid
from tests.broker.behaviour import appended, noted, refusal, result, sequenced
from tests.broker.seaweed.real_reactor import reactor, until, wait
from tests.broker.seaweedmq.gateways import Start, group_log, leader, lease, running

BATCHES = TopicConfig.of({"seaweedmq.format": "batch"})


def stall(broker: SeaweedMQBroker) -> None:
    """
    Let the lock expire; it is renewed soon, and still ours.
    """
    lease(broker)._until = 0.0


def stay_stalled(broker: SeaweedMQBroker) -> None:
    """
    Let the lock expire, and not be renewed any more.
    """
    lease(broker)._stop_renewing()


def is_awake(broker: SeaweedMQBroker) -> bool:
    """
    Whether the gateway knows that it still leads.
    """
    try:
        lease(broker).check()
    except KafkaError:
        return False
    return True


def end_of(broker: SeaweedMQBroker, topic_id: Uuid) -> int:
    """
    The end of the first partition, once that is open.
    """
    opened = leader(broker).topics.registry.opened(broker.view().topics_by_id[topic_id], 0)
    return result(Deferred.fromCoroutine(opened)).log_end


def stalling(broker: SeaweedMQBroker, real: Callable[..., Awaitable[Any]], *, after: bool) -> Callable[..., Any]:
    """
    Make the gateway stall once, amid this method or after it.
    """
    times = iter([True])

    async def method(*arguments: Any) -> Any:
        if next(times, False) and not after:
            stall(broker)
            return await real(*arguments)
        outcome = await real(*arguments)
        if after:
            stall(broker)
        return outcome

    return method


def test_the_state_of_groups_is_kept_in_the_end(start: Start) -> None:
    """
    Their topic, created just then, is found after the next start, with everything that was acknowledged.
    """
    with running(start) as broker:
        stall(broker)
        noted(group_log(broker), [(b"a", b"1")])
        assert is_awake(broker)
    with running(start) as broker:
        assert "__consumer_offsets" in broker.view().topics
        log = group_log(broker)
        assert dict(pair for piece in result(log.replay()) for pair in piece) == {b"a": b"1"}


def test_a_topic_that_could_not_be_removed_is_there(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It has its records, and can be deleted and created again.
    """
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, BATCHES)))
        appended(broker.partition(topic.id, 0), sequenced(0))
        monkeypatch.setattr(TopicCatalog, "delete", stalling(broker, TopicCatalog.delete, after=False))
        assert refusal(lambda: broker.delete_topic(topic.id)).code is ErrorCode.NOT_CONTROLLER
        until(lambda: "t" in broker.view().topics and is_awake(broker))
        assert broker.view().topics["t"].id == topic.id
        assert end_of(broker, topic.id) == 1
        result(broker.delete_topic(topic.id))
        result(broker.create_topic(NewTopic("t", 1, BATCHES)))


def test_a_topic_that_was_half_made_is_seen(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    So it can be deleted and created again.
    """
    with running(start) as broker:
        with monkeypatch.context() as patched:
            patched.setattr(BrokerRpc, "configure_like", stalling(broker, BrokerRpc.configure_like, after=True))
            assert refusal(lambda: broker.create_topic(NewTopic("t", 1, BATCHES))).code is ErrorCode.NOT_CONTROLLER
        until(lambda: "t" in broker.view().topics and is_awake(broker))
        result(broker.delete_topic(broker.view().topics["t"].id))
        assert result(broker.create_topic(NewTopic("t", 1, BATCHES))).config == BATCHES


def test_what_is_missing_before_a_batch_is_not_its_to_say(start: Start) -> None:
    """
    Another gateway may have the missing batch: the producer has to ask that one, and must not drop anything.
    """
    with running(start) as broker:
        partition = broker.partition(result(broker.create_topic(NewTopic("t", 1, BATCHES))).id, 0)
        appended(partition, sequenced(0))
        stall(broker)
        assert refusal(lambda: partition.append(sequenced(5), Origin.CLIENT)).code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        until(lambda: is_awake(broker))
        assert (
            refusal(lambda: partition.append(sequenced(5), Origin.CLIENT)).code
            is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        )


def test_offsets_are_not_exported_any_more(start: Start, filer: Filer, namespace: str) -> None:
    """
    Another gateway may have exported later ones.
    """
    path = f"/topics/{namespace}/.meta/consumer_offsets/g/orders/3/offset"
    key = OffsetCommitKey(group="g", topic="orders", partition=3)
    with running(start) as broker, capturedLogs() as logs:
        log = group_log(broker)
        noted(log, [encoded(Row(key, OffsetCommitValue(offset=1, metadata="", commit_timestamp=5)))])
        until(lambda: wait(filer.entry(path)))
        noted(log, [encoded(Row(key, OffsetCommitValue(offset=2, metadata="", commit_timestamp=5)))])
        stay_stalled(broker)
        until(lambda: any("not all offsets are in the Go gateway's files" in formatEvent(each) for each in logs))
    assert json.loads(wait(filer.entry(path)).content)["value"] == 1  # type: ignore[union-attr]  # it is there


def test_who_wrote_what_is_not_kept_any_more(start: Start, filer: Filer, namespace: str) -> None:
    """
    The gateway is stopped, and another one may have stored a later producer state.
    """
    with running(start) as broker:
        partition = broker.partition(result(broker.create_topic(NewTopic("t", 1, BATCHES))).id, 0)
        appended(partition, sequenced(0))
        stay_stalled(broker)
    names = [entry.name for entry in wait(filer.all_entries(f"/topics/{namespace}/t/.kgateway/0"))]
    assert not [name for name in names if name.endswith(".snapshot")]


def test_a_lost_start_of_a_leader_is_repeated(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The gateway leads in a later epoch, and does not continue the first.
    """
    with running(start) as broker:
        result(broker.create_topic(NewTopic("t", 1, BATCHES)))
    loads: list[int] = []

    async def load(self: LedTopics) -> Any:
        loads.append(self.epoch)
        if len(loads) == 1:
            reactor.callLater(0, second._election._lose)
            await deferLater(reactor, 0.1)
            loads.append(-1)
        return await real(self)

    real = LedTopics.load
    monkeypatch.setattr(LedTopics, "load", load)
    second = start()
    result(second.start())
    try:
        [topic] = second.view().topics.values()
        assert loads == [1, 2]
        assert topic.partitions[0].leader_epoch == 2
        assert second.view().controller_id == 1
        wait(deferLater(reactor, 0.2))
        assert loads == [1, 2]
    finally:
        result(second.stop())


def test_nobody_is_said_to_lead(start: Start) -> None:
    """
    All gateways are shown, because a client that knows of none gives up.
    """
    with running(start) as broker:
        result(broker.create_topic(NewTopic("t", 1, BATCHES)))
        before = broker.view()
        stay_stalled(broker)
        lease(broker)._was_late = True
        view = broker.view()
    assert view.nodes == before.nodes
    assert (before.controller_id, view.controller_id) == (1, -1)
    assert [part.leader_id for part in view.topics["t"].partitions] == [-1]
    assert view.topics_by_id[view.topics["t"].id] is view.topics["t"]
