"""
A transaction coordinator over any broker, and the requests of its clients.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kgateway.broker.memory import MemoryBroker
from kgateway.cluster.partition import Isolation
from kgateway.cluster.view import NewTopic, Node
from kgateway.config.settings import Settings
from kgateway.context import GatewayParts
from kgateway.interfaces import IBroker
from kgateway.records.batch import batches
from kgateway.records.control import read_marker
from kgateway.security.authorizer import AllowAll
from kgateway.security.permissions import Resource
from kgateway.topic_partition import TopicPartition
from kgateway.transactions.coordinator import TransactionCoordinator
from kgateway.transactions.markers import MarkerWriter
from kgateway.transactions.records import encoded
from kgateway.transactions.state import ProducerIdAndEpoch, Transaction
from tests.broker.behaviour import START_MS, refusal, result

T = TypeVar("T")

TIMEOUT_MS = 60_000
T0, T1, T2 = (TopicPartition("t", index) for index in range(3))
OLD, EACH = 0, 2  # transaction versions
ADD_VERSION, END_VERSION = {OLD: 3, EACH: 5}, {OLD: 4, EACH: 5}  # versions of their clients' requests


def transaction(**fields: Any) -> Transaction:
    """
    A transaction of the id `a`.
    """
    known: dict[str, Any] = {"producer_id": 7, "previous_id": 7, "epoch": 3, "timeout_ms": TIMEOUT_MS, "updated_ms": 5}
    return Transaction(transactional_id="a", **known | fields)


class TransactionWorld:
    """
    The parts of a gateway that transactions need, with a topic `t` of three partitions.
    """

    def __init__(self, make: Callable[[Callable[[], int]], IBroker] | None = None) -> None:
        self.clock = Clock()
        self.broker = make(self.now_ms) if make else MemoryBroker(now_ms=self.now_ms)
        if "t" not in self.broker.view().topics:
            result(self.broker.create_topic(NewTopic("t", 3)))
        self.start()

    def now_ms(self) -> int:
        return START_MS + round(self.clock.seconds() * 1000)

    def start(self) -> None:
        """
        Start a new coordinator over the broker.
        """
        self.parts = GatewayParts(self.broker, Settings(), AllowAll(), self.clock, self.now_ms)
        self.told: list[tuple[TopicPartition, int, bool]] = []
        self.parts.service(MarkerWriter).listen(lambda *told: self.told.append(told))
        self.transactions = self.parts.service(TransactionCoordinator)

    def again(self) -> None:
        """
        Stop the coordinator and start another one.
        """
        self.parts.stop()
        self.start()
        self.clock.pump([0] * 100)

    def found(self, *written: Transaction) -> None:
        """
        Write the state that an earlier coordinator has left.
        """
        for one in written:
            log = self.broker.coordinator(Resource.TRANSACTIONAL_ID, one.transactional_id)
            assert not isinstance(log, Node)
            log.append([encoded(one)])
        self.again()

    def asked(self, answer: Any) -> Any:
        """
        The result of a call that is ready now.
        """
        return result(Deferred.fromCoroutine(answer))

    def init(self, known: ProducerIdAndEpoch | None = None, version: int = 5, name: str = "a") -> ProducerIdAndEpoch:
        found: ProducerIdAndEpoch = self.asked(self.transactions.init_producer(name, TIMEOUT_MS, known, version))
        return found

    def add(
        self, who: ProducerIdAndEpoch, partitions: Iterable[TopicPartition] = (T0,), spoken: int = EACH, name: str = "a"
    ) -> None:
        self.asked(self.transactions.add_partitions(name, who, set(partitions), ADD_VERSION[spoken]))

    def end(self, who: ProducerIdAndEpoch, commits: bool, spoken: int = EACH, name: str = "a") -> ProducerIdAndEpoch:
        found: ProducerIdAndEpoch = self.asked(self.transactions.end(name, who, commits, END_VERSION[spoken]))
        return found

    def state(self, name: str = "a") -> str:
        return self.transactions.describe(name).state.label

    def refused(self, call: Callable[[], Any]) -> str:
        """
        The error code of a refusal.
        """
        return refusal(call).code.name

    def markers(self, place: TopicPartition) -> list[tuple[int, int, bool, int]]:
        """
        The markers of a partition: producer id, epoch, whether it commits, and the coordinator's epoch.
        """
        partition = self.broker.partition(self.broker.view().topics[place.topic].id, place.index)
        read = result(partition.read(partition.log_start, 1 << 20, Isolation.READ_UNCOMMITTED, True))
        found = []
        for data in read.batches:
            for batch in batches(data):
                marker = read_marker(batch) if batch.header.is_control else None
                if marker:
                    header = batch.header
                    told = header.producer_id, header.producer_epoch, marker.commits, marker.coordinator_epoch
                    found.append(told)
        return found
