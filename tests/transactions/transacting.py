"""
A coordinator of transactions over a broker of any kind, and what its clients ask.
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
from kgateway.transactions.coding import encoded
from kgateway.transactions.markers import Markers
from kgateway.transactions.state import Identity, Place, Transaction
from kgateway.transactions.transactions import Transactions
from tests.broker.behaviour import START_MS, refusal, result

T = TypeVar("T")

TIMEOUT_MS = 60_000
T0, T1, T2 = (Place("t", index) for index in range(3))
OLD, EACH = 0, 2  # transaction versions
ADD_VERSION, END_VERSION = {OLD: 3, EACH: 5}, {OLD: 4, EACH: 5}  # of the requests of their clients


def transaction(**fields: Any) -> Transaction:
    """
    One of id `a`.
    """
    known: dict[str, Any] = {"producer_id": 7, "previous_id": 7, "epoch": 3, "timeout_ms": TIMEOUT_MS, "updated_ms": 5}
    return Transaction(transactional_id="a", **known | fields)


class Transacting:
    """
    A gateway as far as transactions see it, with a topic `t` of three partitions.
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
        A new coordinator over what the broker has.
        """
        self.parts = GatewayParts(self.broker, Settings(), AllowAll(), self.clock, self.now_ms)
        self.told: list[tuple[Place, int, bool]] = []
        self.parts.service(Markers).listen(lambda *told: self.told.append(told))
        self.transactions = self.parts.service(Transactions)

    def again(self) -> None:
        """
        The coordinator stops, and another one begins.
        """
        self.parts.stop()
        self.start()
        self.clock.pump([0] * 100)

    def found(self, *written: Transaction) -> None:
        """
        Let this be what an earlier coordinator has left.
        """
        for one in written:
            log = self.broker.coordinator(Resource.TRANSACTIONAL_ID, one.transactional_id)
            assert not isinstance(log, Node)
            log.append([encoded(one)])
        self.again()

    def asked(self, answer: Any) -> Any:
        """
        What a call came to, now.
        """
        return result(Deferred.fromCoroutine(answer))

    def init(self, known: Identity | None = None, version: int = 5, name: str = "a") -> Identity:
        found: Identity = self.asked(self.transactions.init(name, TIMEOUT_MS, known, version))
        return found

    def add(self, who: Identity, places: Iterable[Place] = (T0,), spoken: int = EACH, name: str = "a") -> None:
        self.asked(self.transactions.add_partitions(name, who, set(places), ADD_VERSION[spoken]))

    def end(self, who: Identity, commits: bool, spoken: int = EACH, name: str = "a") -> Identity:
        found: Identity = self.asked(self.transactions.end(name, who, commits, END_VERSION[spoken]))
        return found

    def state(self, name: str = "a") -> str:
        return self.transactions.describe(name).state.label

    def refused(self, call: Callable[[], Any]) -> str:
        """
        With which code.
        """
        return refusal(call).code.name

    def markers(self, place: Place) -> list[tuple[int, int, bool, int]]:
        """
        Of a partition: producer id, epoch, whether it commits, and the epoch of the coordinator.
        """
        partition = self.broker.partition(self.broker.view().topics[place.topic].id, place.partition)
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
