"""
A broker with scripted logs: an append is committed later, fails, or is lost in a crash.
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
from tests.groups.fake_replay import replayed

HERE, THERE = 1, 2
TOPIC_ID = Uuid(b"t" * 16)


class Log:
    """
    Entries, the last of which may be uncommitted.
    """

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self.uncommitted: deque[Deferred[None]] = deque()
        self.is_slow = False  # whether appends are committed later
        self.error: KafkaError | None = None

    def add(self, entry: Any) -> Appended:
        if self.error:
            raise KafkaError(self.error.code, self.error.message)
        self.entries.append(entry)
        committed: Deferred[None] | None = None
        if self.is_slow or self.uncommitted:
            committed = Deferred()
            self.uncommitted.append(committed)
        return Appended(len(self.entries) - 1, -1, 0, committed=committed)

    def settle(self, error: KafkaError | None = None) -> None:
        """
        Commit the first uncommitted entry, or fail its write although it is in the log.
        """
        committed = self.uncommitted.popleft()
        if error:
            committed.errback(error)
        else:
            committed.callback(None)

    def settle_all(self) -> None:
        while self.uncommitted:
            self.settle()

    def crash(self, kept: int) -> None:
        """
        Keep `kept` uncommitted entries; appends are not answered any more.
        """
        end = len(self.entries) - max(len(self.uncommitted) - kept, 0)
        del self.entries[end:]
        self.uncommitted.clear()


@implementer(IStateLog)
class SimulatedStateLog(Log):
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
    A partition with what coordinators use of it.
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
        self.state = SimulatedStateLog()
        self.partitions = [SimulatedPartition() for _ in leaders]
        self.peers = SimulatedPeers()
        self.nodes = (Node(HERE), Node(THERE))
        self.last_id = 100
        self.lead(leaders)

    def lead(self, leaders: Sequence[int]) -> None:
        """
        Make these nodes lead the partitions.
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

    def coordinator(self, resource: Resource, key: str) -> SimulatedStateLog:
        assert resource is Resource.TRANSACTIONAL_ID
        return self.state

    def coordinators(self, resource: Resource) -> list[SimulatedStateLog]:
        return [self.state]

    def new_producer_id(self) -> Deferred[int]:
        self.last_id += 1
        return succeed(self.last_id)
