"""
The leader: the one gateway that changes the topics of a cluster and appends to their partitions, as long as it has the
lease.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from twisted.logger import Logger

from kgateway.broker.config_changes import ConfigChanges
from kgateway.broker.deferreds import within
from kgateway.broker.partition.retention import RetentionRounds
from kgateway.broker.seaweed.chain.partition import ChainPartition
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweedmq.gateway_runtime import GatewayRuntime, ShownCluster
from kgateway.broker.seaweedmq.layout.kafka_errors import NOT_LEADER, with_kafka_errors
from kgateway.broker.seaweedmq.leader.external_changes import ExternalChanges
from kgateway.broker.seaweedmq.leader.go_offset_import import OffsetImport
from kgateway.broker.seaweedmq.leader.led_topics import LedTopics, leader_parts
from kgateway.broker.seaweedmq.leadership.gateways import Gateways
from kgateway.broker.seaweedmq.leadership.lease import LeaderLease, Leadership
from kgateway.broker.seaweedmq.partitions.registry import Partition
from kgateway.broker.seaweedmq.topics.catalog import StoredTopic
from kgateway.broker.seaweedmq.topics.topic_feed import TopicFeed
from kgateway.broker.state_log import StateLog
from kgateway.broker.topic_changes import ChangeLock
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import Change, ConfigResource
from kgateway.cluster.partition import DiskUsage
from kgateway.cluster.view import ClusterView, NewTopic, Topic
from kgateway.coordination.placement import STATE_TOPICS, partition_for
from kgateway.log_messages import NOT_COMPACTED_HERE
from kgateway.security.permissions import Resource
from kgateway.topic_partition import PartitionId
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

P = ParamSpec("P")
T = TypeVar("T")

_OPEN_S = 3.0
_STOPPING = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the gateway is stopping")
_GROUPS = STATE_TOPICS[Resource.GROUP]


def _as_controller(change: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """
    A change of the cluster, with Kafka's errors. A gateway that does not lead is not the cluster's controller.
    """

    @wraps(change)
    async def changed(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await with_kafka_errors(change(*args, **kwargs))
        except KafkaError as error:
            if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                raise KafkaError(ErrorCode.NOT_CONTROLLER, error.message) from None
            raise

    return changed


class Leader:
    """
    One term of this gateway, from the epoch that it won until the lease is lost or given back.
    """

    _log = Logger()

    description = ""

    def __init__(
        self,
        gateway: GatewayRuntime,
        filer: Filer,
        leadership: Leadership,
        lease: LeaderLease,
        gateways: Gateways,
        changes: ChangeLock,
        shown: ShownCluster,
    ) -> None:
        self._gateway = gateway
        self._leadership = leadership
        self._lease = lease
        self._gateways = gateways
        self._changes = changes
        self._shown = shown
        self._parts = parts = leader_parts(gateway, filer, leadership, lease.check)
        self.topics = LedTopics(parts, leadership.epoch, gateway.topic_defaults)
        self._external = ExternalChanges(self.topics, changes, shown.view, self._show, self._as_shown)
        external = self._external
        self._feed = TopicFeed(gateway, parts.factory.file_grown, external.changed, external.look_again)
        self._rounds: RetentionRounds | None = None
        self._is_serving = False

    async def load(self) -> None:
        """
        Read the topics, and follow what changes from then on.
        """
        await self._feed.start()
        overrides = await self._parts.configs.read()
        self._configs = ConfigChanges(overrides, self._parts.configs.store, self._shown.show_overrides)
        self._shown.defaults.follow(overrides)
        loaded = await self.topics.load()
        await self._import_offsets({stored.name: self._as_shown(stored) for stored in loaded})
        self._overrides = overrides

    async def serve(self) -> None:
        """
        Show the topics to clients, and open their partitions.
        """
        view = self._shown.view().with_only(map(self._as_shown, self.topics.known()))
        self._is_serving = True
        cluster_id, node = self._leadership.cluster_id, self._gateways.own
        view = replace(view, cluster_id=cluster_id, controller_id=node.id, nodes=self._gateways.nodes())
        self._shown.show(view.with_overrides(self._overrides))
        self._external.loaded()
        reactor, check_ms = self._gateway.reactor, self._gateway.retention_check_ms
        await within(reactor, _OPEN_S, self.topics.open_all(view.topics.values()))
        self._rounds = RetentionRounds(reactor, check_ms, self._client_partitions, self._partition_at)

    def end(self) -> None:
        """
        Stop: another gateway leads, or may.
        """
        self._feed.stop()
        self.topics.lose(NOT_LEADER)
        if self._rounds:
            self._rounds.stop()
        self._is_serving = False

    async def flush(self) -> None:
        """
        Bring all that was produced into files, and take no more.
        """
        await self._configs.stop()
        await self.topics.flush()
        self.topics.lose(_STOPPING)

    def current(self, view: ClusterView) -> ClusterView:
        """
        The view; without leaders if this process stood still, because another gateway may lead by now.
        """
        return view.without_leaders() if self._lease.has_stalled() else view

    def show_again(self) -> None:
        view = self._shown.view()
        self._shown.show(replace(view, nodes=self._gateways.nodes(), epoch=view.epoch + 1))

    def measure(self, partitions: Iterable[PartitionId]) -> DiskUsage:
        open_ones = self.topics.registry.open
        return DiskUsage({one: open_ones[one].size for one in partitions if one in open_ones})

    def partition(self, topic: Topic, index: int) -> Partition:
        return self.topics.registry.partition(topic, index)

    def coordinator(self, key: str) -> StateLog:
        topic = self._shown.view().topics.get(_GROUPS) or self._create_state_topic()
        return self._state_log(topic, partition_for(key, len(topic.partitions)))

    def coordinators(self) -> list[StateLog]:
        topic = self._shown.view().topics.get(_GROUPS)
        return [self._state_log(topic, index) for index in range(len(topic.partitions))] if topic else []

    async def new_producer_id(self) -> int:
        return await with_kafka_errors(self._parts.ids.next())

    def apply(self, topic: Topic) -> None:
        for partition in self.topics.registry.of_topic(topic):
            partition.set_topic(topic)

    @_as_controller
    async def create(self, new: NewTopic) -> Topic:
        self._shown.check(new)
        self._lease.check()
        new = replace(new, config=self.topics.with_format(new.config))
        topic = self._shown.new_topic(new, self._leadership.epoch)
        with self._changing(new.name):
            await self.topics.create(topic, new)
            self._check_serving()
            self._warn_if_not_compacted(topic)
            return self._shown.show_topic(topic)

    @_as_controller
    async def grow(self, topic_id: Uuid, partition_count: int) -> Topic:
        topic = self._shown.topic(topic_id)
        self._lease.check()
        grown = self._shown.grown(topic, partition_count, self._leadership.epoch)
        with self._changing(topic.name):
            await self.topics.grow(topic, grown)
            self._check_serving()
            return self._shown.show_topic(grown)

    @_as_controller
    async def configure(self, name: str, change: Change) -> None:
        topic = self._shown.configured(name, change)
        self._lease.check()
        before = self._shown.view().topics[name]
        if topic is before:
            return
        with self._changing(name):
            config = await self.topics.configure(topic)
            self._check_serving()
            if config.cleanup_policy != before.config.cleanup_policy:
                self._warn_if_not_compacted(topic)
            self._shown.show_topic(replace(self._shown.topic(topic.id), config=config))

    @_as_controller
    async def delete(self, topic_id: Uuid) -> None:
        topic = self._shown.topic(topic_id)
        self._lease.check()
        with self._changing(topic.name):
            self._shown.show(self._shown.view().without_topic(topic))
            await self.topics.delete(topic)

    @_as_controller
    async def change_config(self, resource: ConfigResource, change: Change) -> None:
        self._lease.check()
        await self._configs.make(resource, change)

    @contextmanager
    def _changing(self, name: str) -> Iterator[None]:
        """
        Change a topic while nobody else does.
        """
        is_done = False
        try:
            with self._changes.hold(name):
                yield
            is_done = True
        finally:
            self._external.change_ended(name, is_done=is_done)

    def _check_serving(self) -> None:
        if not self._is_serving:
            raise NOT_LEADER

    def _warn_if_not_compacted(self, topic: Topic) -> None:
        """
        Warn if the topic asks for compaction. SeaweedMQ has none; many such topics work without it, and only grow.
        """
        if topic.config.compacts and not topic.internal:
            outcome = "retention deletes its records" if topic.config.deletes else "all its records are kept"
            policy = ",".join(topic.config.cleanup_policy)
            self._log.warn(NOT_COMPACTED_HERE, name=topic.name, policy=policy, outcome=outcome)

    def _show(self, view: ClusterView) -> None:
        if self._is_serving:
            self._shown.show(view)

    def _as_shown(self, stored: StoredTopic) -> Topic:
        led = self._shown.led(stored.file.partition_count, self._leadership.epoch)
        return Topic(stored.file.id, stored.name, led, self.topics.config(stored), stored.file.internal)

    async def _import_offsets(self, topics: Mapping[str, Topic]) -> None:
        files, check = self._parts.offset_files, self._parts.check_lease
        offsets = OffsetImport(self._gateway.seaweed, self._gateway.folder, files, check)
        await offsets.import_all(topics.get(_GROUPS), self._new_state_topic, self.topics)

    def _create_state_topic(self) -> Topic:
        topic = self._new_state_topic()
        self.topics.add_state_topic(topic)
        self._shown.show(self._shown.view().with_topic(topic))
        return topic

    def _new_state_topic(self) -> Topic:
        led = self._shown.led(self._gateway.offsets_partitions, self._leadership.epoch)
        return Topic(Uuid.random(), _GROUPS, led, TopicConfig.of({}, self._shown.defaults), internal=True)

    def _state_log(self, topic: Topic, index: int) -> StateLog:
        partition = self.partition(topic, index)
        assert isinstance(partition, ChainPartition)
        return self.topics.state_logs.log(partition)

    async def _client_partitions(self) -> list[PartitionId]:
        """
        All partitions with records of clients.
        """
        topics = [topic for topic in self._shown.view().topics.values() if not topic.internal]
        return [PartitionId(topic.id, index) for topic in topics for index in range(len(topic.partitions))]

    def _partition_at(self, name: PartitionId) -> Partition:
        return self.partition(self._shown.topic(name.topic_id), name.index)
