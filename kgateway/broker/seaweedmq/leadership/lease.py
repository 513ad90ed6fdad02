"""
The lease: one gateway at a time leads a cluster, known by an epoch that only grows.

The epochs are objects of a chain in the filer, each won by one gateway; the number of the last is the leader epoch of
every partition. A lock says whether the leader is alive: the gateway that gets the lock takes the next epoch. A leader
whose lock was taken by another gateway leads no more.

SeaweedMQ checks no epoch of a publisher. So a leader whose lock was not renewed in time, because it stood still or no
filer answers, takes no records until it knows that no other gateway has had the lock. What it sent earlier is in
the log before its successor reads the log, because the successor waits until the broker has closed the leader's streams
and flushed.
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

from kgateway.broker.seaweed.calls.retries import FilerRefused
from kgateway.broker.seaweed.chain.chain import Chain, ChainObject
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.lock import FilerLock
from kgateway.broker.seaweedmq.layout.kafka_errors import CLUSTER_ERRORS
from kgateway.cluster.view import NO_NODE
from kgateway.log_messages import LEADER_IS_ANOTHER, LEADERSHIP_LOST
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

LOCK_S = 6
_RENEW_S = 1.5
_RENEW_AGAIN_S = 0.2
_ASK_S = 0.5
_LOOK_S = 0.1  # for the end of the leader's process
_LATE_S = 1.0  # no timer is so late on a machine that is merely busy


class Leadership(NamedTuple):
    epoch: int
    cluster_id: str
    node_id: int


class LeaderLease:
    """
    This gateway's claim to the lease, which it has or waits for.
    """

    _log = Logger()

    def __init__(
        self,
        lock: FilerLock,
        chain: Chain,
        name: str,
        node_id: int,
        clock: IReactorTime,
        on_wait: Callable[[Leadership], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._lock = lock
        self._chain = chain
        self._name = name
        self._node_id = node_id
        self._clock = clock
        self._on_wait = on_wait  # called again and again while another gateway leads
        self._on_lost = on_lost
        self._renewing: Deferred[None] | None = None
        self._until = 0.0  # until then the lock is ours, whatever happens
        self._due = inf  # when the lock is renewed next
        self._was_late = False  # and has not been renewed since
        self._last: Leadership | None = None  # as far as is known
        self._is_leaving = False

    async def take(self) -> Leadership:
        """
        Take the lease: at once, or when the gateway that has it is gone.
        """
        self._stop_renewing()
        await self._chain.catch_up(self._remember_last)
        asked = self._clock.seconds()
        if not await self._try_lock():
            asked = await self._wait()
        leadership = await self._claim_epoch()
        self._until = asked + LOCK_S
        self._log.info("this gateway leads, in epoch {epoch}", epoch=leadership.epoch)
        self._renewing = Deferred.fromCoroutine(self._renew()).addErrback(self._ended)
        return leadership

    def check(self) -> None:
        """
        Raise a KafkaError if another gateway may lead by now: this one stood still, or no filer has answered it.
        """
        if self._clock.seconds() >= self._until:
            reason = f"this gateway could not renew its lock within {LOCK_S} s; another gateway may lead by now"
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, reason)

    def has_stalled(self) -> bool:
        """
        Whether this process stood still for so long that another gateway may lead by now, and this
        process has not renewed its lock since.
        """
        now = self._clock.seconds()
        return now >= self._until and (self._was_late or now - self._due > _LATE_S)

    def leave(self) -> None:
        """
        Do not take the lease any more: this gateway is going to stop.
        """
        self._is_leaving = True

    async def give_back(self) -> None:
        """
        Release the lease, so that the next gateway can begin at once.
        """
        self._stop_renewing()
        try:
            await self._lock.give_back()
        except (RpcError, FilerRefused) as error:
            self._log.info("cannot release the lock, which will expire: {error}", error=error)

    def _stop_renewing(self) -> None:
        self._until = 0.0
        if self._renewing:
            self._renewing.cancel()
            self._renewing = None

    async def _try_lock(self) -> bool:
        """
        Try to get the lock. Returns whether it is ours.
        """
        return not self._is_leaving and await self._lock.take()

    async def _wait(self) -> float:
        """
        Wait for the lock. Returns the time at which it was asked for with success.
        """
        logged_holder = ""
        while True:
            if logged_holder != self._lock.holder:
                logged_holder = self._lock.holder
                self._log.warn(LEADER_IS_ANOTHER, holder=logged_holder)
            if self._last:
                self._on_wait(self._last)
            await self._wait_for_lock()
            asked = self._clock.seconds()
            try:
                if await self._try_lock():
                    return asked
                await self._chain.catch_up(self._remember_last)
            except CLUSTER_ERRORS as error:
                self._log.info("cannot tell which gateway leads: {error}", error=error)

    async def _wait_for_lock(self) -> None:
        """
        Wait until the lock may be free, or it is time to ask for it again.
        """
        until = self._clock.seconds() + min(_ASK_S, self._lock.waits_s or _ASK_S)
        while (left := until - self._clock.seconds()) > 0:
            await deferLater(self._clock, min(_LOOK_S, left))
            if self._lock.holder_has_ended:
                break

    async def _claim_epoch(self) -> Leadership:
        await self._chain.catch_up(self._remember_last)
        cluster_id = self._last.cluster_id if self._last else str(Uuid.random())
        entry = {"cluster": cluster_id, "owner": self._name, "node": self._node_id}
        epoch = await self._chain.append(json.dumps(entry).encode())
        self._last = Leadership(epoch, cluster_id, self._node_id)
        return self._last

    def _remember_last(self, found: ChainObject) -> None:
        fields = json.loads(found.payload)
        self._last = Leadership(found.number, fields["cluster"], fields.get("node", NO_NODE))

    async def _renew(self) -> None:
        """
        Renew the lock until another gateway has it, or has had it.
        """
        ours, problem = True, ""
        while ours:
            delay = _RENEW_AGAIN_S if problem else _RENEW_S
            self._due = self._clock.seconds() + delay
            await deferLater(self._clock, delay)
            asked = self._clock.seconds()
            self._was_late, self._due = self._was_late or asked - self._due > _LATE_S, inf
            try:
                ours = await self._lock.take()
            except CLUSTER_ERRORS as error:
                if not problem:
                    problem = str(error)
                    self._log.info("cannot renew the lock, trying again: {error}", error=error)
            else:
                problem = ""
                self._until = asked + LOCK_S if ours else 0.0
                self._was_late = False
        self._renewing = None
        self._log.error(LEADERSHIP_LOST, holder=self._lock.holder)
        self._on_lost()

    def _ended(self, failure: Failure) -> None:
        failure.trap(CancelledError)
