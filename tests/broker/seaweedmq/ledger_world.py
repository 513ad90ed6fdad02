"""
Gateways in front of a real cluster, and their ledgers as seen from outside.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from kgateway.broker.seaweed.calls.addresses import master_addresses
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.broker.seaweedmq.inspection.read_only_cluster import ReadOnlyCluster
from kgateway.broker.seaweedmq.inspection.verification import Finding, Verification
from kgateway.broker.seaweedmq.layout.topic_paths import side_folder
from kgateway.broker.seaweedmq.ledger.ledger import Ledger
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import NewTopic, Topic
from tests.broker.behaviour import appended, at_times, result
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.real_reactor import reactor


def now_ms() -> int:
    """
    The time by the clock of this machine.
    """
    return int(time.time() * 1000)


class World:
    """
    One namespace of a cluster.
    """

    def __init__(self, cluster: DevCluster, seaweed: SeaweedCluster) -> None:
        self.namespace = f"test-{uuid4().hex}"
        self._masters = master_addresses(",".join(cluster.masters))
        self._seaweed = seaweed

    def broker(self, **options: Any) -> SeaweedMQBroker:
        return SeaweedMQBroker(
            self._masters,
            node_id=1,
            now_ms=now_ms,
            reactor=reactor,
            namespace=self.namespace,
            **options,
        )

    @contextmanager
    def running(self, **options: Any) -> Iterator[SeaweedMQBroker]:
        """
        A broker of this world, for a while.
        """
        broker = self.broker(**options)
        result(broker.start())
        try:
            yield broker
        finally:
            result(broker.stop())

    def outside(self) -> ReadOnlyCluster:
        return ReadOnlyCluster(self._seaweed, reactor, self.namespace)

    def kept(self, topic: str = "t", index: int = 0) -> Ledger | None:
        """
        The saved ledger of a partition.
        """
        outside = self.outside()
        (stored,) = done(outside.topics([topic]))
        return done(outside.saved_ledger(stored, index))

    def ledger_path(self, topic: str = "t", index: int = 0) -> str:
        return f"{side_folder(topic, index, self.namespace)}/ledger"

    def in_all(self, topic: str = "t", index: int = 0) -> Ledger:
        """
        The ledger of a partition, stored or only in files.
        """
        outside = self.outside()
        (stored,) = done(outside.topics([topic]))
        return done(outside.ledger(stored, index))

    def findings(self) -> list[Finding]:
        outside = self.outside()

        async def verify() -> list[Finding]:
            verifying = Verification(outside, await outside.topics())
            return [found async for found in verifying.steps() if found]

        return done(verify())


def topic(broker: SeaweedMQBroker, form: str, partitions: int = 1, name: str = "t") -> Topic:
    configs = {"seaweedmq.format": form}
    if form == "plain":
        configs["message.timestamp.type"] = "LogAppendTime"
    return result(broker.create_topic(NewTopic(name, partitions, TopicConfig.of(configs))))


def filled(broker: SeaweedMQBroker, made: Topic, batches: int = 3, index: int = 0) -> None:
    """
    Append this many batches, of two records each.
    """
    for _ in range(batches):
        appended(broker.partition(made.id, index), at_times(now_ms(), now_ms()))


def rows(ledger: Ledger) -> list[tuple[int, int, int]]:
    """
    Kafka's offset, message and span of each row.
    """
    return [(row.kafka, row.message_offset, row.span) for row in ledger.rows]
