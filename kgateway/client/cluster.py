"""
The servers of a cluster, each asked for what it alone knows.

Nothing of who coordinates or leads is remembered: who asks again, because something has moved, asks anew.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from kgateway.client.address import Address
from kgateway.client.connection import Connection, Unanswered
from kgateway.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from kgateway.wire.errors import ErrorCode, KafkaError

T = TypeVar("T")

_CODES = set(ErrorCode) - {ErrorCode.NONE}
_PAUSE_S = 0.1
GROUP, TRANSACTION = 0, 1  # key types of FindCoordinator


class Node(NamedTuple):
    """
    A server, and where it says it is.
    """

    id: int
    address: Address

    def __str__(self) -> str:
        return f"{self.id} at {self.address}"


class Cluster:
    """
    A cluster, by the addresses of some of its servers: the first that answers will do.
    """

    def __init__(self, bootstrap: Sequence[Address], patience_s: float) -> None:
        self._patience_s = patience_s
        self._connections: dict[Address, Connection] = {}
        self._known = list(bootstrap)  # of which one will answer again, when others have gone
        self._bootstrap = self._first_of(bootstrap)

    @classmethod
    def reached(cls, bootstrap: Sequence[Address], patience_s: float) -> Self:
        """
        The cluster, as soon as one of these answers.
        """
        deadline = time.monotonic() + patience_s
        while True:
            try:
                return cls(bootstrap, patience_s)
            except Unanswered:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_PAUSE_S)

    def nodes(self) -> list[Node]:
        """
        All servers.
        """
        brokers = self.metadata([]).brokers
        return sorted(Node(broker.node_id, Address(broker.host, broker.port)) for broker in brokers)

    def metadata(self, topics: Iterable[str] | None) -> MetadataResponse:
        """
        The servers, and these topics, or all; none is created.
        """
        asked = None if topics is None else [MetadataRequest.Topic(name=name) for name in topics]
        return self._bootstrap.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False), MetadataResponse)

    def controller(self) -> Connection:
        """
        The server that makes and changes topics; where none says so, the one that is asked passes it on.
        """
        told = self.metadata([])
        nodes = {broker.node_id: Node(broker.node_id, Address(broker.host, broker.port)) for broker in told.brokers}
        found = nodes.get(told.controller_id)
        return self.connection(found) if found else self._bootstrap

    def anyone(self) -> Connection:
        """
        A server, for what each of them knows.
        """
        return self._bootstrap

    def connection(self, node: Node) -> Connection:
        """
        The one to this server.
        """
        try:
            return self._connection(node.address)
        except Unanswered as error:
            told = f"{self._bootstrap.address} says that server {node.id} is at {node.address}"
            raise Unanswered(f"{error}; {told}: is that an address which can be reached from here?") from error

    def coordinator(self, key: str, kind: int = GROUP) -> Node:
        """
        Who looks after the group, or the transactional id.
        """
        request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
        answer = self._bootstrap.ask(request, FindCoordinatorResponse)
        found = answer.coordinators[0] if answer.coordinators else answer  # before v4 it stands in the answer itself
        refuse(found.error_code, found.error_message)
        return Node(found.node_id, Address(found.host, found.port))

    def settled(self, attempt: Callable[[], T]) -> T:
        """
        The outcome of an attempt, which is made again for as long as there is hope of a better one.
        """
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return attempt()
            except KafkaError as error:
                if not error.code.retriable or time.monotonic() >= deadline:
                    raise
            time.sleep(_PAUSE_S)

    def kept_up(self, attempt: Callable[[], T]) -> T:
        """
        As `settled`, and through connections that break, which are made anew: for what may be asked twice.
        """
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return self.settled(attempt)
            except Unanswered:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_PAUSE_S)
            self._reconnect(deadline)

    def close(self) -> None:
        """
        End all connections.
        """
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _reconnect(self, deadline: float) -> None:
        self.close()
        while True:
            try:
                self._bootstrap = self._first_of(self._known)
                return
            except Unanswered:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_PAUSE_S)

    def _first_of(self, addresses: Sequence[Address]) -> Connection:
        problems = []
        for address in addresses:
            try:
                return self._connection(address)
            except Unanswered as error:
                problems.append(str(error))
        raise Unanswered("; ".join(problems))

    def _connection(self, address: Address) -> Connection:
        if address not in self._connections:
            self._connections[address] = Connection(address, self._patience_s)
        return self._connections[address]


def refuse(code: int, message: str | None = None) -> None:
    """
    Raise what an error code says, unless it is that all went well.
    """
    if code in _CODES:
        raise KafkaError(ErrorCode(code), message)
    if code != ErrorCode.NONE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message or f"error {code}, which is not known here")
