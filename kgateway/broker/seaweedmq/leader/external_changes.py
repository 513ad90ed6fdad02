"""
Follows what other programs do to the topics of a cluster: topics that are created, deleted, or get other partitions.
"""

from collections.abc import Callable
from functools import partial

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweedmq.layout.kafka_errors import CLUSTER_ERRORS
from kgateway.broker.seaweedmq.layout.topic_paths import may_be_topic
from kgateway.broker.seaweedmq.leader.led_topics import LedTopics
from kgateway.broker.seaweedmq.topics.catalog import StoredTopic
from kgateway.broker.topic_changes import ChangeLock, ChangeQueue
from kgateway.cluster.view import ClusterView, Topic
from kgateway.log_messages import EXTERNAL_CHANGES_UNSEEN, TOPIC_DELETED_ELSEWHERE, TOPIC_NOT_SERVED_YET


class ExternalChanges:
    """
    No report is lost: one that comes while the topics are loaded, or while this gateway changes the topic itself, is
    looked at afterwards.
    """

    _log = Logger()

    def __init__(
        self,
        topics: LedTopics,
        changes: ChangeLock,
        view: Callable[[], ClusterView],
        show: Callable[[ClusterView], None],
        shown: Callable[[StoredTopic], Topic],
    ) -> None:
        self._topics = topics
        self._changes = changes
        self._view = view
        self._show = show
        self._shown = shown  # a topic of the cluster as clients see it
        self._looks = ChangeQueue()
        self._is_loading = True
        self._later: set[str] = set()  # topics to look at

    def loaded(self) -> None:
        """
        All topics are shown as they were when they were read.
        """
        self._is_loading = False
        for name in sorted(self._later):
            self.changed(name)

    def changed(self, name: str) -> None:
        if may_be_topic(name):
            self._look_soon(name).addErrback(self._look_failed, name)

    def change_ended(self, name: str, *, is_done: bool) -> None:
        """
        This gateway has changed a topic. A failed change may have been done in part.
        """
        if name in self._later or not is_done:
            self.changed(name)

    def look_again(self) -> None:
        """
        Look at all topics: changes may have been missed.
        """
        Deferred.fromCoroutine(self._look_at_all()).addErrback(self._look_at_all_failed)

    async def _look_at_all(self) -> None:
        known = [topic.name for topic in self._view().topics.values() if not topic.internal]
        for name in dict.fromkeys([*known, *await self._topics.names()]):
            try:
                await self._look_soon(name)
            except CLUSTER_ERRORS:
                self._look_failed(Failure(), name)
        self._topics.look_again()

    def _look_soon(self, name: str) -> Deferred[None]:
        return self._looks.do(name, partial(self._look, name))

    async def _look(self, name: str) -> None:
        self._later.add(name)
        if self._is_loading:
            return
        while True:
            known = self._view().topics.get(name)
            is_there = known and await self._topics.is_there(known)
            is_recreated = known and is_there and await self._topics.is_recreated(known)
            if name in self._changes:
                return
            if known == self._view().topics.get(name):
                break
        self._later.discard(name)
        if known and not is_there:
            self._forget(known)
        if known and is_recreated:
            with self._changes.hold(name):  # nor may its config change meanwhile
                self._show_stored(await self._topics.adopt_recreated(known))
        elif not is_there:
            self._show_stored(await self._topics.adopt(name))

    def _show_stored(self, stored: StoredTopic | None) -> None:
        if stored:
            self._show(self._view().with_topic(self._shown(stored)))

    def _forget(self, topic: Topic) -> None:
        self._log.warn(TOPIC_DELETED_ELSEWHERE, name=topic.name)
        self._topics.forget(topic)
        self._show(self._view().without_topic(topic))

    def _look_failed(self, failure: Failure, name: str) -> None:
        failure.trap(*CLUSTER_ERRORS)
        self._log.warn(TOPIC_NOT_SERVED_YET, name=name, error=failure.getErrorMessage())

    def _look_at_all_failed(self, failure: Failure) -> None:
        failure.trap(*CLUSTER_ERRORS)
        self._log.warn(EXTERNAL_CHANGES_UNSEEN, error=failure.getErrorMessage())
