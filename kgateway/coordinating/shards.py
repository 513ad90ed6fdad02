"""
All state logs of one kind that this gateway coordinates.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.cluster.view import Node
from kgateway.coordinating.refusals import as_coordinator
from kgateway.coordinating.state_shard import Ended, StateShard
from kgateway.interfaces import IBroker, IStateLog
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode, KafkaError

S = TypeVar("S", bound=StateShard)


class Shards(Generic[S]):
    """
    The shards of a coordinator, each found by what it has the state of. One is loaded when somebody first asks for it.
    """

    _log = Logger()

    def __init__(self, broker: IBroker, resource: Resource, make: Callable[[IStateLog, Ended], S]) -> None:
        self._broker = broker
        self._resource = resource
        self._make = make
        self._by_log: dict[IStateLog, S] = {}
        self._is_stopped = False

    def having(self, key: str) -> S:
        """
        The shard that has this one, or would have it; a KafkaError where it is not here, or cannot be asked yet.
        """
        found = self._place(key)
        if isinstance(found, Node):
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"the coordinator of {key} is node {found.id}")
        found.check()
        return found

    def coordinator(self, key: str) -> Node | None:
        """
        Which other node has this one; none where it is here, and then it is being loaded if it was not before.
        """
        try:
            found = self._place(key)
        except KafkaError as error:
            never = error.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED  # this broker has none
            raise KafkaError(error.code if never else ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from None
        return found if isinstance(found, Node) else None

    def loading(self, keys: Iterable[str]) -> list[Deferred[None]]:
        """
        What fires when all of these can be asked for, or never will; nothing where they can be now.
        """
        found = list[S]()
        if all(shard.is_serving for shard in self._by_log.values()):
            return []  # nearly always
        for key in keys:
            with suppress(KafkaError):
                place = self._place(key)
                if not isinstance(place, Node) and not place.is_serving and place not in found:
                    found.append(place)
        return [shard.when_loaded() for shard in found]

    def at(self, index: int) -> S | None:
        """
        That of this partition of the internal topic, if anybody has asked for it yet.
        """
        return next((shard for log, shard in self._by_log.items() if log.index == index), None)

    def all(self) -> list[S]:
        """
        All that are here, loaded or not.
        """
        self._check_running()
        try:
            logs = self._broker.coordinators(self._resource)
        except KafkaError as error:
            raise as_coordinator(error) from None
        return [self._by_log.get(log) or self._open(log) for log in logs]

    def known(self) -> list[S]:
        """
        Those that can be had now. Who asks for something in another one begins to load it.
        """
        try:
            return self.all()
        except KafkaError as error:
            told = {"kind": self._resource.name.lower().replace("_", " "), "error": error}
            self._log.info("not every {kind} can be loaded now: {error}", **told)
            return list(self._by_log.values())

    def stop(self) -> None:
        """
        Coordinate nothing any more.
        """
        self._is_stopped = True
        for shard in list(self._by_log.values()):
            shard.stop()

    def _place(self, key: str) -> S | Node:
        self._check_running()
        try:
            log = self._broker.coordinator(self._resource, key)
        except KafkaError as error:
            raise as_coordinator(error) from None
        return log if isinstance(log, Node) else self._by_log.get(log) or self._open(log)

    def _check_running(self) -> None:
        if self._is_stopped:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the gateway stops")

    def _open(self, log: IStateLog) -> S:
        shard = self._by_log[log] = self._make(log, self._ended)
        shard.start()
        return shard

    def _ended(self, shard: StateShard) -> None:
        del self._by_log[shard.log]
