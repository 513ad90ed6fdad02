"""
A gateway is killed before its ledgers are saved, and another one makes them again: from the log files alone, or from an
older ledger and the files after it. Each of Kafka's offsets stays with its record, and the ledgers lead to them.
"""

import json
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweedmq.formats.format import Message as SeaweedMessage
from kgateway.broker.seaweedmq.formats.registry import FORMATS
from tests.broker.seaweedmq.foreign_topic import ForeignTopic
from tests.faults.producers import QUICK_TO_RETURN
from tests.faults.seaweedmq.gateway import Gateway
from tests.faults.seaweedmq.gateway_pair import until_leader

_PATIENCE_S = 30
_RECORDS = 300
_THEIRS = 5
_INTERVAL = "--seaweedmq-ledger-interval-ms"


class Topic:
    """
    A topic, and the values that consumers and producers have seen at its offsets.
    """

    def __init__(self, cluster: DevCluster, form: str) -> None:
        self.name = f"{form}-{uuid4().hex[:8]}"
        self.seen: dict[int, bytes] = {}
        self._cluster = cluster
        self._form = form

    def produce(self, gateway: Gateway) -> None:
        """
        Produce records, and note the offsets with which they are acknowledged.
        """
        producer = Producer({"bootstrap.servers": gateway.bootstrap, "acks": "all", "linger.ms": 1})
        first = len(self.seen)

        def delivered(error: object, message: Message) -> None:
            assert error is None, error
            self._note(message)

        for number in range(first, first + _RECORDS):
            producer.produce(self.name, f"ours {number}".encode(), b"key", on_delivery=delivered)
            if number % 100 == 0:
                producer.flush(_PATIENCE_S)
        assert producer.flush(_PATIENCE_S) == 0
        assert len(self.seen) == first + _RECORDS

    def publish(self, gateway: Gateway) -> None:
        """
        Publish as another program, and consume that. A topic of batches does not take it.
        """
        if self._form == "batch":
            return
        first = len(self.seen)
        theirs = [SeaweedMessage(b"key", b"theirs %d" % number) for number in range(first, first + _THEIRS)]
        ForeignTopic(self._cluster, FORMATS[self._form].record_type(), self.name).publish(theirs)
        self.consume(gateway, first + _THEIRS)

    def consume(self, gateway: Gateway, end: int) -> None:
        """
        Consume all records; each must be what it was.
        """
        consumer = Consumer({"bootstrap.servers": gateway.bootstrap, "group.id": "g", **QUICK_TO_RETURN})
        try:
            consumer.assign([TopicPartition(self.name, 0, 0)])
            found = consumer.consume(end, _PATIENCE_S)
        finally:
            consumer.close()
        assert [message.offset() for message in found] == list(range(end))
        for message in found:
            self._note(message)

    def _note(self, message: Message) -> None:
        offset, value = message.offset(), message.value()
        assert offset is not None
        assert value is not None
        assert self.seen.setdefault(offset, value) == value


class Inspection:
    """
    `kgateway seaweedmq` with the cluster.
    """

    def __init__(self, cluster: DevCluster) -> None:
        self._masters = ",".join(cluster.masters)

    def __call__(self, kind: str, *arguments: str) -> tuple[int, Any]:
        program = [sys.executable, "-m", "kgateway", "seaweedmq", kind, "--json", "--masters", self._masters]
        ended = subprocess.run([*program, *arguments], capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
        assert ended.stdout, ended.stderr
        return ended.returncode, json.loads(ended.stdout)

    def saved_rows(self, topic: str) -> int:
        _, told = self("stats", topic)
        (partition,) = told["partitions"]
        rows: int = partition["rows"]
        return rows

    def until_saved(self, topic: Topic) -> None:
        """
        Wait until the saved ledger has all of the log.
        """
        deadline = monotonic() + _PATIENCE_S
        while (told := self("verify", topic.name)) and (told[0] or told[1]["findings"] or not told[1]["rows"]):
            assert monotonic() < deadline, told
            sleep(0.2)


@pytest.mark.parametrize("form", FORMATS)
def test_a_kill_before_a_ledger_is_saved(form: str, cluster: DevCluster, tmp_path: Path) -> None:
    """
    The first take-over finds no ledger, and the second one finds an old one.
    """
    topic, inspect = Topic(cluster, form), Inspection(cluster)
    gateways = [
        Gateway(cluster, tmp_path, f"gateway-{node_id}", node_id, options=[_INTERVAL, interval])
        for node_id, interval in enumerate(("1h", "200ms", "1h", "200ms"), 1)
    ]
    try:
        end = ours(topic, gateways[0], create=form)
        assert inspect.saved_rows(topic.name) == 0
        gateways[0].kill()
        taken_over(gateways[1], topic, end)
        inspect.until_saved(topic)
        rows = inspect.saved_rows(topic.name)
        gateways[1].stop()
        end = ours(topic, gateways[2])
        assert inspect.saved_rows(topic.name) == rows
        gateways[2].kill()
        taken_over(gateways[3], topic, end)
        inspect.until_saved(topic)
        assert inspect.saved_rows(topic.name) > rows
        for offset in (0, rows, _RECORDS, end - 1):
            code, mapping = inspect("mapping", topic.name, "0", str(offset))
            assert (code, mapping["offset"]) == (0, offset)
    finally:
        for gateway in gateways:
            gateway.end()
    assert [trace for gateway in gateways for trace in gateway.tracebacks()] == []


def ours(topic: Topic, gateway: Gateway, create: str = "") -> int:
    """
    Let this gateway lead, and produce; others publish meanwhile. Returns the end of the log.
    """
    gateway.start()
    until_leader(gateway)
    if create:
        gateway.create(topic.name, 1, "flushed", create)
    topic.produce(gateway)
    topic.publish(gateway)
    topic.produce(gateway)
    return len(topic.seen)


def taken_over(gateway: Gateway, topic: Topic, end: int) -> None:
    """
    Let this gateway lead, and demand that each record is where it was, and that new ones follow.
    """
    gateway.start()
    until_leader(gateway)
    topic.consume(gateway, end)
    assert "reading them from there" in gateway.log
