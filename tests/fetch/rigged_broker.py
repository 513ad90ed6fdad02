"""
A broker whose partitions obey a test: they wait, fail, move, or belong to another node.
"""

from dataclasses import replace
from math import inf
from typing import Any

from twisted.internet.defer import Deferred

from kgateway.broker.memory import MemoryPartition
from kgateway.broker.partition.producer_state import EXPIRY_MS
from kgateway.cluster.partition import Aborted, Appended, Isolation, Origin, Read
from kgateway.cluster.view import NewTopic, Node, Topic
from kgateway.interfaces import Cancel
from kgateway.records.batch import Batch, read_batch
from kgateway.records.record import Record
from kgateway.wire.uuids import Uuid
from tests.cluster.clusters import Among
from tests.records.values import built
from tests.serving import START_MS, Serving


def batch(value: bytes = b"value", count: int = 1, **options: Any) -> bytes:
    """
    A batch of this many records, as a producer sends it.
    """
    return built([Record(offset, START_MS + offset, b"key", value) for offset in range(count)], **options)


class RiggedPartition(MemoryPartition):
    """
    A partition in memory that counts what is done to it.
    """

    def __init__(self, topic: Topic, index: int) -> None:
        super().__init__(topic, index, now_ms=lambda: START_MS, producer_expiry_ms=EXPIRY_MS)
        self.reads: list[tuple[int, int, Isolation, bool]] = []
        self.due = inf  # limit of the last read
        self.client_ids: list[str | None] = []  # settings of the last append
        self.watchers = 0
        self.stable: int | None = None
        self.aborted: list[Aborted] = []
        self.cold = False  # reads have to wait
        self.waiting: list[tuple[Deferred[Read], Read]] = []
        self.stored: Deferred[None] | None = None
        self.committed: Deferred[None] | None = None

    @property
    def last_stable(self) -> int:
        return self.log_end if self.stable is None else self.stable

    def append(self, batch: Batch, origin: Origin, client_id: str | None = None) -> Appended:
        self.client_ids.append(client_id)
        return replace(super().append(batch, origin), stored=self.stored, committed=self.committed)

    def read(  # type: ignore[override]  # what is in memory never waits; here it does
        self, offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool, due: float = inf
    ) -> Read | Deferred[Read]:
        self.reads.append((offset, max_bytes, isolation, at_least_one))
        self.due = due
        found = replace(super().read(offset, max_bytes, isolation, at_least_one), last_stable=self.last_stable)
        if isolation is Isolation.READ_COMMITTED:
            found = replace(found, aborted=self.aborted)
        if not self.cold:
            return found
        late: Deferred[Read] = Deferred()
        self.waiting.append((late, found))
        return late

    def watch(self, listener: Any) -> Cancel:
        cancel = super().watch(listener)
        self.watchers += 1

        def account() -> None:
            self.watchers -= 1
            cancel()

        return account

    def put(self, *batches: bytes) -> None:
        """
        Append records as if clients had produced them.
        """
        for data in batches:
            self.append(read_batch(data), Origin.CLIENT)

    def move(self) -> None:
        self._listeners.wake()

    def arrive(self) -> None:
        """
        Complete the waiting reads.
        """
        arriving, self.waiting = self.waiting, []
        for late, found in arriving:
            late.callback(found)


class Rigged(Among):
    """
    A broker with such partitions, some of which may be on other nodes.
    """

    def __init__(self, *others: Node) -> None:
        super().__init__(*others)
        self.rigged: dict[tuple[Uuid, int], RiggedPartition] = {}
        self.failing: dict[int, Exception] = {}  # number of the partition -> partition

    def partition(self, topic_id: Uuid, index: int) -> MemoryPartition:
        if index in self.failing:
            raise self.failing[index]
        super().partition(topic_id, index)
        return self.rigged[topic_id, index]

    def make(self, name: str = "orders", partitions: int = 1, **more: Any) -> list[RiggedPartition]:
        topic = self._create(NewTopic(name, partitions, **more))
        made = [RiggedPartition(topic, index) for index in range(partitions)]
        self.rigged |= {(topic.id, partition.index): partition for partition in made}
        return made

    def remove(self, name: str = "orders") -> None:
        topic = self._view.topics[name]
        self._delete(topic.id)
        for index in range(len(topic.partitions)):
            self.rigged.pop((topic.id, index)).move()


def rigged(*others: Node, **settings: Any) -> tuple[Serving, Rigged]:
    """
    A gateway to ask, and its broker.
    """
    serving = Serving(**settings)
    broker = serving.parts.broker = Rigged(*others)
    return serving, broker
