"""
What others do to the topics of a cluster is seen by the gateway that owns them.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.seaweed.dev_cluster import DevCluster
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq import broker as broker_module
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.broker.seaweedmq.forms.form import Message
from kgateway.broker.seaweedmq.partition import SeaweedMQPartition
from kgateway.broker.seaweedmq.topics import Topics
from kgateway.broker.state_log import StateLog
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import NewTopic
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid
from tests.broker.behaviour import appended, batch, fetched, noted, offsets, refusal, result
from tests.broker.seaweed.running import pause, until, wait
from tests.broker.seaweedmq.published import Published
from tests.broker.seaweedmq.starting import Start, running

News = Callable[[], None]

PLAIN = TopicConfig.of({"seaweedmq.format": "plain", "message.timestamp.type": "LogAppendTime"})
BATCHES = TopicConfig.of({"seaweedmq.format": "batch"})


class Deaf:
    """
    Is told nothing by the cluster, until the test says that it may have missed something.
    """

    last: "Deaf"

    def __init__(self, site: object, grown: object, changed: object, lost: Callable[[], None]) -> None:
        self.lost = lost
        Deaf.last = self

    async def start(self) -> None:
        pass

    def stop(self) -> None:
        pass


@pytest.fixture
def others(seaweed: Seaweed, namespace: str) -> Topics:
    """
    Somebody else before the same cluster.
    """
    return Topics(seaweed, namespace)


@pytest.fixture(params=["told", "missed"])
def news(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> News:
    """
    What brings the gateway to look: the cluster tells it, or it is told that it may have missed something.
    """
    if request.param == "told":
        return lambda: None
    monkeypatch.setattr(broker_module, "Watching", Deaf)

    def may_have_missed() -> None:
        Deaf.last.lost()

    return may_have_missed


def is_open(broker: SeaweedMQBroker, topic_id: Uuid, index: int) -> bool:
    """
    Whether the partition can be had.
    """
    with suppress(KafkaError):
        return broker.partition(topic_id, index).lost is None
    return False


def seen(broker: SeaweedMQBroker, name: str) -> Any:
    """
    The topic as clients see it.
    """
    return broker.view().topics.get(name)


def made(others: Topics, name: str, partition_count: int) -> None:
    """
    Have SeaweedMQ make the partitions of a topic, or make them anew.
    """
    wait(Deferred.fromCoroutine(others.messaging.configure(name, partition_count, None)))


def test_a_topic_that_others_make_is_served(start: Start, others: Topics, news: News) -> None:
    """
    Soon after it was made.
    """
    with running(start) as broker:
        made(others, "theirs", 2)
        news()
        until(lambda: seen(broker, "theirs"))
        assert len(seen(broker, "theirs").partitions) == 2


def test_a_topic_that_others_grow_has_more_partitions(start: Start, others: Topics, news: News) -> None:
    """
    And what it had before is still there.
    """
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, BATCHES)))
        safe = appended(broker.partition(topic.id, 0), batch(3)).safe
        assert safe
        result(safe)
        made(others, "t", 2)
        news()
        until(lambda: len(seen(broker, "t").partitions) == 2)
        until(lambda: is_open(broker, topic.id, 0))
        assert broker.partition(topic.id, 0).log_end == 3


def test_a_topic_that_others_remove_is_gone(start: Start, others: Topics, news: News) -> None:
    """
    Who has one of its partitions is told; another topic may have the name.
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


def test_a_topic_that_others_make_again_is_another_one(start: Start, others: Topics, news: News) -> None:
    """
    It has nothing of the first one but the name.
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


def test_files_that_have_grown_are_looked_at(start: Start, cluster: DevCluster, namespace: str, news: News) -> None:
    """
    What others have published to a partition that is open can be read.
    """
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, PLAIN)))
        partition = broker.partition(topic.id, 0)
        Published(cluster, name="t", namespace=namespace).publish([Message(b"k", b"one"), Message(b"k", b"two")])
        news()
        until(lambda: partition.high_watermark == 2)


def test_what_others_publish_among_batches_is_counted(
    start: Start, cluster: DevCluster, namespace: str, news: News
) -> None:
    """
    It has no offset of Kafka's, and what is published next comes behind it, by the same stream.
    """
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, BATCHES)))
        partition = broker.partition(topic.id, 0)
        assert isinstance(partition, SeaweedMQPartition)
        appended(partition, batch(3))
        stream = partition._publishing._sending
        Published(cluster, name="t", namespace=namespace).publish([Message(b"k", b"one"), Message(b"k", b"two")])
        news()
        until(lambda: partition._publishing.in_flight.next_message == 3)
        assert partition.high_watermark == partition.log_end == 3
        assert appended(partition, batch(2)).base_offset == 3
        assert partition._publishing._sending is stream
        assert offsets(fetched(partition, 0)) == [0, 3]


def test_what_is_changed_here_is_no_news(start: Start, news: News) -> None:
    """
    A topic that clients make, grow and remove while the cluster tells of it is what they were answered.
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


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state", ".meta", ".hidden"])
def test_names_that_are_not_for_clients(name: str, start: Start, others: Topics, news: News) -> None:
    """
    Nobody makes a topic of such a name here; one that others make is no topic, and changes nothing of what is ours.
    """
    with running(start) as broker:
        error = refusal(lambda: broker.create_topic(NewTopic(name, 1, BATCHES)))
        assert error.code is ErrorCode.INVALID_TOPIC_EXCEPTION
        log = broker.coordinator(Resource.GROUP, "g")
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
        log = broker.coordinator(Resource.GROUP, "g")
        assert isinstance(log, StateLog)
        assert [pair for piece in result(log.replay()) for pair in piece][-1] == (b"key", b"another")
