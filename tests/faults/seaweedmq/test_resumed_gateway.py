"""
A consumer continues where it was, though the broker has unloaded the partition meanwhile. All records of these topics
are in the first file of a partition, of which a broker that loads it knows nothing by itself.
"""

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, TopicPartition

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from tests.faults.client import Client
from tests.faults.producers import QUICK_TO_RETURN
from tests.faults.seaweedmq.gateway import Gateway
from tests.faults.seaweedmq.kafka_requests import PATIENCE_S, all_values, produce_until_taken

_READ = 4  # records, before the consumer leaves
_FORMS = ["batch", "record", "plain"]
_FIRST = [b"first %d" % number for number in range(10)]

Idle = Callable[[DevCluster, Gateway], None]


def gateway_ends(cluster: DevCluster, gateway: Gateway) -> None:
    """
    Stop the gateway. Its publishers were the last, so the broker unloads the partition.
    """
    gateway.stop()
    gateway.start()


def broker_restarts(cluster: DevCluster, gateway: Gateway) -> None:
    """
    Restart the broker, which does not know the partition until it is asked.
    """
    cluster.broker.kill()
    cluster.broker.start()


def both_restart(cluster: DevCluster, gateway: Gateway) -> None:
    gateway.stop()
    broker_restarts(cluster, gateway)
    gateway.start()


def consumed(gateway: Gateway, topic: str, count: int) -> list[bytes]:
    """
    Consume this many records from the committed offset of the topic's group, and commit.
    """
    config = {"bootstrap.servers": gateway.bootstrap, "group.id": f"group of {topic}", "enable.auto.commit": False}
    consumer = Consumer({**config, **QUICK_TO_RETURN, "auto.offset.reset": "earliest"})
    try:
        [place] = consumer.committed([TopicPartition(topic, 0)], timeout=PATIENCE_S)
        consumer.assign([TopicPartition(topic, 0, max(place.offset, 0))])
        messages = consumer.consume(count, timeout=PATIENCE_S)
        consumer.commit(offsets=[TopicPartition(topic, 0, max(place.offset, 0) + len(messages))], asynchronous=False)
        assert not any(message.error() for message in messages)
        return [message.value() or b"" for message in messages]
    finally:
        consumer.close()


@pytest.mark.parametrize("idle", [gateway_ends, broker_restarts, both_restart])
def test_consumers_go_on_where_they_were(cluster: DevCluster, tmp_path: Path, idle: Idle) -> None:
    """
    They get the rest of the old records, and then new ones, at the offsets that follow.
    """
    topics = [f"resuming-{form}-{uuid4().hex[:8]}" for form in _FORMS]
    gateway = Gateway(cluster, tmp_path)
    gateway.start()
    try:
        with Client(gateway.port) as client:
            for topic, form in zip(topics, _FORMS, strict=True):
                gateway.create(topic, 1, "flushed", form)
                produce_until_taken(client, (topic, 0), *_FIRST)
                assert consumed(gateway, topic, _READ) == _FIRST[:_READ]
        idle(cluster, gateway)
        with Client(gateway.port) as client:
            for topic in topics:
                assert consumed(gateway, topic, len(_FIRST) - _READ) == _FIRST[_READ:]
                produce_until_taken(client, (topic, 0), b"new")
                assert consumed(gateway, topic, 1) == [b"new"]
                assert all_values(gateway, (topic, 0)) == [*_FIRST, b"new"]
    finally:
        gateway.end()
