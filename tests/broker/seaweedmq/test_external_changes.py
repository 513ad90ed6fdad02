"""
The leading gateway notices what other programs do to the topics of a cluster.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.deferreds import when_over
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.formats.registry import FORMATS
from kgateway.broker.seaweedmq.leader import leader
from kgateway.broker.seaweedmq.leader.led_topics import LedTopics
from kgateway.broker.seaweedmq.partitions.partition import SeaweedMQPartition
from kgateway.broker.seaweedmq.topics.catalog import StoredTopic, TopicCatalog
from kgateway.broker.state_log import StateLog
from kgateway.cluster import config_resource
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import NewTopic
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid
from tests.broker.behaviour import appended, batch, fetched, noted, offsets, refusal, result
from tests.broker.seaweed.real_reactor import pause, until, wait
from tests.broker.seaweedmq.foreign_topic import ForeignTopic
from tests.broker.seaweedmq.gateways import Start, group_log, running
from tests.broker.seaweedmq.test_restarts import config

News = Callable[[], None]

PLAIN = TopicConfig.of({"seaweedmq.format": "plain", "message.timestamp.type": "LogAppendTime"})
BATCHES = TopicConfig.of({"seaweedmq.format": "batch"})


class Deaf:
    """
    A feed that reports only what the test says, or that some reports may have been missed.
    """

    last: "Deaf"

    def __init__(
        self, gateway: object, grown: object, changed: Callable[[str], None], lost: Callable[[], None]
    ) -> None:
        self.changed = changed
        self.lost = lost
        Deaf.last = self

    async def start(self) -> None:
        pass

    def stop(self) -> None:
        pass


@pytest.fixture
def others(seaweed: SeaweedCluster, namespace: str) -> TopicCatalog:
    """
    Another program that uses the same cluster.
    """
    return TopicCatalog(seaweed, namespace)


@pytest.fixture(params=["told", "missed"])
def news(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> News:
    """
    The reason for the gateway to look: a report of the cluster, or the notice that some may have been missed.
    """
    if request.param == "told":
        return lambda: None
    monkeypatch.setattr(leader, "TopicFeed", Deaf)

    def may_have_missed() -> None:
        Deaf.last.lost()

    return may_have_missed


def is_open(broker: SeaweedMQBroker, topic_id: Uuid, index: int) -> bool:
    """
    Whether the partition is open.
    """
    with suppress(KafkaError):
        return broker.partition(topic_id, index).lost is None
    return False


def seen(broker: SeaweedMQBroker, name: str) -> Any:
    """
    The topic as clients see it.
    """
    return broker.view().topics.get(name)


def made(others: TopicCatalog, name: str, partition_count: int) -> None:
    """
    Have SeaweedMQ create or recreate the partitions of a topic.
    """
    wait(Deferred.fromCoroutine(others.rpc.configure(name, partition_count, None)))


def test_a_topic_that_others_make_is_served(start: Start, others: TopicCatalog, news: News) -> None:
    """
    It is served soon after its creation.
    """
    with running(start) as broker:
        made(others, "theirs", 2)
        news()
        until(lambda: seen(broker, "theirs"))
        assert len(seen(broker, "theirs").partitions) == 2


def test_a_topic_that_others_grow_has_more_partitions(start: Start, others: TopicCatalog, news: News) -> None:
    """
    Its earlier records are still there.
    """
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, BATCHES)))
        committed = appended(broker.partition(topic.id, 0), batch(3)).committed
        assert committed
        result(committed)
        made(others, "t", 2)
        news()
        until(lambda: len(seen(broker, "t").partitions) == 2)
        until(lambda: is_open(broker, topic.id, 0))
        assert broker.partition(topic.id, 0).log_end == 3


def test_a_topic_that_others_remove_is_gone(start: Start, others: TopicCatalog, news: News) -> None:
    """
    Clients of its partitions get an error; another topic may take the name.
    """
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, BATCHES)))
        partition = broker.partition(topic.id, 0)
        wait(Deferred.fromCoroutine(others.delete("t")))
        news()
        until(lambda: seen(broker, "t") is None)
        assert partition.lost
        assert partition.lost.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        again = result(broker.create_topic(NewTopic("t", 1, BATCHES)))
        assert again.id != topic.id
        assert broker.partition(again.id, 0).log_end == 0


def test_a_topic_that_others_make_again_is_another_one(start: Start, others: TopicCatalog, news: News) -> None:
    """
    It only shares the name with the first one.
    """
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, BATCHES)))
        appended(broker.partition(topic.id, 0), batch(3))
        wait(Deferred.fromCoroutine(others.delete("t")))
        made(others, "t", 3)
        news()
        until(lambda: seen(broker, "t") and seen(broker, "t").id != topic.id)
        assert len(seen(broker, "t").partitions) == 3
        until(lambda: is_open(broker, seen(broker, "t").id, 0))
        assert broker.partition(seen(broker, "t").id, 0).log_end == 0


@pytest.mark.parametrize("form", ["plain", "record", "batch"])
def test_nothing_is_published_to_partitions_that_others_have_recreated(
    form: str, start: Start, cluster: DevCluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Records are acknowledged only when the gateway knows where the old partitions ended: they would get other offsets
    than those that were answered.
    """
    monkeypatch.setattr(leader, "TopicFeed", Deaf)
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 2, config(form))))
        ForeignTopic(cluster, record_type=FORMATS[form].record_type(), name="t", namespace=namespace)
        waiting = broker.partition(topic.id, 0).append(batch(2), Origin.CLIENT).committed
        assert waiting
        pause(1)
        assert not waiting.called
        Deaf.last.changed("t")
        assert refusal(lambda: waiting).code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        until(lambda: is_open(broker, topic.id, 0))
        assert appended(broker.partition(topic.id, 0), batch(2)).base_offset == 0


def test_files_that_have_grown_are_looked_at(start: Start, cluster: DevCluster, namespace: str, news: News) -> None:
    """
    Messages that others published to an open partition can be read.
    """
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, PLAIN)))
        partition = broker.partition(topic.id, 0)
        ForeignTopic(cluster, name="t", namespace=namespace).publish([Message(b"k", b"one"), Message(b"k", b"two")])
        news()
        until(lambda: partition.high_watermark == 2)


def test_what_others_publish_among_batches_is_counted(
    start: Start, cluster: DevCluster, namespace: str, news: News
) -> None:
    """
    Such a message has no offset of Kafka's, and the next one of ours follows it, in the same stream.
    """
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, BATCHES)))
        partition = broker.partition(topic.id, 0)
        assert isinstance(partition, SeaweedMQPartition)
        appended(partition, batch(3))
        stream = partition._publisher._send_window
        ForeignTopic(cluster, name="t", namespace=namespace).publish([Message(b"k", b"one"), Message(b"k", b"two")])
        news()
        until(lambda: partition._publisher.in_flight.next_message == 3)
        assert partition.high_watermark == partition.log_end == 3
        assert appended(partition, batch(2)).base_offset == 3
        assert partition._publisher._send_window is stream
        assert offsets(fetched(partition, 0)) == [0, 3]


def test_what_is_changed_here_is_no_news(start: Start, news: News) -> None:
    """
    A topic that clients create, grow and delete while the feed reports it remains what they were answered.
    """
    with running(start) as broker:
        for _ in range(3):
            topic = result(broker.create_topic(NewTopic("t", 1, BATCHES)))
            news()
            assert result(broker.add_partitions(topic.id, 2)).id == topic.id
            news()
            assert seen(broker, "t").id == topic.id
            assert len(seen(broker, "t").partitions) == 2
            result(broker.delete_topic(topic.id))
            news()
        pause(0.5)
        assert seen(broker, "t") is None


def test_a_report_during_a_change_of_our_own_is_not_lost(
    start: Start, others: TopicCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The topic is looked at when the change is over.
    """
    monkeypatch.setattr(leader, "TopicFeed", Deaf)
    stored, may_end = TopicCatalog.store, Deferred[None]()

    async def slowly_stored(self: TopicCatalog, topic: StoredTopic) -> None:
        await stored(self, topic)
        await when_over(may_end)

    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, BATCHES)))
        monkeypatch.setattr(TopicCatalog, "store", slowly_stored)
        changing = broker.change_config(
            config_resource.topic("t"), lambda overrides: {**overrides, "retention.ms": "-1"}
        )
        made(others, "t", 2)
        Deaf.last.changed("t")
        pause(0.2)
        assert len(seen(broker, "t").partitions) == 1
        may_end.callback(None)
        result(changing)
        until(lambda: len(seen(broker, "t").partitions) == 2)
        assert seen(broker, "t").id == topic.id


def test_reports_while_topics_are_loaded_are_not_lost(
    start: Start, others: TopicCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A topic that others grow after it was read, and before clients see it, has all its partitions.
    """
    monkeypatch.setattr(leader, "TopicFeed", Deaf)
    with running(start) as broker:
        result(broker.create_topic(NewTopic("t", 1, BATCHES)))
    load, may_end = LedTopics.load, Deferred[None]()

    async def slowly_loaded(self: LedTopics) -> list[StoredTopic]:
        found = await load(self)
        await when_over(may_end)
        return found

    monkeypatch.setattr(LedTopics, "load", slowly_loaded)
    broker = start()
    starting = broker.start()
    try:
        pause(2)
        made(others, "t", 2)
        Deaf.last.changed("t")
        pause(0.2)
        may_end.callback(None)
        result(starting)
        until(lambda: len(seen(broker, "t").partitions) == 2)
    finally:
        result(broker.stop())


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state", ".meta", ".hidden"])
def test_names_that_are_not_for_clients(name: str, start: Start, others: TopicCatalog, news: News) -> None:
    """
    Such a topic cannot be created here; one that others create is not served, and changes nothing of ours.
    """
    with running(start) as broker:
        error = refusal(lambda: broker.create_topic(NewTopic(name, 1, BATCHES)))
        assert error.code is ErrorCode.INVALID_TOPIC_EXCEPTION
        log = group_log(broker)
        assert isinstance(log, StateLog)
        noted(log, [(b"key", b"value")])
        before = seen(broker, name)
        made(others, name, 2)
        made(others, "theirs", 1)
        news()
        until(lambda: seen(broker, "theirs"))
        pause(0.2)
        assert seen(broker, name) == before
        noted(log, [(b"key", b"another")])
    with running(start) as broker:
        log = group_log(broker)
        assert isinstance(log, StateLog)
        assert [pair for piece in result(log.replay()) for pair in piece][-1] == (b"key", b"another")
