"""
Configs of topics change in front of a real cluster, which stores them.
"""

from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs, formatEvent

from kgateway.broker.seaweed.calls.retries import FilerRefused
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.broker.seaweedmq.leadership.lease import LeaderLease
from kgateway.broker.seaweedmq.partitions.factory import PartitionFactory
from kgateway.broker.seaweedmq.partitions.partition import SeaweedMQPartition
from kgateway.broker.seaweedmq.publishing.flush_tracker import FlushTracker
from kgateway.broker.seaweedmq.topics.catalog import StoredTopic, TopicCatalog
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import Change, topic
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import NewTopic, Topic
from kgateway.records.compression import Codec
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import appended, batch, fetched, noted, offsets, refusal, result
from tests.broker.config_behaviour import T, setting, without
from tests.broker.seaweed.real_reactor import pause, until, wait
from tests.broker.seaweedmq.gateways import Start, group_log, running
from tests.broker.seaweedmq.test_restarts import FORMS, config

BATCHES = TopicConfig.of({"seaweedmq.format": "batch"})
STATE = "__consumer_offsets"
BUSY = "REQUEST_TIMED_OUT: topic t is being changed by another request; try again"


def made(broker: SeaweedMQBroker, config: TopicConfig = BATCHES) -> Topic:
    return result(broker.create_topic(NewTopic("t", 1, config)))


def alter(broker: SeaweedMQBroker, change: Change, name: str = "t") -> TopicConfig:
    result(broker.change_config(topic(name), change))
    return broker.view().topics[name].config


def opened(broker: SeaweedMQBroker) -> SeaweedMQPartition:
    """
    The partition of the topic, once it is open.
    """

    def is_open() -> bool:
        with suppress(KafkaError):
            return broker.partition(broker.view().topics["t"].id, 0).lost is None
        return False

    until(is_open)
    found = broker.partition(broker.view().topics["t"].id, 0)
    assert isinstance(found, SeaweedMQPartition)
    return found


class Gate:
    """
    Makes callers of a method wait.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        self.is_closed = False
        self.waiting: list[Deferred[None]] = []
        real = getattr(owner, name)

        async def gated(*arguments: Any) -> Any:
            if self.is_closed:
                self.waiting.append(Deferred())
                await self.waiting[-1]
            return await real(*arguments)

        monkeypatch.setattr(owner, name, gated)

    def open(self) -> None:
        self.is_closed = False
        for waiting in self.waiting:
            waiting.callback(None)


@FORMS
def test_they_are_there_again(form: str, start: Start) -> None:
    """
    The topic has its last configs, and its messages keep their form.
    """
    with running(start) as broker:
        before = made(broker, config(form))
        appended(broker.partition(before.id, 0), batch(2))
        alter(broker, setting(retention_ms=77, segment_ms=88))
        after = alter(broker, without("segment.ms"))
        assert after.overrides == {**before.config.overrides, "retention.ms": "77"}
    with running(start) as broker:
        again = broker.view().topics["t"]
        assert (again.id, again.config) == (before.id, after)
        partition = opened(broker)
        assert partition.topic == again
        assert appended(partition, batch()).base_offset == 2


def test_what_the_form_needs(start: Start) -> None:
    """
    The form and the configs that it needs cannot be changed.
    """
    with running(start) as broker:
        before = made(broker, config("plain")).config
        for values, says in (
            ({"message_timestamp_type": "CreateTime"}, "a topic of the format plain has message.timestamp.type"),
            ({"seaweedmq_format": "batch"}, "seaweedmq.format is set when a topic is created, and cannot be changed"),
        ):
            error = refusal(partial(broker.change_config, T, setting(**values)))
            assert error.code is ErrorCode.INVALID_CONFIG
            assert says in str(error.message)
        assert alter(broker, without("message.timestamp.type")) == before


def test_who_asks_for_compaction_is_told(start: Start) -> None:
    """
    If a topic gets such a policy, the log says that SeaweedMQ has no compaction; internal topics are compacted in any
    case.
    """
    compact = TopicConfig.of({"cleanup.policy": "compact"})
    with running(start) as broker, capturedLogs() as logged:
        made(broker, compact)
        alter(broker, setting(retention_ms=77))
        alter(broker, setting(cleanup_policy="compact,delete"))
        alter(broker, setting(cleanup_policy="delete"))
        noted(group_log(broker), [(b"key", b"value")])
        alter(broker, setting(cleanup_policy="compact"), STATE)
    told = [formatEvent(event) for event in logged if "compacted" in formatEvent(event)]
    said = "topic t has cleanup.policy={}, but nothing on SeaweedMQ is compacted: {}"
    assert told == [
        said.format("compact", "all its records are kept"),
        said.format("compact,delete", "retention deletes its records"),
    ]


def test_compression(start: Start) -> None:
    """
    Only topics whose messages are batches have a compression of their own, because single records are not compressed.
    """
    with running(start) as broker:
        made(broker, config("record"))
        assert alter(broker, setting(compression_type="uncompressed")).codec is Codec.NONE
        error = refusal(partial(broker.change_config, T, setting(compression_type="gzip")))
        assert error.code is ErrorCode.INVALID_CONFIG
        assert "a topic of the format record stores single records" in str(error.message)


def test_compression_of_batches(start: Start) -> None:
    """
    A topic whose messages are batches may have any compression.
    """
    with running(start) as broker:
        made(broker)
        assert alter(broker, setting(compression_type="gzip")).codec is Codec.GZIP


def test_nothing_is_written_for_nothing(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The file of a topic is rewritten once for each change, and not if nothing changes.
    """
    kept, store = list[StoredTopic](), TopicCatalog.store

    async def noting(self: TopicCatalog, stored: StoredTopic) -> None:
        kept.append(stored)
        await store(self, stored)

    with running(start) as broker:
        made(broker, config("plain"))
        monkeypatch.setattr(TopicCatalog, "store", noting)
        for change in (setting(retention_ms=77), setting(retention_ms=77), without("message.timestamp.type")):
            alter(broker, change)
        assert [stored.file.configs.get("retention.ms") for stored in kept] == ["77"]


def test_what_the_cluster_refuses(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The topic keeps its configs.
    """

    async def refuse(self: TopicCatalog, stored: StoredTopic) -> None:
        raise FilerRefused("a path", "no room")

    with running(start) as broker:
        made(broker)
        before = broker.view()
        with monkeypatch.context() as patched:
            patched.setattr(TopicCatalog, "store", refuse)
            error = refusal(lambda: broker.change_config(T, setting(retention_ms=77)))
        assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert "no room" in str(error.message)
        assert broker.view() is before
        assert alter(broker, setting(segment_ms=88)).overrides == {**BATCHES.overrides, "segment.ms": "88"}


def test_only_the_owner_changes_them(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A gateway that may not lead any more does not change the files of its successor. It answers that it is not the
    controller, so clients look for that.
    """
    lost = list[KafkaError]()

    def check(self: LeaderLease) -> None:
        if lost:
            raise lost[0]

    monkeypatch.setattr(LeaderLease, "check", check)
    with running(start) as broker:
        made(broker)
        lost.append(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "another gateway has them"))
        refused = refusal(lambda: broker.change_config(T, setting(retention_ms=77)))
        assert str(refused) == "NOT_CONTROLLER: another gateway has them"
        lost.clear()
    with running(start) as broker:
        assert broker.view().topics["t"].config == BATCHES


def test_one_change_at_a_time(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A topic does not grow and is not deleted while its config changes, and keeps its config during both; the next change
    waits.
    """
    gate = Gate(monkeypatch, TopicCatalog, "store")
    with running(start) as broker:
        before = made(broker)
        gate.is_closed = True
        first = broker.change_config(T, setting(retention_ms=77))
        second = broker.change_config(T, setting(segment_ms=88))
        until(lambda: gate.waiting)
        for refused in (lambda: broker.add_partitions(before.id, 2), lambda: broker.delete_topic(before.id)):
            assert str(refusal(refused)) == BUSY
        assert broker.view().topics["t"] == before
        gate.open()
        assert [result(first), result(second)] == [None, None]
        grown = broker.add_partitions(before.id, 2)
        assert str(refusal(lambda: broker.change_config(T, setting(retention_ms=78)))) == BUSY
        result(grown)
        after = broker.view().topics["t"]
        gone = broker.delete_topic(before.id)
        error = refusal(lambda: broker.change_config(T, setting(retention_ms=78)))
        assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        result(gone)
        assert (after.config.retention_ms, after.config.segment_ms, len(after.partitions)) == (77, 88, 2)
        assert broker.view().topics == {}


def test_a_stop_waits(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    No file is written once another gateway may lead.
    """
    gate = Gate(monkeypatch, TopicCatalog, "store")
    with running(start) as broker:
        made(broker)
        gate.is_closed = True
        change = broker.change_config(T, setting(retention_ms=77))
        until(lambda: gate.waiting)
        stopped = broker.stop()
        pause(0.5)
        assert not stopped.called
        gate.open()
        result(stopped)
        result(change)
    with running(start) as broker:
        assert broker.view().topics["t"].config.retention_ms == 77


def test_while_others_let_the_topic_grow(
    start: Start, seaweed: SeaweedCluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Configs are kept when partitions of others are taken over; a change that arrives meanwhile is refused.
    """
    gate = Gate(monkeypatch, TopicCatalog, "store_recreated")
    with running(start) as broker:
        made(broker)
        alter(broker, setting(retention_ms=77))
        gate.is_closed = True
        wait(Deferred.fromCoroutine(TopicCatalog(seaweed, namespace).rpc.configure("t", 2, None)))
        until(lambda: gate.waiting)
        assert str(refusal(lambda: broker.change_config(T, setting(retention_ms=78)))) == BUSY
        gate.open()
        until(lambda: len(broker.view().topics["t"].partitions) == 2)
        assert alter(broker, setting(segment_ms=88)).retention_ms == 77
    with running(start) as broker:
        again = broker.view().topics["t"]
        assert (again.config.retention_ms, again.config.segment_ms, len(again.partitions)) == (77, 88, 2)


def test_topics_that_others_have_made(start: Start, seaweed: SeaweedCluster, namespace: str) -> None:
    """
    They get configs as ours do, and remain foreign.
    """
    with running(start) as broker:
        wait(Deferred.fromCoroutine(TopicCatalog(seaweed, namespace).rpc.configure("t", 1, None)))
        until(lambda: "t" in broker.view().topics)
        before = broker.view().topics["t"].config
        after = alter(broker, setting(retention_ms=77))
        assert after.overrides == {**before.overrides, "retention.ms": "77"}
    with running(start) as broker:
        assert broker.view().topics["t"].config == after
        seen = result(Deferred.fromCoroutine(TopicCatalog(seaweed, namespace).read("t")))
        assert seen
        assert seen.stored.file.is_foreign


def test_internal_topics(start: Start) -> None:
    """
    Their configs are stored, too, even if they change before the topic is stored for the first time.
    """
    with running(start) as broker:
        log = group_log(broker)
        assert alter(broker, setting(segment_ms=88), STATE).segment_ms == 88
        noted(log, [(b"a", b"1")])
    with running(start) as broker:
        found = broker.view().topics[STATE]
        assert (dict(found.config.overrides), found.internal) == ({"segment.ms": "88"}, True)
        assert broker.coordinator(Resource.GROUP, "g")


def test_a_partition_that_is_opened_meanwhile(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It has the current config.
    """
    gate = Gate(monkeypatch, PartitionFactory, "existing")
    with running(start) as broker:
        made(broker)
        opened(broker).lose(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "to be opened again"))
        gate.is_closed = True
        refusal(lambda: broker.partition(broker.view().topics["t"].id, 0))
        alter(broker, setting(max_message_bytes=10))
        gate.open()
        assert opened(broker).topic == broker.view().topics["t"]


def test_what_producers_wait_for(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Appended records are committed when the new config says so; readable records remain readable, and producers stop
    waiting for files if the config no longer demands them.
    """
    with running(start) as broker:
        made(broker)
        partition = opened(broker)
        appended(partition, batch())
        with monkeypatch.context() as patched:
            for news in ("file_grown", "_look_in"):  # of files
                patched.setattr(FlushTracker, news, lambda *_: None)
            alter(broker, setting(seaweedmq_acks="flushed"))
            assert (partition.high_watermark, offsets(fetched(partition, 0))) == (1, [0])
            waiting = partition.append(batch(), Origin.CLIENT)
            assert waiting.stored
            assert waiting.committed
            result(waiting.stored)
            assert (partition.high_watermark, waiting.committed.called) == (1, False)
            heard = list[int]()
            partition.watch(lambda: heard.append(partition.high_watermark))
            alter(broker, without("seaweedmq.acks"))
            assert waiting.committed.called
            assert (heard, offsets(fetched(partition, 0))) == ([2], [0, 1])
