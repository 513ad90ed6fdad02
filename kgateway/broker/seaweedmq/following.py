"""
Follows what others do to the topics of a cluster: topics that come and go, or get other partitions.
"""

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweedmq.in_kafkas_words import CLUSTERS_ERRORS
from kgateway.broker.seaweedmq.layout import may_be_topic
from kgateway.broker.seaweedmq.own_changes import OwnChanges
from kgateway.broker.seaweedmq.owned import Owned
from kgateway.broker.seaweedmq.topics import Stored
from kgateway.cluster.view import ClusterView, Topic


class Following:
    """
    For the owner of the topics.
    """

    _log = Logger()

    def __init__(
        self,
        owned: Owned,
        own_changes: OwnChanges,
        view: Callable[[], ClusterView],
        show: Callable[[ClusterView], None],
        shown: Callable[[Stored], Topic],
    ) -> None:
        self._owned = owned
        self._own_changes = own_changes
        self._view = view
        self._show = show
        self._shown = shown  # a topic of the cluster as clients see it

    def changed(self, name: str) -> None:
        """
        Somebody has done something to the topic, if there is one.
        """
        if may_be_topic(name):
            Deferred.fromCoroutine(self._look(name)).addErrback(self._not_found, name)

    def look_again(self) -> None:
        """
        Something may have happened that nobody has told.
        """
        Deferred.fromCoroutine(self._look_at_all()).addErrback(self._not_found, "the one or the other")

    async def _look_at_all(self) -> None:
        known = [topic.name for topic in self._view().topics.values() if not topic.internal]
        for name in dict.fromkeys([*known, *await self._owned.names()]):
            try:
                await self._look(name)
            except CLUSTERS_ERRORS:
                self._not_found(Failure(), name)
        self._owned.look_again()

    async def _look(self, name: str) -> None:
        known = self._view().topics.get(name)
        is_there = known and await self._owned.is_there(known)
        is_made_anew = known and is_there and await self._owned.is_made_anew(known)
        if name in self._own_changes or known != self._view().topics.get(name):
            return  # it was changed here meanwhile
        if known and not is_there:
            self._forget(known)
        if known and is_made_anew:
            with self._own_changes.of(name):  # what is set for it, too, stays as it is meanwhile
                self._show_stored(await self._owned.follow(known))
        elif not is_there:
            self._show_stored(await self._owned.find(name))

    def _show_stored(self, stored: Stored | None) -> None:
        if stored:
            self._show(self._view().with_topic(self._shown(stored)))

    def _forget(self, topic: Topic) -> None:
        self._log.warn("topic {name} is there no more: somebody else has removed it", name=topic.name)
        self._owned.forget(topic)
        self._show(self._view().without_topic(topic))

    def _not_found(self, failure: Failure, name: str) -> None:
        failure.trap(*CLUSTERS_ERRORS)
        self._log.warn("topic {name} cannot be served yet: {error}", name=name, error=failure.getErrorMessage())
