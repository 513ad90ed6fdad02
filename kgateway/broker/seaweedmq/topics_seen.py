"""
The topics of a cluster, and what is set for it, as a gateway sees them that owns nothing and changes nothing.
"""

from collections.abc import Callable, Iterator

from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweedmq.in_kafkas_words import CLUSTERS_ERRORS
from kgateway.broker.seaweedmq.kept_configs import CONFIGS, KeptConfigs
from kgateway.broker.seaweedmq.layout import TOPIC_CONF, may_be_topic
from kgateway.broker.seaweedmq.site import Site
from kgateway.broker.seaweedmq.state_topics import StateTopics
from kgateway.broker.seaweedmq.topics import KEPT, Stored, Topics
from kgateway.broker.seaweedmq.watching import Watching
from kgateway.cluster.config_resource import AllOverrides
from kgateway.wire.malformed import Malformed


class TopicsSeen:
    """
    Read once, and again where the filer tells of a change; `changed` is called then.
    """

    _log = Logger()

    def __init__(self, site: Site, filer: Filer, changed: Callable[[], None]) -> None:
        self.overrides: AllOverrides = {}
        self.was_read = False
        self._topics = Topics(site.seaweed, site.namespace)
        self._states = StateTopics(site, filer)
        self._configs = KeptConfigs(site.seaweed, site.folder)
        self._changed = changed
        self._named: dict[str, Stored] = {}
        self._internal: list[Stored] = []
        self._reading = DeferredLock()  # what is read later is newer
        self._is_read = self._is_over = False
        self._watched: Deferred[None] | None = None
        self._watching = Watching(site, lambda *_: None, self._told, self._missed, (TOPIC_CONF, KEPT, CONFIGS))

    def __iter__(self) -> Iterator[Stored]:
        return iter([*self._named.values(), *self._internal])

    async def see(self) -> None:
        """
        Read what was not, or could not be.
        """
        if self._is_over:
            return
        if self._watched is None:
            self._watched = Deferred.fromCoroutine(self._watching.start())
            await self._watched
        if not self._is_read:
            self._is_read = True  # unless something is missed meanwhile
            try:
                await self._reading.run(self._read_all)
            except CLUSTERS_ERRORS:
                self._missed()
                raise
            self.was_read = True
            self._changed()

    def read(self, name: str) -> Deferred[None]:
        """
        See a topic as it is now.
        """
        return self._reading.run(self._read, name).addCallback(lambda _: self._changed())

    def read_the_rest(self) -> Deferred[None]:
        """
        See what is of no topic that clients can have.
        """
        return self._reading.run(self._read_the_rest).addCallback(lambda _: self._changed())

    def stop(self) -> None:
        """
        See nothing more.
        """
        self._is_over = True
        self._watching.stop()

    def _told(self, name: str) -> None:
        read = self.read(name) if may_be_topic(name) else self.read_the_rest()
        read.addErrback(self._not_read)

    def _missed(self) -> None:
        self._is_read = False

    def _not_read(self, failure: Failure) -> None:
        failure.trap(*CLUSTERS_ERRORS)
        self._missed()

    async def _read_all(self) -> None:
        names = await self._topics.names()
        for name in {*self._named, *names}:
            await self._read(name)
        await self._read_the_rest()

    async def _read(self, name: str) -> None:
        try:
            seen = await self._topics.seen(name)
        except Malformed as error:
            self._log.error("topic {name} is left alone: {error}", name=name, error=error)
            seen = None
        if seen and seen.is_kept:
            self._named[name] = seen.stored
        else:
            self._named.pop(name, None)

    async def _read_the_rest(self) -> None:
        self._internal = await self._states.all()
        self.overrides = await self._configs.read()
