"""
The topics of a cluster and its configs, as a standby reads them.
"""

from collections.abc import Callable, Iterator

from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweedmq.gateway_runtime import GatewayRuntime
from kgateway.broker.seaweedmq.layout.kafka_errors import CLUSTER_ERRORS
from kgateway.broker.seaweedmq.layout.topic_paths import TOPIC_CONF, may_be_topic
from kgateway.broker.seaweedmq.topics.catalog import TOPIC_FILE, StoredTopic, TopicCatalog
from kgateway.broker.seaweedmq.topics.resource_configs import CONFIGS, ResourceConfigs
from kgateway.broker.seaweedmq.topics.state_topics import StateTopics
from kgateway.broker.seaweedmq.topics.topic_feed import TopicFeed
from kgateway.cluster.config_resource import AllOverrides
from kgateway.log_messages import TOPIC_LEFT_ALONE
from kgateway.wire.errors import Malformed


class TopicMirror:
    """
    Reads the topics once, and again when the filer reports a change; `on_change` is called then.
    """

    _log = Logger()

    def __init__(self, gateway: GatewayRuntime, filer: Filer, on_change: Callable[[], None]) -> None:
        self.overrides: AllOverrides = {}
        self.was_ever_read = False
        self._topics = TopicCatalog(gateway.seaweed, gateway.namespace)
        self._states = StateTopics(gateway, filer)
        self._configs = ResourceConfigs(gateway.seaweed, gateway.folder)
        self._on_change = on_change
        self._named: dict[str, StoredTopic] = {}
        self._internal: list[StoredTopic] = []
        self._reading = DeferredLock()  # so that a later result is newer
        self._is_current = self._is_over = False
        self._feed_started: Deferred[None] | None = None
        self._feed = TopicFeed(
            gateway, lambda *_: None, self._topic_changed, self._missed, (TOPIC_CONF, TOPIC_FILE, CONFIGS)
        )

    def __iter__(self) -> Iterator[StoredTopic]:
        return iter([*self._named.values(), *self._internal])

    async def refresh(self) -> None:
        """
        Read what was not read yet, or could not be.
        """
        if self._is_over:
            return
        if self._feed_started is None:
            self._feed_started = Deferred.fromCoroutine(self._feed.start())
            await self._feed_started
        if not self._is_current:
            self._is_current = True  # unless a change is missed meanwhile
            try:
                await self._reading.run(self._read_all)
            except CLUSTER_ERRORS:
                self._missed()
                raise
            self.was_ever_read = True
            self._on_change()

    def read(self, name: str) -> Deferred[None]:
        return self._reading.run(self._read, name).addCallback(lambda _: self._on_change())

    def read_the_rest(self) -> Deferred[None]:
        """
        Read internal topics and configs.
        """
        return self._reading.run(self._read_the_rest).addCallback(lambda _: self._on_change())

    def stop(self) -> None:
        self._is_over = True
        self._feed.stop()

    def _topic_changed(self, name: str) -> None:
        read = self.read(name) if may_be_topic(name) else self.read_the_rest()
        read.addErrback(self._not_read)

    def _missed(self) -> None:
        self._is_current = False

    def _not_read(self, failure: Failure) -> None:
        failure.trap(*CLUSTER_ERRORS)
        self._missed()

    async def _read_all(self) -> None:
        names = await self._topics.names()
        for name in {*self._named, *names}:
            await self._read(name)
        await self._read_the_rest()

    async def _read(self, name: str) -> None:
        try:
            seen = await self._topics.read(name)
        except Malformed as error:
            self._log.error(TOPIC_LEFT_ALONE, name=name, error=error)
            seen = None
        if seen and seen.has_topic_file:
            self._named[name] = seen.stored
        else:
            self._named.pop(name, None)

    async def _read_the_rest(self) -> None:
        self._internal = await self._states.all()
        self.overrides = await self._configs.read()
