"""
A broker whose logs do what a test says: what is appended becomes safe later, fails, or is lost with the machine.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from twisted.internet.defer import Deferred, succeed
from zope.interface import implementer

from kgateway.cluster.partition import Appended, Origin
from kgateway.cluster.view import ClusterView, Node, PartitionState, Topic
from kgateway.interfaces import Cancel, IReplay, IStateLog, KeyValue, ProducerEpoch
from kgateway.records.batch import Batch
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message
from kgateway.wire.uuids import Uuid
from tests.groups.replayed import replayed

HERE, THERE = 1, 2
TOPIC_ID = Uuid(b"t" * 16)


class Log:
    """
    Entries, of which those at the end may not be safe yet.
    """

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self.unsafe: deque[Deferred[None]] = deque()
        self.is_slow = False  # whether what is appended is safe later only
        self.error: KafkaError | None = None

    def add(self, entry: Any) -> Appended:
        if self.error:
            raise KafkaError(self.error.code, self.error.message)
        self.entries.append(entry)
        safe: Deferred[None] | None = None
        if self.is_slow or self.unsafe:
            safe = Deferred()
            self.unsafe.append(safe)
        return Appended(len(self.entries) - 1, -1, 0, safe=safe)

    def settle(self, error: KafkaError | None = None) -> None:
        """
        The first one that was not safe is now, or its writer is told of an error, though it stays.
        """
        safe = self.unsafe.popleft()
        if error:
            safe.errback(error)
        else:
            safe.callback(None)

    def settle_all(self) -> None:
        while self.unsafe:
            self.settle()

    def crash(self, kept: int) -> None:
        """
        Of what was not safe so many are kept, and nobody hears of anything any more.
        """
        end = len(self.entries) - max(len(self.unsafe) - kept, 0)
        del self.entries[end:]
        self.unsafe.clear()


@implementer(IStateLog)
class SimulatedState(Log):
    """
    A state log.
    """

    def __init__(self) -> None:
        super().__init__()
        self.epoch = self.index = 0
        self.snapshots: list[list[KeyValue]] = []
        self.lose: Callable[[], None] = lambda: None

    def replay(self) -> Deferred[IReplay]:
        return replayed([[record] for record in self.entries])

    def append(self, records: Sequence[KeyValue], producer: ProducerEpoch | None = None) -> Appended:
        (record,) = records
        return self.add(record)

    def snapshot(self, state: Iterable[KeyValue], undecided_from: int | None = None) -> Deferred[None]:
        self.snapshots.append(list(state))
        return succeed(None)

    def on_lost(self, listener: Callable[[], None]) -> Cancel:
        self.lose = listener
        return lambda: None


class SimulatedPartition(Log):
    """
    A partition, as far as coordinators see it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.open: set[tuple[int, int]] = set()

    def producers(self) -> "SimulatedPartition":
        return self

    def has_open(self, producer_id: int, epoch: int) -> bool:
        return (producer_id, epoch) in self.open

    def append(self, batch: Batch, origin: Origin, client_id: str | None = None) -> Appended:
        assert origin is Origin.COORDINATOR
        return self.add(batch)


class SimulatedPeers:
    """
    The other node.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[Node, Message, int]] = []
        self.answers: deque[Deferred[Message]] = deque()

    def ask(self, node: Node, request: Message, version: int) -> Deferred[Message]:
        self.asked.append((node, request, version))
        answer: Deferred[Message] = Deferred()
        self.answers.append(answer)
        return answer


class SimulatedBroker:
    """
    One node of two, with a topic `t`.
    """

    node_id = HERE

    def __init__(self, leaders: Sequence[int] = (HERE, HERE, HERE)) -> None:
        self.state = SimulatedState()
        self.partitions = [SimulatedPartition() for _ in leaders]
        self.peers = SimulatedPeers()
        self.nodes = (Node(HERE), Node(THERE))
        self.last_id = 100
        self.lead(leaders)

    def lead(self, leaders: Sequence[int]) -> None:
        """
        Let these nodes lead the partitions.
        """
        states = tuple(PartitionState(leader, 0, (leader,), (leader,)) for leader in leaders)
        topic = Topic(TOPIC_ID, "t", states)
        self._view = ClusterView(cluster_id="c", nodes=self.nodes, controller_id=HERE).with_topic(topic)

    def view(self) -> ClusterView:
        return self._view

    def partition(self, topic_id: Uuid, index: int) -> SimulatedPartition:
        if topic_id != TOPIC_ID:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "there is no other")
        return self.partitions[index]

    def coordinator(self, resource: Resource, key: str) -> SimulatedState:
        assert resource is Resource.TRANSACTIONAL_ID
        return self.state

    def coordinators(self, resource: Resource) -> list[SimulatedState]:
        return [self.state]

    def new_producer_id(self) -> Deferred[int]:
        self.last_id += 1
        return succeed(self.last_id)
