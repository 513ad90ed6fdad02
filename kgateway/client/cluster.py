"""
The servers of a cluster; each request is sent to a server that can answer it.

Coordinators and leaders are not cached here: each attempt looks them up again.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from kgateway.client.backoff import retry
from kgateway.client.connection import Address, Connection, NothingListens, Unanswered
from kgateway.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

T = TypeVar("T")

_CODES = set(ErrorCode) - {ErrorCode.NONE}
NO_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID)
_NO_SUCH_TOPIC = (*NO_TOPIC, ErrorCode.INVALID_TOPIC_EXCEPTION)
SETTLING_S = 5.0  # not every server knows at once what has changed
GROUP, TRANSACTION = 0, 1  # key types of FindCoordinator


class Node(NamedTuple):
    id: int
    address: Address

    def __str__(self) -> str:
        return f"{self.id} at {self.address}"


class Leader(NamedTuple):
    """
    The leader of a partition, its epoch, and the id of the topic, which changes when the topic is deleted and created
    again. The id is all zeroes if the server is too old to have ids.
    """

    node: Node
    epoch: int
    topic_id: Uuid


class Cluster:
    """
    A cluster, reached by the first bootstrap server that answers. Connections are opened when they are needed.
    """

    def __init__(self, bootstrap: Sequence[Address], patience_s: float, answer_s: float | None = None) -> None:
        self._patience_s = patience_s
        self._answer_s = patience_s if answer_s is None else answer_s  # the longest that one answer may take
        self._connections: dict[Address, Connection] = {}
        self._bootstrap = bootstrap
        self._any_server: Connection | None = None
        self.cluster_id: str | None = None  # of the last metadata

    def nodes(self) -> list[Node]:
        return sorted(nodes_in(self.metadata([])).values())

    def metadata(self, topics: Iterable[str] | None, *, may_create: bool = False) -> MetadataResponse:
        """
        The servers, and these topics or all of them. With `may_create` a server that creates topics automatically
        creates the missing ones.
        """
        asked = None if topics is None else [MetadataRequest.Topic(name=name) for name in topics]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=may_create)
        metadata = self.any_server().ask(request, MetadataResponse)
        self.cluster_id = metadata.cluster_id
        return metadata

    def controller(self) -> Connection:
        """
        The server that creates and changes topics. If the metadata names none, any server forwards the request.
        """
        metadata = self.metadata([])
        node = nodes_in(metadata).get(metadata.controller_id)
        return self.connection(node) if node else self.any_server()

    def any_server(self) -> Connection:
        """
        A connection to a server, for requests that every server can answer.
        """
        if self._any_server is None or not self._any_server.is_open:
            self._any_server = self._first_of(self._bootstrap)
        return self._any_server

    def connection(self, node: Node) -> Connection:
        try:
            return self._connection(node.address)
        except Unanswered as error:
            advertised = f"{self.any_server().address} says that server {node.id} is at {node.address}"
            raise Unanswered(f"{error}; {advertised}: can that address be reached from here?") from error

    def coordinator(self, key: str, kind: int = GROUP) -> Node:
        request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
        answer = self.any_server().ask(request, FindCoordinatorResponse)
        found = answer.coordinators[0] if answer.coordinators else answer  # before v4 the answer itself has the fields
        refuse(found.error_code, found.error_message)
        return Node(found.node_id, Address(found.host, found.port))

    def retry(
        self,
        attempt: Callable[[], T],
        *,
        reconnect: bool = False,
        report: Callable[[Exception, float], None] = lambda error, patience_s: None,
    ) -> T:
        """
        Repeat an attempt until it succeeds, fails for good, or patience ends. With `reconnect` it is repeated also
        after a broken connection or if no server answered; the request must be safe to send twice. The first failure
        that is retried is reported, with the patience.
        """

        def patience_s(error: Exception) -> float:
            if isinstance(error, KafkaError) and error.code.retriable:
                return min(SETTLING_S, self._patience_s) if error.code in NO_TOPIC else self._patience_s
            if isinstance(error, Unanswered):
                self.close()
                return self._patience_s if reconnect else 0
            return 0

        return retry(attempt, patience_s, report)

    def limit_patience(self, patience_s: float) -> None:
        """
        Wait at most this long from now on: the program is about to end.
        """
        self._patience_s, self._answer_s = min(self._patience_s, patience_s), min(self._answer_s, patience_s)
        for connection in self._connections.values():
            connection.limit_patience(patience_s)

    def close(self) -> None:
        """
        Close all connections; later requests open new ones.
        """
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._any_server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _first_of(self, addresses: Sequence[Address]) -> Connection:
        problems = []
        for address in addresses:
            try:
                return self._connection(address)
            except Unanswered as error:
                problems.append(error)
        kind = NothingListens if all(isinstance(error, NothingListens) for error in problems) else Unanswered
        raise kind("; ".join(map(str, problems)))

    def _connection(self, address: Address) -> Connection:
        known = self._connections.get(address)
        if known is None or not known.is_open:
            known = self._connections[address] = Connection(address, self._answer_s)
        return known


def nodes_in(metadata: MetadataResponse) -> dict[int, Node]:
    return {one.node_id: Node(one.node_id, Address(one.host, one.port)) for one in metadata.brokers}


def refuse(code: int, message: str | None = None) -> None:
    """
    Raise the error of a code, if it is one.
    """
    if code in _CODES:
        raise KafkaError(ErrorCode(code), message)
    if code != ErrorCode.NONE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message or f"error {code}, which this client does not know")


def leaders_of(cluster: Cluster, topics: Iterable[str], *, may_create: bool = False) -> dict[TopicPartition, Leader]:
    """
    The leaders of all partitions of the topics that exist; KafkaError if a partition has none at the moment.
    """
    found = _leaders_in(cluster.metadata(topics, may_create=may_create))
    return {one: _present(one, leader) for one, leader in found.items()}


def leaders_of_all(cluster: Cluster, wanted: Collection[TopicPartition]) -> dict[TopicPartition, Leader]:
    """
    The leaders of these partitions; KafkaError if one has none at the moment, or does not exist.
    """
    found = _leaders_in(cluster.metadata(sorted({one.topic for one in wanted})))
    missing = sorted(set(wanted) - found.keys())
    if missing:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no {missing[0]}")
    return {one: _present(one, found[one]) for one in wanted}


def _leaders_in(metadata: MetadataResponse) -> dict[TopicPartition, Leader | None]:
    nodes, leaders = nodes_in(metadata), dict[TopicPartition, Leader | None]()
    for topic in metadata.topics:
        if topic.error_code in _NO_SUCH_TOPIC:
            continue
        refuse(topic.error_code)
        for one in topic.partitions:
            node = nodes.get(one.leader_id)
            partition = TopicPartition(topic.name or "", one.partition_index)
            leaders[partition] = Leader(node, one.leader_epoch, topic.topic_id) if node else None
    return leaders


def _present(partition: TopicPartition, leader: Leader | None) -> Leader:
    if leader is None:
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader at the moment")
    return leader


def partitions_of(cluster: Cluster, topics: Iterable[str]) -> dict[str, list[TopicPartition]]:
    leaders = leaders_of(cluster, topics)
    return {name: sorted(partitions) for name, partitions in by_topic(leaders).items()}


def by_node(leaders: Mapping[TopicPartition, Node]) -> dict[Node, list[TopicPartition]]:
    led: defaultdict[Node, list[TopicPartition]] = defaultdict(list)
    for partition, node in leaders.items():
        led[node].append(partition)
    return led


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    topics: defaultdict[str, list[TopicPartition]] = defaultdict(list)
    for partition in partitions:
        topics[partition.topic].append(partition)
    return topics
