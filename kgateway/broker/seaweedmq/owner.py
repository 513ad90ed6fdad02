"""
Who owns the topics of a cluster: one gateway at a time, known by a number that only grows.

The numbers are objects of a chain in the filer, each won by one gateway; the number of the last is the owner epoch, and
the leader epoch of every partition. A lock in the filers' memory says whether the owner is alive: whoever has the lock
takes the next number. An owner whose lock was taken by another owns nothing any more.

Publishing to SeaweedMQ checks no epoch. So an owner whose lock was not renewed in time, be it that it was asleep, takes
no records any more until it knows that nobody else has had the lock. What it had sent before is there before its heir
looks.
"""

import json
from collections.abc import Callable
from math import inf
from typing import NamedTuple

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweed.chain import Chain, ChainObject
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.lock import Lock
from kgateway.broker.seaweedmq.in_kafkas_words import CLUSTERS_ERRORS
from kgateway.cluster.view import NO_NODE
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

LOCK_S = 6
_RENEW_S = 1.5
_RENEW_AGAIN_S = 0.2
_ASK_S = 1.0
_LATE_S = 1.0  # what no timer is, on a machine that is merely busy


class Ownership(NamedTuple):
    """
    Who owns the topics, and of which cluster.
    """

    epoch: int
    cluster_id: str
    node_id: int


class Owner:
    """
    This gateway, which owns the topics or waits for that.
    """

    _log = Logger()

    def __init__(
        self,
        lock: Lock,
        chain: Chain,
        name: str,
        node_id: int,
        clock: IReactorTime,
        waits: Callable[[Ownership], None],
        lost: Callable[[], None],
    ) -> None:
        self._lock = lock
        self._chain = chain
        self._name = name
        self._node_id = node_id
        self._clock = clock
        self._waits = waits  # told every second who has the topics while this gateway has not
        self._lost = lost
        self._keeping: Deferred[None] | None = None
        self._until = 0.0  # as long the lock is ours, whatever happens
        self._due = inf  # when the lock is renewed next
        self._was_late = False  # and has not been renewed since
        self._last: Ownership | None = None  # as far as is known
        self._leaves = False

    async def take(self) -> Ownership:
        """
        Own the topics: at once, or when the gateway that does is gone.
        """
        self._stop_keeping()
        await self._chain.catch_up(self._note)
        asked = self._clock.seconds()
        if not await self._is_won():
            asked = await self._wait()
        ownership = await self._next()
        self._until = asked + LOCK_S
        self._log.info("this gateway owns the topics, in epoch {epoch}", epoch=ownership.epoch)
        self._keeping = Deferred.fromCoroutine(self._keep(ownership.epoch)).addErrback(self._ended)
        return ownership

    def demand(self) -> None:
        """
        A KafkaError where another gateway may own the topics by now: this one was asleep, or no filer has answered it.
        """
        if self._clock.seconds() >= self._until:
            reason = f"this gateway could not renew its lock within {LOCK_S} s; another one may own the topics"
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, reason)

    def has_overslept(self) -> bool:
        """
        Whether this process stood still for so long that another may own the topics by now, and has not asked yet.
        """
        now = self._clock.seconds()
        return now >= self._until and (self._was_late or now - self._due > _LATE_S)

    def leave(self) -> None:
        """
        Take the topics no more: this gateway is going to stop.
        """
        self._leaves = True

    async def give_back(self) -> None:
        """
        Own nothing any more, and let the next one begin at once.
        """
        self._stop_keeping()
        try:
            await self._lock.give_back()
        except RpcError as error:
            self._log.info("the lock is left to run out: {error}", error=error)

    def _stop_keeping(self) -> None:
        self._until = 0.0
        if self._keeping:
            self._keeping.cancel()
            self._keeping = None

    async def _is_won(self) -> bool:
        """
        Whether the lock is ours. A filer that was started just now has forgotten whose it is: who has it comes first.
        """
        if self._leaves:
            return False
        return (not self._last or not await self._lock.may_be_forgotten()) and await self._lock.take()

    async def _wait(self) -> float:
        """
        Wait for the lock; when it was asked for with success.
        """
        told = ""
        while True:
            if told != self._lock.holder:
                told = self._lock.holder
                self._log.warn("{holder} owns the topics; this gateway takes over when it is gone", holder=told)
            if self._last:
                self._waits(self._last)
            await deferLater(self._clock, _ASK_S)
            asked = self._clock.seconds()
            try:
                if await self._is_won():
                    return asked
                await self._chain.catch_up(self._note)
            except CLUSTERS_ERRORS as error:
                self._log.info("nobody can tell who owns the topics: {error}", error=error)

    async def _next(self) -> Ownership:
        """
        Take the next number of the chain.
        """
        await self._chain.catch_up(self._note)
        cluster_id = self._last.cluster_id if self._last else str(Uuid.random())
        entry = {"cluster": cluster_id, "owner": self._name, "node": self._node_id}
        epoch = await self._chain.append(json.dumps(entry).encode())
        self._last = Ownership(epoch, cluster_id, self._node_id)
        return self._last

    def _note(self, found: ChainObject) -> None:
        told = json.loads(found.payload)
        self._last = Ownership(found.number, told["cluster"], told.get("node", NO_NODE))

    async def _keep(self, epoch: int) -> None:
        """
        Renew the lock until it is another's, or was.
        """
        ours = is_sure = True
        problem = ""
        while ours:
            delay = _RENEW_AGAIN_S if problem else _RENEW_S
            self._due = self._clock.seconds() + delay
            await deferLater(self._clock, delay)
            asked = self._clock.seconds()
            self._was_late, self._due = self._was_late or asked - self._due > _LATE_S, inf
            is_sure = is_sure and self._lock.is_ours  # that nobody else has had it
            try:
                ours = await self._lock.take()
                if ours and not is_sure:
                    ours = is_sure = await self._is_last(epoch)
            except CLUSTERS_ERRORS as error:
                if not problem:
                    problem = str(error)
                    self._log.info("the lock could not be renewed, and is asked for again: {error}", error=error)
            else:
                problem = ""
                self._until = asked + LOCK_S if ours else 0.0
                self._was_late = False
        self._keeping = None
        self._log.error("{holder} owns the topics now", holder=self._lock.holder)
        self._lost()

    async def _is_last(self, epoch: int) -> bool:
        """
        Whether nobody has owned the topics since, while the lock was not ours.
        """
        await self._chain.catch_up(self._note)
        return self._chain.next_number == epoch + 1

    def _ended(self, failure: Failure) -> None:
        failure.trap(CancelledError)
