"""
What a gateway serves while another one owns the topics: it tells clients who does, as a broker of Kafka's tells of
partitions that it has no part in, and has the owner make changes.
"""

from collections.abc import Callable, Set
from dataclasses import replace

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweedmq.changes_elsewhere import ChangesElsewhere
from kgateway.broker.seaweedmq.gateways import Gateways
from kgateway.broker.seaweedmq.in_kafkas_words import CLUSTERS_ERRORS
from kgateway.broker.seaweedmq.own_changes import OwnChanges
from kgateway.broker.seaweedmq.owner import Ownership
from kgateway.broker.seaweedmq.producer_ids import ProducerIds
from kgateway.broker.seaweedmq.site import Site
from kgateway.broker.seaweedmq.topics import Stored
from kgateway.broker.seaweedmq.topics_seen import TopicsSeen
from kgateway.broker.topic_defaults import TopicDefaults
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import NO_NODE, ClusterView, NewTopic, Node, PartitionState, Topic
from kgateway.interfaces import IPeers
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid


class Waiting:
    """
    One time of waiting.
    """

    _log = Logger()

    def __init__(
        self,
        site: Site,
        filer: Filer,
        owner: Ownership,
        gateways: Gateways,
        peers: IPeers,
        defaults: TopicDefaults,
        listeners: Set[str],
        show: Callable[[], None],
    ) -> None:
        self.ids = ProducerIds(site.shared_chain(filer, "producer-ids"), owner.cluster_id)
        self._owner = owner
        self._node: Node | None = None  # the owner as clients reach it
        self._gateways = gateways
        self._defaults = defaults
        self._listeners = listeners
        self._is_sought = False  # where the owner is reached: that has been looked for
        self._why_closed = ""
        self._show = show
        self._seen = TopicsSeen(site, filer, show)
        self._topics: dict[Uuid, tuple[Stored, Topic]] = {}  # as they were shown last
        self._changes = ChangesElsewhere(peers, self.owner)
        self._asked = OwnChanges()  # one at a time of a topic: who is sent here again, by a wrong address, ends there
        self._looking: Deferred[None] | None = None

    def note(self, owner: Ownership) -> None:
        """
        This one owns the topics, still or since just now. Called every second, it looks for what could not be seen yet.
        """
        if owner != self._owner:
            self._node = None
            self._become(owner)
        if self._looking is None:
            self._looking = Deferred.fromCoroutine(self._look()).addErrback(self._not_seen).addBoth(self._looked)

    def end(self) -> None:
        """
        The owner is gone, and this gateway not ready yet: nobody leads the topics.
        """
        self._become(self._owner._replace(node_id=NO_NODE))

    def stop(self) -> None:
        """
        Wait no more.
        """
        self._seen.stop()

    def owner(self) -> Node:
        """
        The gateway that owns the topics; a KafkaError where nobody knows how to reach it.
        """
        if self._node is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "it is not known how the owner of the topics is reached")
        return self._node

    def view(self, epoch: int) -> ClusterView:
        """
        The cluster; without nodes as long as clients cannot be told where its topics are.
        """
        self._node = self._gateways.known(self._owner.node_id) or self._node  # it may be about to go
        may_open = self._seen.was_read and self._knows_owner()
        nodes = self._gateways.nodes(self._node) if self._node and may_open else ()
        if self._defaults.follow(self._seen.overrides):
            self._topics.clear()
        self._topics = {stored.kept.id: self._shown(stored) for stored in self._seen}
        view = ClusterView(self._owner.cluster_id, nodes, self._owner.node_id, overrides=self._seen.overrides)
        return replace(view.having(topic for _, topic in self._topics.values()), epoch=epoch)

    async def create(self, new: NewTopic) -> None:
        """
        Have a topic made.
        """
        with self._asked.of(new.name):
            await self._changes.create(new)
        await self._seen.read(new.name)

    async def delete(self, topic: Topic) -> None:
        """
        Have a topic removed.
        """
        with self._asked.of(topic.name):
            await self._changes.delete(topic)
        await self._seen.read(topic.name)

    async def grow(self, topic: Topic, partition_count: int) -> None:
        """
        Have partitions added to a topic.
        """
        with self._asked.of(topic.name):
            await self._changes.grow(topic, partition_count)
        await self._seen.read(topic.name)

    def _knows_owner(self) -> bool:
        """
        Whether clients of each listener can be told where the owner is; else they had better find a closed port.
        """
        why = self._obstacle()
        if why and why != self._why_closed and (self._node or self._is_sought):
            self._log.warn("ports stay closed while another gateway owns the topics: {why}", why=why)
            self._why_closed = why
        return not why

    def _obstacle(self) -> str:
        """
        What keeps clients from being told where the owner is.
        """
        node_id = self._owner.node_id
        if node_id == self._gateways.own.id:
            return f"it has the node id {node_id} as this one has; give each a --node-id of its own"
        if shared := self._gateways.shared_with(self._node):
            return f"node {node_id} says that it is reached at {shared}, as this one does; mend --advertise"
        if missing := self._listeners - (self._node.addresses.keys() if self._node else set()):
            return f"node {node_id} does not say where its {', '.join(sorted(missing))} is reached"
        return ""

    def _become(self, owner: Ownership) -> None:
        self._owner = owner
        self._is_sought = False
        self._topics.clear()
        self._show()

    async def _look(self) -> None:
        if self._node is None or self._obstacle():
            await self._gateways.look()
            self._is_sought = True
            self._show()
        await self._seen.see()

    def _not_seen(self, failure: Failure) -> None:
        failure.trap(*CLUSTERS_ERRORS)
        self._log.info("what another gateway owns cannot be seen: {error}", error=failure.getErrorMessage())

    def _looked(self, outcome: object) -> object:
        self._looking = None
        return outcome

    def _shown(self, stored: Stored) -> tuple[Stored, Topic]:
        kept = stored.kept
        before = self._topics.get(kept.id)
        if before and before[0] is stored:
            return before
        by = self._owner.node_id
        led = (PartitionState(by, self._owner.epoch, (by,), (by,)),) * kept.partition_count
        return stored, Topic(kept.id, stored.name, led, TopicConfig.of(kept.configs, self._defaults), kept.internal)
