"""
A gateway that stood still for as long as its lock runs, and finds out at the worst moments.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.logger import capturedLogs, formatEvent

from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.broker.seaweedmq.messaging import Messaging
from kgateway.broker.seaweedmq.owned import Owned
from kgateway.broker.seaweedmq.topics import Topics
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import NewTopic
from kgateway.groups.coding import encoded
from kgateway.groups.rows import Row
from kgateway.messages.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid
from tests.broker.behaviour import appended, noted, refusal, result, sequenced
from tests.broker.seaweed.running import reactor, until, wait
from tests.broker.seaweedmq.starting import Start, running

BATCHES = TopicConfig.of({"seaweedmq.format": "batch"})


def oversleep(broker: SeaweedMQBroker) -> None:
    """
    The lock has run out; it is asked for soon, and still ours.
    """
    owner = broker._owning._owner
    assert owner
    owner._until = 0.0


def sleep_on(broker: SeaweedMQBroker) -> None:
    """
    The lock has run out, and is not asked for any more.
    """
    owner = broker._owning._owner
    assert owner
    owner._stop_keeping()


def is_awake(broker: SeaweedMQBroker) -> bool:
    """
    Whether it knows that the topics are still its own.
    """
    try:
        broker._parts.demand_ownership()
    except KafkaError:
        return False
    return True


def end_of(broker: SeaweedMQBroker, topic_id: Uuid) -> int:
    """
    Of the first partition, once it is open.
    """
    assert broker._held
    opened = broker._held.openings.opened(broker.view().topics_by_id[topic_id], 0)
    return result(Deferred.fromCoroutine(opened)).log_end


def oversleeping(broker: SeaweedMQBroker, real: Callable[..., Awaitable[Any]], *, after: bool) -> Callable[..., Any]:
    """
    A method amid which, or after which, the gateway oversleeps, once.
    """
    times = iter([True])

    async def method(*arguments: Any) -> Any:
        if next(times, False) and not after:
            oversleep(broker)
            return await real(*arguments)
        outcome = await real(*arguments)
        if after:
            oversleep(broker)
        return outcome

    return method


def test_the_state_of_groups_is_kept_in_the_end(start: Start) -> None:
    """
    A topic of theirs that is made just then is found again after the next start, with all that was acknowledged.
    """
    with running(start) as broker:
        oversleep(broker)
        noted(broker.coordinator(Resource.GROUP, "g"), [(b"a", b"1")])
        assert is_awake(broker)
    with running(start) as broker:
        assert "__consumer_offsets" in broker.view().topics
        log = broker.coordinator(Resource.GROUP, "g")
        assert dict(pair for piece in result(log.replay()) for pair in piece) == {b"a": b"1"}


def test_a_topic_that_could_not_be_removed_is_there(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    With its records, and can be removed and made again.
    """
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, BATCHES)))
        appended(broker.partition(topic.id, 0), sequenced(0))
        monkeypatch.setattr(Topics, "delete", oversleeping(broker, Topics.delete, after=False))
        assert refusal(lambda: broker.delete_topic(topic.id)).code is ErrorCode.NOT_CONTROLLER
        until(lambda: "t" in broker.view().topics and is_awake(broker))
        assert broker.view().topics["t"].id == topic.id
        assert end_of(broker, topic.id) == 1
        result(broker.delete_topic(topic.id))
        result(broker.create_topic(NewTopic("t", 1, BATCHES)))


def test_a_topic_that_was_half_made_is_seen(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    So that it can be removed and made again.
    """
    with running(start) as broker:
        with monkeypatch.context() as patched:
            patched.setattr(Messaging, "configure_like", oversleeping(broker, Messaging.configure_like, after=True))
            assert refusal(lambda: broker.create_topic(NewTopic("t", 1, BATCHES))).code is ErrorCode.NOT_CONTROLLER
        until(lambda: "t" in broker.view().topics and is_awake(broker))
        result(broker.delete_topic(broker.view().topics["t"].id))
        assert result(broker.create_topic(NewTopic("t", 1, BATCHES))).config == BATCHES


def test_what_is_missing_before_a_batch_is_not_its_to_say(start: Start) -> None:
    """
    It may be at another gateway: the producer is to go there, and to drop nothing.
    """
    with running(start) as broker:
        partition = broker.partition(result(broker.create_topic(NewTopic("t", 1, BATCHES))).id, 0)
        appended(partition, sequenced(0))
        oversleep(broker)
        assert refusal(lambda: partition.append(sequenced(5), Origin.CLIENT)).code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        until(lambda: is_awake(broker))
        assert (
            refusal(lambda: partition.append(sequenced(5), Origin.CLIENT)).code
            is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        )


def test_offsets_are_not_exported_any_more(start: Start, filer: Filer, namespace: str) -> None:
    """
    Another one may have exported later ones.
    """
    path = f"/topics/{namespace}/.meta/consumer_offsets/g/orders/3/offset"
    key = OffsetCommitKey(group="g", topic="orders", partition=3)
    with running(start) as broker, capturedLogs() as logs:
        log = broker.coordinator(Resource.GROUP, "g")
        noted(log, [encoded(Row(key, OffsetCommitValue(offset=1, metadata="", commit_timestamp=5)))])
        until(lambda: wait(filer.entry(path)))
        noted(log, [encoded(Row(key, OffsetCommitValue(offset=2, metadata="", commit_timestamp=5)))])
        sleep_on(broker)
        until(lambda: any("offsets are not all in files for the Go gateway" in formatEvent(each) for each in logs))
    assert json.loads(wait(filer.entry(path)).content)["value"] == 1  # type: ignore[union-attr]  # it is there


def test_who_wrote_what_is_not_kept_any_more(start: Start, filer: Filer, namespace: str) -> None:
    """
    Where it is told to stop: another one may have kept more.
    """
    with running(start) as broker:
        partition = broker.partition(result(broker.create_topic(NewTopic("t", 1, BATCHES))).id, 0)
        appended(partition, sequenced(0))
        sleep_on(broker)
    names = [entry.name for entry in wait(filer.all_entries(f"/topics/{namespace}/t/.kgateway/0"))]
    assert not [name for name in names if name.endswith(".snapshot")]


def test_a_beginning_that_is_lost_is_begun_anew(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    In a later epoch, and the first one is not gone on with.
    """
    with running(start) as broker:
        result(broker.create_topic(NewTopic("t", 1, BATCHES)))
    loads: list[int] = []

    async def load(self: Owned) -> Any:
        loads.append(self.epoch)
        if len(loads) == 1:
            reactor.callLater(0, second._owning._lose)
            await deferLater(reactor, 0.1)
            loads.append(-1)
        return await real(self)

    real = Owned.load
    monkeypatch.setattr(Owned, "load", load)
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
    But all gateways are told of, for a client that knows of none gives up.
    """
    with running(start) as broker:
        result(broker.create_topic(NewTopic("t", 1, BATCHES)))
        before = broker.view()
        sleep_on(broker)
        owner = broker._owning._owner
        assert owner
        owner._was_late = True
        view = broker.view()
    assert view.nodes == before.nodes
    assert (before.controller_id, view.controller_id) == (1, -1)
    assert [part.leader_id for part in view.topics["t"].partitions] == [-1]
    assert view.topics_by_id[view.topics["t"].id] is view.topics["t"]
