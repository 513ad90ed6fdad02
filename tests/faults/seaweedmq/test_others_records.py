"""
Consumers get what other programs publish before it is in files, in the order of the log, each record at one offset for
ever, while brokers flush, are killed and come back, and while the gateway is killed.

KILLS is the number of kills; the default is four. KILLS_SEED repeats the same choices.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random, SystemRandom
from threading import Event, Thread
from time import monotonic, sleep

import grpc
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster, Shape
from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.formats.log_entry import logged_messages
from kgateway.broker.seaweedmq.layout.topic_paths import topic_folder
from tests.broker.seaweedmq.foreign_topic import ForeignTopic
from tests.faults.seaweedmq.gateway import Gateway
from tests.faults.seaweedmq.others import OtherPublisher, subscribed

KILLS = int(os.environ.get("KILLS", "0")) or 4
SEED = os.environ.get("KILLS_SEED") or str(SystemRandom().randrange(1 << 32))
_PATIENCE_S = 60
_FLUSH_S = 2
_CONNECTION_ERRORS = KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._RESOLVE


class Follower:
    """
    A consumer that reads a partition from its beginning, and notes what it gets.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.records: list[tuple[int | None, bytes | None]] = []
        self.errors: list[str] = []
        config = {"bootstrap.servers": bootstrap, "group.id": "tests", "enable.auto.commit": False}
        backoff = {"reconnect.backoff.max.ms": 200, "retry.backoff.max.ms": 200}
        self._consumer = Consumer({**config, **backoff, "auto.offset.reset": "error", "log_level": 0})
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        self._stopping = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._consumer.close()

    def wait_for(self, value: bytes) -> None:
        wait_until(lambda: bool(self.errors) or (bool(self.records) and self.records[-1][1] == value))
        assert self.errors == []

    def _run(self) -> None:
        while not self._stopping.is_set():
            message = self._consumer.poll(0.1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                self.records.append((message.offset(), message.value()))
            elif not error.retriable() and error.code() not in _CONNECTION_ERRORS:
                self.errors.append(str(error))


def test_records_of_others_have_one_offset(tmp_path: Path) -> None:
    """
    A consumer that follows gets every record of the log; a later one gets the same records at the same offsets; and a
    subscriber of SeaweedMQ gets them in the same order.
    """
    print(f"\nKILLS_SEED={SEED}")
    random = Random(SEED)
    cluster = DevCluster(tmp_path / "cluster", shape=Shape(flush_interval_s=_FLUSH_S))
    gateway = Gateway(cluster, tmp_path)
    try:
        cluster.start()
        topic = ForeignTopic(cluster)
        (assignment,) = topic.conf.broker_partition_assignments
        gateway.start()
        publishers = [OtherPublisher(cluster, topic.topic, assignment, name) for name in ("a", "b", "c")]
        for publisher in publishers:
            publisher.start()
        follower = Follower(gateway.bootstrap, topic.name)
        for _ in range(KILLS):
            sleep(random.uniform(1, 6))
            if random.random() < 0.6:
                cluster.broker.kill()
                sleep(random.uniform(0, 1))
                cluster.broker.start()
            else:
                gateway.kill()
                gateway.start()
        sleep(random.uniform(1, 6))
        for publisher in publishers:
            publisher.stop()
        last = b"the last one"
        topic.publish([Message(last, last)])
        follower.wait_for(last)
        later = Follower(gateway.bootstrap, topic.name)
        later.wait_for(last)
        for each in (follower, later):
            each.stop()
        log = [message.value for message in logged_messages(topic.log())]
        assert log.count(last) == 1
        subscriber = subscribed(cluster, topic.topic, assignment, len(log))
        assert not gateway.tracebacks()
        acknowledged = sum(len(publisher.acknowledged) for publisher in publishers)
        print(f"{len(log)} records, {acknowledged} acknowledged, {len(follower.records)} followed")
        check(follower, later, log, subscriber)
    finally:
        gateway.kill()
        cluster.kill()
        (tmp_path / "gateway.log").write_text(gateway.log)


def test_they_come_long_before_they_are_in_files(tmp_path: Path) -> None:
    """
    A broker writes files only every ten minutes. A gateway that is killed and comes back gives the same records the
    same offsets.
    """
    cluster = DevCluster(tmp_path / "cluster", shape=Shape(flush_interval_s=600))
    gateway = Gateway(cluster, tmp_path)
    values = [b"%d" % number for number in range(20)]
    try:
        cluster.start()
        topic = ForeignTopic(cluster)
        gateway.start()
        with topic.stream() as publish:
            first = Follower(gateway.bootstrap, topic.name)
            for value in values[:10]:
                publish(Message(value, value))
                first.wait_for(value)
            gateway.kill()
            gateway.start()
            again = Follower(gateway.bootstrap, topic.name)
            for value in values[10:]:
                publish(Message(value, value))
                first.wait_for(value)
                again.wait_for(value)
            assert [entry.name for entry in topic.entries(topic.folder) if entry.attributes.file_size > 8] == []
        for each in (first, again):
            each.stop()
            assert (each.records, each.errors) == (list(enumerate(values)), [])
    finally:
        gateway.kill()
        cluster.kill()


def test_offsets_of_lost_messages_are_not_given_again(tmp_path: Path) -> None:
    """
    Broker and gateway are killed one after the other. What others publish then, SeaweedMQ numbers from 0 again.
    """
    cluster = DevCluster(tmp_path / "cluster", shape=Shape(flush_interval_s=600))
    gateway = Gateway(cluster, tmp_path)
    lost = [b"%d" % number for number in range(5)]
    try:
        cluster.start()
        topic = ForeignTopic(cluster)
        (assignment,) = topic.conf.broker_partition_assignments
        gateway.start()
        follower = Follower(gateway.bootstrap, topic.name)
        with suppress(grpc.RpcError), topic.stream() as publish:
            for value in lost:
                publish(Message(value, value))
            follower.wait_for(lost[-1])
            cluster.broker.kill()
        wait_until(lambda: "shown-end-offset" in side_files(topic))
        gateway.kill()
        cluster.broker.start()
        gateway.start()
        publisher = OtherPublisher(cluster, topic.topic, assignment, "b")
        publisher.start()
        wait_until(lambda: len(publisher.acknowledged) > len(lost))
        publisher.stop()
        follower.wait_for(publisher.acknowledged[-1])
        later = Follower(gateway.bootstrap, topic.name)
        later.wait_for(publisher.acknowledged[-1])
        for each in (follower, later):
            each.stop()
        expected = list(enumerate(publisher.acknowledged, len(lost)))
        assert (later.records, later.errors) == (expected, [])
        assert (follower.records, follower.errors) == ([*enumerate(lost), *expected], [])
    finally:
        gateway.kill()
        cluster.kill()


def side_files(topic: ForeignTopic) -> list[str]:
    return [entry.name for entry in topic.entries(f"{topic_folder(topic.name)}/.kgateway/0")]


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = monotonic() + _PATIENCE_S
    while not is_so():
        assert monotonic() < deadline, "it never came"
        sleep(0.02)


def check(follower: Follower, later: Follower, log: list[bytes], subscriber: list[bytes]) -> None:
    assert follower.errors == later.errors == []
    assert subscriber == log
    assert [value for _, value in later.records] == log
    offsets = [offset or 0 for offset, _ in follower.records]
    assert offsets == sorted(set(offsets))
    at = dict(later.records)
    in_log = set(log)
    followed = [(offset, value) for offset, value in follower.records if value in in_log]
    assert [value for _, value in followed] == log
    assert [(offset, value) for offset, value in followed if at.get(offset) != value] == []
