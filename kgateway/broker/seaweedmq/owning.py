"""
Owns the topics of a cluster as long as that can be: from the start, and again when another gateway had them.
"""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.patience import end_of
from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweed.lock import Lock
from kgateway.broker.seaweedmq.in_kafkas_words import CLUSTERS_ERRORS
from kgateway.broker.seaweedmq.owner import LOCK_S, Owner, Ownership
from kgateway.broker.seaweedmq.parts import Parts, parts
from kgateway.broker.seaweedmq.site import Site
from kgateway.wire.errors import KafkaError

_AGAIN_S = 1.0


class Owning:
    """
    Calls `begin` when the topics are ours, and `end` when they are ours no more, or `begin` has failed; `wait` every
    second while another gateway has them.
    """

    _log = Logger()
    _filer: Filer  # which decides all chains

    def __init__(
        self,
        site: Site,
        node_id: int,
        begin: Callable[[Ownership, Parts], Coroutine[Any, Any, None]],
        wait: Callable[[Filer, Ownership], None],
        end: Callable[[], None],
    ) -> None:
        self._site = site
        self._node_id = node_id
        self._begin = begin
        self._wait = wait
        self._end = end
        self._started: Deferred[None] = Deferred()
        self._trying: Deferred[None] | None = None  # as it was tried last
        self._beginning: Deferred[None] | None = None  # while it is ours and `begin` is not done
        self._was_lost = False  # amid that
        self._is_open = False
        self._owner: Owner | None = None

    def start(self) -> Deferred[None]:
        """
        Fires when the topics are ours, and `begin` is done, or when there is something to serve while they are not.
        """
        self._trying = Deferred.fromCoroutine(self._start())
        self._trying.addCallback(lambda _: self.serve()).addErrback(self._not_owned)
        return self._started

    def serve(self) -> None:
        """
        There is something to serve.
        """
        if not self._started.called:
            self._is_open = True
            self._started.callback(None)

    def has_overslept(self) -> bool:
        """
        Whether another gateway may own the topics by now because this one stood still.
        """
        return self._owner is not None and self._owner.has_overslept()

    def leave(self) -> None:
        """
        Take the topics no more; what is ours stays so.
        """
        if self._owner:
            self._owner.leave()

    async def try_no_more(self) -> bool:
        """
        Take nothing any more; whether it has begun at all.
        """
        has_begun, self._is_open = self._is_open, False
        if self._trying and not self._trying.called:
            over = end_of(self._trying)
            self._trying.cancel()
            await over
        return has_begun

    async def give_back(self) -> None:
        """
        Let another gateway own the topics.
        """
        self._end()
        if self._owner:
            await self._owner.give_back()

    async def _start(self) -> None:
        site = self._site
        self._filer = await site.seaweed.filer()
        lock = Lock(site.seaweed, f"kgateway-{site.namespace}", site.client, LOCK_S)
        owners = site.shared_chain(self._filer, "owners")
        waits = partial(self._wait, self._filer)
        told = waits, self._lose
        owner = self._owner = Owner(lock, owners, site.client, self._node_id, site.reactor, *told)
        try:
            await self._own(owner)
        except BaseException as error:
            if self._is_open and isinstance(error, (*CLUSTERS_ERRORS, KafkaError)):
                await self._own_again(owner, error)
                return
            await self.give_back()
            raise

    async def _own(self, owner: Owner) -> None:
        while not await self._has_begun(owner):
            self._log.warn("another gateway came to own the topics before this one had begun")

    async def _has_begun(self, owner: Owner) -> bool:
        """
        Own the topics; whether that was so until all had begun.
        """
        ownership = await owner.take()
        made = parts(self._site, self._filer, ownership, owner.demand)
        self._was_lost = False
        beginning = self._beginning = Deferred.fromCoroutine(self._begin(ownership, made))
        try:
            await beginning
        except CancelledError:
            if not self._was_lost:
                raise
            return False
        finally:
            self._beginning = None
        return True

    def _lose(self) -> None:
        """
        Another gateway owns the topics; this one waits until that is gone.
        """
        self._end()
        if self._beginning:  # whoever waits for that goes on
            self._was_lost = True
            self._beginning.cancel()
            return
        assert self._owner
        self._trying = Deferred.fromCoroutine(self._own_again(self._owner))
        self._trying.addErrback(self._not_owned)

    async def _own_again(self, owner: Owner, problem: Exception | None = None) -> None:
        while self._is_open:
            if problem:
                self._end()
                self._log.warn("the topics of the cluster cannot be had yet: {error}", error=problem)
                await deferLater(self._site.reactor, _AGAIN_S)
            try:
                await self._own(owner)
            except (*CLUSTERS_ERRORS, KafkaError) as error:  # the lock may run out while it begins
                problem = error
            else:
                break

    def _not_owned(self, failure: Failure) -> None:
        if not self._started.called:
            self._started.errback(failure)
        elif self._is_open:
            self._log.failure("the topics of the cluster cannot be had again; restart the gateway", failure)
