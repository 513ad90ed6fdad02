"""
The topics that this gateway leads, for as long as it does: as they are stored, and their open partitions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.deferreds import when_over
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweedmq.formats.registry import with_format
from kgateway.broker.seaweedmq.gateway_runtime import GatewayRuntime
from kgateway.broker.seaweedmq.leader.go_offset_export import OffsetExport
from kgateway.broker.seaweedmq.leader.go_offset_files import OffsetFiles
from kgateway.broker.seaweedmq.leader.ledger_import import LedgerImport
from kgateway.broker.seaweedmq.leader.state_logs import StateLogs
from kgateway.broker.seaweedmq.leadership.lease import Leadership
from kgateway.broker.seaweedmq.partitions.factory import PartitionFactory
from kgateway.broker.seaweedmq.partitions.partition import SeaweedMQPartition
from kgateway.broker.seaweedmq.partitions.registry import ClusterPartitionRegistry, Partition
from kgateway.broker.seaweedmq.topics.catalog import StoredTopic, TopicCatalog
from kgateway.broker.seaweedmq.topics.producer_id_chain import ProducerIdChain
from kgateway.broker.seaweedmq.topics.resource_configs import ResourceConfigs
from kgateway.broker.seaweedmq.topics.state_topics import StateTopics
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import NewTopic, Topic
from kgateway.coordination.placement import STATE_TOPICS
from kgateway.log_messages import RECORDS_NOT_IN_FILES
from kgateway.plurals import counted
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid


class LeaderParts(NamedTuple):
    topics: TopicCatalog
    state_topics: StateTopics
    factory: PartitionFactory
    ledgers: LedgerImport
    offset_files: OffsetFiles
    offsets: OffsetExport
    configs: ResourceConfigs
    ids: ProducerIdChain
    check_lease: Callable[[], None]  # raises if another gateway may lead by now


def leader_parts(
    gateway: GatewayRuntime, filer: Filer, leadership: Leadership, precondition: Callable[[], None]
) -> LeaderParts:
    seaweed, namespace = gateway.seaweed, gateway.namespace
    topics = TopicCatalog(seaweed, namespace, precondition, gateway.client)
    files = OffsetFiles(seaweed, namespace, precondition)
    return LeaderParts(
        topics,
        StateTopics(gateway, filer, precondition),
        PartitionFactory(gateway, topics, precondition),
        LedgerImport(gateway, precondition),
        files,
        OffsetExport(files, gateway.reactor),
        ResourceConfigs(seaweed, gateway.folder, precondition),
        ProducerIdChain(gateway.shared_chain(filer, "producer-ids"), leadership.cluster_id),
        precondition,
    )


_OPENED_AT_ONCE = 8  # partitions
_RECREATED = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "SeaweedMQ has recreated the partitions of the topic")


class LedTopics:
    _log = Logger()

    def __init__(self, parts: LeaderParts, epoch: int, topic_defaults: Mapping[str, str]) -> None:
        self.epoch = epoch
        self.registry = ClusterPartitionRegistry(self._open)
        self.state_logs = StateLogs(parts.state_topics, self.registry, parts.offsets)
        self._parts = parts
        self._topic_defaults = topic_defaults
        self._stored: dict[Uuid, StoredTopic] = {}
        self._being_adopted: dict[Uuid, Deferred[None]] = {}  # topics that another program has just changed

    async def load(self) -> list[StoredTopic]:
        found = [*await self._parts.topics.load_all(), *await self._parts.state_topics.all()]
        self._stored = {each.file.id: each for each in found}
        await self._parts.ledgers.import_all(found)
        return found

    def known(self) -> list[StoredTopic]:
        """
        All topics by now: the import of offsets may have created an internal one since they were loaded.
        """
        return list(self._stored.values())

    def open_all(self, topics: Iterable[Topic]) -> Deferred[None]:
        """
        Open the partitions of these topics, a few at a time; fires when all were tried.
        """
        places = iter([(topic, index) for topic in topics for index in range(len(topic.partitions))])
        work = [Deferred.fromCoroutine(self._open_each(places)) for _ in range(_OPENED_AT_ONCE)]
        return gatherResults(work).addCallback(lambda _: None)

    async def _open_each(self, places: Iterator[tuple[Topic, int]]) -> None:
        for topic, index in places:
            if topic.id in self._stored:  # else it was deleted meanwhile
                with suppress(KafkaError):  # the log has the reason
                    await self.registry.opened(topic, index)

    async def names(self) -> list[str]:
        return await self._parts.topics.names()

    async def is_there(self, topic: Topic) -> bool:
        seen = await self._parts.topics.read(topic.name)
        return seen is not None and seen.stored.file.id == topic.id

    def look_again(self) -> None:
        """
        Read the files of all open partitions: they may have grown unnoticed.
        """
        for partition in self._open_message_partitions():
            partition.look_again()

    def _open_message_partitions(self) -> list[SeaweedMQPartition]:
        return [each for each in self.registry.open.values() if isinstance(each, SeaweedMQPartition)]

    async def adopt(self, name: str) -> StoredTopic | None:
        """
        Adopt a topic that another program has just made, or that could not be read before; returns `None` if it is
        known already.
        """
        if any(each.name == name for each in self._stored.values()):
            return None
        stored = await self._parts.topics.load(name)
        if stored is None or any(each.name == name for each in self._stored.values()):
            return None
        self._stored[stored.file.id] = stored
        return stored

    async def is_recreated(self, topic: Topic) -> bool:
        """
        Whether another program has recreated the partitions of the topic.
        """
        stored = self._stored.get(topic.id)
        return stored is not None and await self._parts.topics.is_recreated(stored)

    async def adopt_recreated(self, topic: Topic) -> StoredTopic:
        """
        Serve the partitions that another program has recreated.
        """
        stored = self._stored[topic.id]
        adopted = self._being_adopted[topic.id] = Deferred()
        self.registry.forget(topic, _RECREATED)
        try:
            taken = self._stored[topic.id] = await self._parts.topics.store_recreated(stored)
        finally:
            del self._being_adopted[topic.id]
            adopted.callback(None)
        return taken

    def config(self, stored: StoredTopic) -> TopicConfig:
        return TopicConfig.of(stored.file.configs, self._topic_defaults)

    def with_format(self, config: TopicConfig) -> TopicConfig:
        return with_format(config, self._topic_defaults)

    def add_state_topic(self, topic: Topic) -> None:
        self._stored[topic.id] = self.state_logs.add(topic)

    async def create(self, topic: Topic, new: NewTopic) -> None:
        stored = self._stored[topic.id] = await self._parts.topics.create(topic.id, new, topic.config.overrides)
        for index in range(len(topic.partitions)):
            self.registry.add(self._parts.factory.fresh(topic, stored, index))

    async def grow(self, topic: Topic, grown: Topic) -> None:
        """
        Give a topic more partitions. What is produced meanwhile is published afterwards.
        """
        before = [await self._opened(topic, index) for index in range(len(topic.partitions))]
        ends = [await partition.pause() for partition in before]
        stored = self._stored[topic.id]
        try:
            stored = self._stored[topic.id] = await self._parts.topics.grow(stored, len(grown.partitions), ends)
        finally:
            for partition in before:
                self._parts.factory.move(partition, stored)
        for partition in before:
            partition.set_topic(grown)
        for index in range(len(before), len(grown.partitions)):
            self.registry.add(self._parts.factory.fresh(grown, stored, index))

    async def configure(self, topic: Topic) -> TopicConfig:
        """
        Store the config that the topic has now, and pass it to its partitions; returns it with the configs that the
        format requires.
        """
        is_state = topic.name in STATE_TOPICS.values()
        config = topic.config if is_state else self.with_format(topic.config)
        stored = self._stored[topic.id]
        if config.overrides == stored.file.configs:
            return config
        stored = stored._replace(file=replace(stored.file, configs=config.overrides))
        await (self.state_logs if is_state else self._parts.topics).store(stored)
        self._stored[topic.id] = stored
        for partition in self.registry.of_topic(topic):
            partition.set_topic(replace(partition.topic, config=config))
        return config

    async def delete(self, topic: Topic) -> None:
        self.forget(topic)
        if topic.name in STATE_TOPICS.values():
            await self.state_logs.delete(topic.name)
        else:
            await self._parts.topics.delete(topic.name)

    def forget(self, topic: Topic) -> None:
        self.state_logs.forget(topic)
        self.registry.forget(topic)
        self._parts.factory.forget(topic)
        self._stored.pop(topic.id, None)

    def lose(self, why: KafkaError) -> None:
        self.state_logs.lose()
        self.registry.lose(why)

    async def flush(self) -> None:
        """
        Bring all that was produced into files, so that the next start has little to read.
        """
        opened = self._open_message_partitions()
        flushing = [Deferred.fromCoroutine(self._flush(each)).addBoth(self._flush_ended, each) for each in opened]
        await gatherResults([*flushing, self.state_logs.flush()])

    async def _flush(self, partition: SeaweedMQPartition) -> None:
        if partition.has_grown:
            self._parts.check_lease()  # else the files may end with what another one has published
            await partition.pause()
        await partition.save()

    def _flush_ended(self, outcome: Failure | None, partition: SeaweedMQPartition) -> None:
        if outcome or partition.unflushed_count:
            why = outcome.getErrorMessage() if outcome else "no broker has accepted them"
            name, count = f"{partition.topic.name}-{partition.index}", partition.unflushed_count
            self._log.warn(RECORDS_NOT_IN_FILES, partition=name, records=counted(count, "record"), why=why)

    async def _opened(self, topic: Topic, index: int) -> SeaweedMQPartition:
        opened = await self.registry.opened(topic, index)
        assert isinstance(opened, SeaweedMQPartition)
        return opened

    async def _open(self, topic: Topic, index: int) -> Partition:
        if topic.id in self._being_adopted:
            await when_over(self._being_adopted[topic.id])
        stored = self._stored[topic.id]
        partition = await self._existing(topic, stored, index)
        if self._stored.get(topic.id, stored) is not stored:  # it was changed meanwhile
            partition.set_topic(replace(topic, config=self.config(self._stored[topic.id])))
        return partition

    async def _existing(self, topic: Topic, stored: StoredTopic, index: int) -> Partition:
        if topic.name in STATE_TOPICS.values():
            return await self._parts.state_topics.existing(topic, index)
        return await self._parts.factory.existing(topic, stored, index)
