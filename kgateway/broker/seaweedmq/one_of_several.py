"""
A gateway beside which there may be others before the same cluster. One of them owns the topics. Each that waits serves
all the same: it tells clients of the owner, and the owner tells them of it, so that they know where to go when the
owner is gone.
"""

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import implementer

from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.broker.seaweedmq.gateways import Gateways
from kgateway.broker.seaweedmq.in_kafkas_words import in_kafkas_words
from kgateway.broker.seaweedmq.owner import Ownership
from kgateway.broker.seaweedmq.parts import Parts
from kgateway.broker.seaweedmq.waiting import Waiting
from kgateway.broker.state_log import StateLog
from kgateway.cluster.view import Address, NewTopic, Node, Topic
from kgateway.interfaces import IBroker, IPeers
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid


@implementer(IBroker)
class OneOfSeveral(SeaweedMQBroker):
    """
    Which of them, the node id tells.
    """

    def __init__(self, *site: Any, node_id: int, peers: IPeers, listeners: Set[str], **options: Any) -> None:
        super().__init__(*site, node_id=node_id, **options)
        self.peers = peers
        self._listeners = listeners  # of this gateway
        self._gateways = Gateways(self._site, node_id, self._look)
        self._waiting: Waiting | None = None

    @property
    def description(self) -> str:
        waits = f", which node {self._view.controller_id} owns; this gateway takes over when that is gone"
        return super().description + (waits if self._waiting else "")

    def announce(self, addresses: Mapping[str, Address]) -> None:
        self._gateways.announce(addresses)

    def coordinator(self, resource: Resource, key: str) -> StateLog | Node:  # type: ignore[override]  # the interface's
        if self._waiting and resource is not Resource.TRANSACTIONAL_ID:
            return self._waiting.owner()
        return super().coordinator(resource, key)

    def coordinators(self, resource: Resource) -> list[StateLog]:
        return [] if self._waiting else super().coordinators(resource)

    def create_topic(self, new: NewTopic) -> Deferred[Topic]:
        if self._waiting:
            return Deferred.fromCoroutine(in_kafkas_words(self._have_created(self._waiting, new)))
        return super().create_topic(new)

    def delete_topic(self, topic_id: Uuid) -> Deferred[None]:
        if self._waiting:
            return Deferred.fromCoroutine(in_kafkas_words(self._have_deleted(self._waiting, topic_id)))
        return super().delete_topic(topic_id)

    def add_partitions(self, topic_id: Uuid, partition_count: int) -> Deferred[Topic]:
        if self._waiting:
            return Deferred.fromCoroutine(in_kafkas_words(self._have_grown(self._waiting, topic_id, partition_count)))
        return super().add_partitions(topic_id, partition_count)

    def new_producer_id(self) -> Deferred[int]:
        if self._waiting:
            return Deferred.fromCoroutine(in_kafkas_words(self._waiting.ids.next()))
        return super().new_producer_id()

    async def _have_created(self, waiting: Waiting, new: NewTopic) -> Topic:
        await waiting.create(new)
        return self._named(new.name)

    async def _have_deleted(self, waiting: Waiting, topic_id: Uuid) -> None:
        await waiting.delete(self._topic(topic_id))

    async def _have_grown(self, waiting: Waiting, topic_id: Uuid, partition_count: int) -> Topic:
        topic = self._topic(topic_id)
        await waiting.grow(topic, partition_count)
        return self._named(topic.name)

    def _named(self, name: str) -> Topic:
        if name not in self._view.topics:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"topic {name} cannot be seen here yet; ask again")
        return self._view.topics[name]

    def _wait(self, filer: Filer, owner: Ownership) -> None:
        if self._waiting is None:
            around = self._gateways, self.peers, self._topic_defaults, self._listeners
            self._waiting = Waiting(self._site, filer, owner, *around, self._look)
        has_our_id = owner.node_id == self.node_id
        self._gateways.is_waiting, self._gateways.owner_has_its_id = not has_our_id, has_our_id
        self._waiting.note(owner)

    def _wait_no_more(self) -> None:
        if self._waiting:
            self._waiting.stop()
        self._waiting = None
        self._gateways.is_waiting = self._gateways.owner_has_its_id = False

    async def _begin(self, ownership: Ownership, made: Parts) -> None:
        if self._waiting:
            self._waiting.end()
        self._wait_no_more()
        await super()._begin(ownership, made)

    def _end(self) -> None:
        self._wait_no_more()
        super()._end()

    async def _stop(self) -> None:
        await self._gateways.stop()
        await super()._stop()

    def _nodes(self) -> tuple[Node, ...]:
        return self._gateways.nodes()

    def _look(self) -> None:
        """
        Other gateways have come or gone, or what another one owns has changed.
        """
        if self._waiting:
            self._show(self._waiting.view(self._view.epoch + 1))
            if self._view.nodes:
                self._owning.serve()
        elif self._held:
            self._show(replace(self._view, nodes=self._nodes(), epoch=self._view.epoch + 1))
