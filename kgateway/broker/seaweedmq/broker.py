"""
The broker whose topics are those of a SeaweedMQ cluster.

It has no state of its own: topics and records are SeaweedMQ's, and what SeaweedMQ has no place for lies in the filer
beside them (topics.py, beside.py, state_topics.py). One gateway at a time owns all of it (owner.py, owned.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.broker.config_changes import ConfigChanges
from kgateway.broker.lone import STATE_PARTITIONS, LoneBroker
from kgateway.broker.patience import at_most
from kgateway.broker.producers import EXPIRY_MS
from kgateway.broker.retention_rounds import CHECK_MS, RetentionRounds
from kgateway.broker.seaweed.addresses import ServerAddress
from kgateway.broker.seaweed.chain_partition import ChainPartition
from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweed.security import Security
from kgateway.broker.seaweedmq.following import Following
from kgateway.broker.seaweedmq.in_kafkas_words import CLUSTERS_ERRORS, in_kafkas_words
from kgateway.broker.seaweedmq.layout import NAMESPACE, check_name
from kgateway.broker.seaweedmq.openings import Partition
from kgateway.broker.seaweedmq.own_changes import OwnChanges
from kgateway.broker.seaweedmq.owned import Owned
from kgateway.broker.seaweedmq.owner import Ownership
from kgateway.broker.seaweedmq.owning import Owning
from kgateway.broker.seaweedmq.parts import Parts
from kgateway.broker.seaweedmq.site import Site
from kgateway.broker.seaweedmq.topics import Stored
from kgateway.broker.seaweedmq.watching import Watching
from kgateway.broker.spool import Spool
from kgateway.broker.state_log import StateLog
from kgateway.broker.unusable import Unusable
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import Change, ConfigResource
from kgateway.cluster.log_dir import Measured, Places
from kgateway.cluster.view import ClusterView, NewTopic, Node, Topic
from kgateway.coordinating.places import STATE_TOPICS
from kgateway.interfaces import IBroker
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

_OPEN_S = 3.0
_STOPPING = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the gateway stops")
_NOT_OWNER = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "another gateway owns the topics of this cluster")


@implementer(IBroker)
class SeaweedMQBroker(LoneBroker):
    """
    One gateway before a cluster.
    """

    _log = Logger()
    _parts: Parts
    _configs: ConfigChanges

    folder: str | None = None

    def __init__(
        self,
        masters: Sequence[ServerAddress],
        *,
        node_id: int,
        now_ms: Callable[[], int],
        reactor: Any,
        client: str = "kgateway",
        namespace: str = NAMESPACE,
        producer_expiry_ms: int = EXPIRY_MS,
        topic_defaults: Mapping[str, str] | None = None,
        offsets_partitions: int = STATE_PARTITIONS,
        filer_group: str = "",
        security: Security | None = None,
        retention_check_ms: int = CHECK_MS,
        recent_bytes: int = 0,
    ) -> None:
        super().__init__(node_id, "", offsets_partitions, topic_defaults)
        self._masters = masters
        seaweed = Seaweed(masters, reactor, filer_group=filer_group, security=security)
        kept = producer_expiry_ms, self._topic_defaults, Spool(recent_bytes)
        self._site = Site(seaweed, namespace, client, now_ms, reactor, *kept)
        self._held: Owned | None = None  # while the topics are ours
        self._own_changes = OwnChanges()
        self._owning = Owning(self._site, node_id, self._begin, self._wait, self._end)
        self._ends: list[Callable[[], None]] = []  # what is done when the topics are ours no more
        self._retention_check_ms = retention_check_ms

    @property
    def description(self) -> str:
        count = len(self._view.topics)
        masters = ", ".join(map(str, self._masters))
        return f"{count} topic{'' if count == 1 else 's'} of the SeaweedMQ cluster at {masters}"

    @property
    def _owned(self) -> Owned:
        if self._held is None:
            raise _NOT_OWNER
        return self._held

    @property
    def log_dir(self) -> str:
        return f"seaweedmq:{','.join(map(str, self._masters))}"

    def view(self) -> ClusterView:
        if self._held and self._owning.has_overslept():
            return replace(self._view, nodes=())  # who sends clients to itself now may send them astray
        return self._view

    def coordinator(self, resource: Resource, key: str) -> StateLog:
        if resource is Resource.TRANSACTIONAL_ID:
            # The one answer by which every client gives up at once; others it takes for something that passes.
            raise KafkaError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                f"{key} cannot begin: SeaweedMQ has no transactions; a gateway with a log of its own has (log:FOLDER)",
            )
        return super().coordinator(resource, key)

    def coordinators(self, resource: Resource) -> list[StateLog]:
        return [] if resource is Resource.TRANSACTIONAL_ID else super().coordinators(resource)

    def measure(self, places: Places) -> Deferred[Measured]:
        open_ones = self._held.openings.open if self._held else {}
        return succeed(Measured({place: open_ones[place].size for place in places if place in open_ones}))

    def start(self) -> Deferred[None]:
        return self._owning.start().addErrback(self._unusable)

    def stop(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._stop())

    def _unusable(self, failure: Failure) -> Failure:
        if not failure.check(*CLUSTERS_ERRORS):
            return failure
        masters = ",".join(map(str, self._masters))
        reason = f"seaweedmq:{masters} cannot be used: {failure.getErrorMessage()}"
        if failure.check(RpcError):
            secured = "as they are secured (seaweed_security, seaweed_filer_group)"
            reason += f"; see that its masters, a filer and a broker run, and can be reached {secured}"
        return Failure(Unusable(reason))

    async def _begin(self, ownership: Ownership, made: Parts) -> None:
        """
        Show the topics, which are ours.
        """
        self._parts = made
        owned = Owned(made, ownership.epoch, self._site.topic_defaults)
        shown, show = partial(self._shown, owned), partial(self._show_owned, owned)
        following = Following(owned, self._own_changes, self.view, show, shown)
        watching = Watching(self._site, made.making.grown, following.changed, following.look_again)
        self._ends += [watching.stop, partial(owned.lose, _NOT_OWNER)]
        await watching.start()
        overrides = await made.configs.read()
        self._configs = ConfigChanges(overrides, made.configs.keep, self._show_overrides)
        self._topic_defaults.follow(overrides)
        view = self._view.having([shown(stored) for stored in await owned.load()])
        self._held = owned
        view = replace(view, cluster_id=ownership.cluster_id, controller_id=self.node_id, nodes=self._nodes())
        self._show(view.with_overrides(overrides))
        await self._take_over()
        await at_most(self._site.reactor, _OPEN_S, owned.open_all(view.topics.values()))
        rounds = RetentionRounds(self._site.reactor, self._retention_check_ms, self._served, self._at)
        self._ends.append(rounds.stop)

    async def _served(self) -> list[tuple[Uuid, int]]:
        """
        All partitions with records of clients.
        """
        topics = [topic for topic in self._view.topics.values() if not topic.internal]
        return [(topic.id, index) for topic in topics for index in range(len(topic.partitions))]

    def _at(self, key: tuple[Uuid, int]) -> Partition:
        return self.partition(*key)

    async def _take_over(self) -> None:
        """
        Let groups begin, where there were none before, with the offsets that the Go gateway has kept.
        """
        if STATE_TOPICS[Resource.GROUP] in self._view.topics:
            return
        found = await self._parts.offsets.found()
        for group_id, row in found:
            appended = self.coordinator(Resource.GROUP, group_id).append([row])
            if appended.safe is not None:
                await appended.safe
        if found:
            self._log.info("{count} offsets that the Go gateway has kept are taken over", count=len(found))

    def _end(self) -> None:
        """
        They are ours no more.
        """
        ends, self._ends = self._ends, []
        for end in ends:
            end()
        self._held = None
        self._show(replace(self._view, nodes=()))  # clients are to go elsewhere

    def _wait(self, filer: Filer, owner: Ownership) -> None:
        """
        They are another's; called every second.
        """

    def _nodes(self) -> tuple[Node, ...]:
        """
        The gateways that clients are to know while the topics are ours.
        """
        return (Node(self.node_id),)

    async def _stop(self) -> None:
        has_begun = await self._owning.try_no_more()
        if owned := self._held:
            await self._topic_configs.stop()
            await self._configs.stop()
            await owned.settle()
            owned.lose(_STOPPING)
        if has_begun:
            await self._owning.give_back()
        await self._site.seaweed.close()

    def partition(self, topic_id: Uuid, index: int) -> Partition:
        topic = self._topic(topic_id)
        if not 0 <= index < len(topic.partitions):
            raise topic.no_partition(index)
        return self._owned.openings.partition(topic, index)

    def create_topic(self, new: NewTopic) -> Deferred[Topic]:
        return Deferred.fromCoroutine(in_kafkas_words(self._create(new)))

    def delete_topic(self, topic_id: Uuid) -> Deferred[None]:
        return Deferred.fromCoroutine(in_kafkas_words(self._delete(topic_id)))

    def add_partitions(self, topic_id: Uuid, partition_count: int) -> Deferred[Topic]:
        return Deferred.fromCoroutine(in_kafkas_words(self._grow(topic_id, partition_count)))

    def _change_overrides(self, resource: ConfigResource, change: Change) -> Deferred[None]:
        self._to_change()
        return self._configs.make(resource, change)

    def new_producer_id(self) -> Deferred[int]:
        return Deferred.fromCoroutine(in_kafkas_words(self._parts.ids.next()))

    async def _create(self, new: NewTopic) -> Topic:
        check_name(new.name)
        owned = self._to_change()
        new = replace(new, config=owned.with_form(new.config))
        topic = self._new_topic(new, owned.epoch)
        with self._own_changes.of(new.name):
            await owned.create(topic, new)
            self._demand_still(owned)
            return self._show_topic(topic)

    async def _grow(self, topic_id: Uuid, partition_count: int) -> Topic:
        topic, grown = self._topic(topic_id), self._grown(topic_id, partition_count)
        owned = self._to_change()
        with self._own_changes.of(topic.name):
            await owned.grow(topic, grown)
            self._demand_still(owned)
            return self._show_topic(grown)

    async def _configure(self, name: str, change: Change) -> None:
        topic, owned = self._configured(name, change), self._to_change()
        if topic is self._view.topics[name]:
            return
        with self._own_changes.of(name):
            config = await in_kafkas_words(owned.configure(topic))
            self._demand_still(owned)
            self._show_topic(replace(self._topic(topic.id), config=config))

    def _to_change(self) -> Owned:
        if self._held is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "the topics are not this gateway's to change, or not yet")
        return self._held

    def _demand_still(self, owned: Owned) -> None:
        if self._held is not owned:
            raise _NOT_OWNER

    def _tell(self, topic: Topic) -> None:
        open_ones = self._held.openings.open if self._held else {}
        for index in range(len(topic.partitions)):
            if (topic.id, index) in open_ones:
                open_ones[topic.id, index].become(topic)

    async def _delete(self, topic_id: Uuid) -> None:
        topic = self._topic(topic_id)
        owned = self._to_change()
        with self._own_changes.of(topic.name):
            self._view = self._view.without_topic(topic)
            gone = owned.delete(topic)
            self._waiters.wake()
            await gone

    def _create_state_topic(self, resource: Resource) -> Topic:
        config = TopicConfig.of({}, self._site.topic_defaults)
        new = NewTopic(STATE_TOPICS[resource], self._state_partitions[resource], config, internal=True)
        topic = self._new_topic(new, self._owned.epoch)
        self._owned.add_state_topic(topic)
        self._show(self._view.with_topic(topic))
        return topic

    def _state_log(self, topic: Topic, index: int) -> StateLog:
        partition = self.partition(topic.id, index)
        assert isinstance(partition, ChainPartition)
        return self._owned.state_log(partition)

    def _shown(self, owned: Owned, stored: Stored) -> Topic:
        """
        A topic of the cluster as Kafka's clients see it.
        """
        led = self._led(stored.kept.partition_count, owned.epoch)
        return Topic(stored.kept.id, stored.name, led, owned.config(stored), stored.kept.internal)

    def _show_owned(self, owned: Owned, view: ClusterView) -> None:
        if self._held is owned:
            self._show(view)
