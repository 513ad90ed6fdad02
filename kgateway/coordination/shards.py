"""
All shards of one kind of coordinator in this gateway.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.cluster.view import Node
from kgateway.coordination.shard import CoordinatorShard, Ended, coordinator_error
from kgateway.interfaces import IBroker, IStateLog
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode, KafkaError

S = TypeVar("S", bound=CoordinatorShard)


class CoordinatorShards(Generic[S]):
    """
    Finds the shard of a group or transactional id. A shard is loaded when somebody first asks for it.
    """

    _log = Logger()

    def __init__(self, broker: IBroker, resource: Resource, make: Callable[[IStateLog, Ended], S]) -> None:
        self._broker = broker
        self._resource = resource
        self._make = make
        self._by_log: dict[IStateLog, S] = {}
        self._is_stopped = False

    def shard_of(self, key: str) -> S:
        """
        The shard that has the id, or would have it; a KafkaError if it is on another node, or not loaded yet.
        """
        found = self._find(key)
        if isinstance(found, Node):
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"the coordinator of {key} is node {found.id}")
        found.check()
        return found

    def node_of(self, key: str) -> Node | None:
        """
        The other node that coordinates the id; `None` if this one does, which then begins to load the shard if need
        be.
        """
        try:
            found = self._find(key)
        except KafkaError as error:
            never = error.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED  # this broker has none
            raise KafkaError(error.code if never else ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from None
        return found if isinstance(found, Node) else None

    def loading(self, keys: Iterable[str]) -> list[Deferred[None]]:
        """
        Deferreds that fire when the shards of these ids are loaded, or never will be; empty if all are loaded.
        """
        found: list[S] = []
        if all(shard.is_serving for shard in self._by_log.values()):
            return []  # nearly always
        for key in keys:
            with suppress(KafkaError):
                shard = self._find(key)
                if not isinstance(shard, Node) and not shard.is_serving and shard not in found:
                    found.append(shard)
        return [shard.when_loaded() for shard in found]

    def at(self, index: int) -> S | None:
        """
        The shard of this partition of the internal topic, if anybody has asked for it yet.
        """
        return next((shard for log, shard in self._by_log.items() if log.index == index), None)

    def all(self) -> list[S]:
        """
        All shards of this node, loaded or not.
        """
        self._check_running()
        try:
            logs = self._broker.coordinators(self._resource)
        except KafkaError as error:
            raise coordinator_error(error) from None
        return [self._by_log.get(log) or self._open(log) for log in logs]

    def available(self) -> list[S]:
        """
        As `all`; but if not all are available, those that were asked for before.
        """
        try:
            return self.all()
        except KafkaError as error:
            values = {"kind": self._resource.name.lower().replace("_", " "), "error": error}
            self._log.info("cannot load every {kind} now: {error}", **values)
            return list(self._by_log.values())

    def stop(self) -> None:
        self._is_stopped = True
        for shard in list(self._by_log.values()):
            shard.stop()

    def _find(self, key: str) -> S | Node:
        if self._is_stopped:
            self._check_running()
        try:
            log = self._broker.coordinator(self._resource, key)
        except KafkaError as error:
            raise coordinator_error(error) from None
        return log if isinstance(log, Node) else self._by_log.get(log) or self._open(log)

    def _check_running(self) -> None:
        if self._is_stopped:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the gateway is stopping")

    def _open(self, log: IStateLog) -> S:
        shard = self._by_log[log] = self._make(log, self._ended)
        shard.start()
        return shard

    def _ended(self, shard: CoordinatorShard) -> None:
        del self._by_log[shard.log]
