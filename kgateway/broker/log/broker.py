"""
The broker whose topics are files in a folder of this machine: the embedded log.

The files at the root of the folder belong to `DataFolder`; those in the folders of partitions belong to the partitions,
which the registry opens. The broker shows topics to the cluster and changes them.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from kgateway.broker.base import STATE_PARTITIONS, SingleNodeBroker, topic_deleted, topic_exists
from kgateway.broker.config_changes import ConfigChanges
from kgateway.broker.log.checkpointer import Checkpointer
from kgateway.broker.log.compaction.partition_compaction import Compactor, InThreadCompactor
from kgateway.broker.log.compaction.scheduler import BACKOFF_MS
from kgateway.broker.log.data_folder.data_folder import DataFolder
from kgateway.broker.log.data_folder.partition_folder import disk_usage, folder_of
from kgateway.broker.log.data_folder.session import FolderSession
from kgateway.broker.log.data_folder.state_snapshots import FileSnapshots
from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.files.file_cache import FileCache
from kgateway.broker.log.maintenance import Maintenance
from kgateway.broker.log.partition.partition import LogPartition
from kgateway.broker.log.partition.registry import PartitionRegistry
from kgateway.broker.log.runtime import InThread, InTurns, LogRuntime
from kgateway.broker.log.sync_thread import SyncThread
from kgateway.broker.partition.producer_state import EXPIRY_MS
from kgateway.broker.partition.retention import CHECK_MS
from kgateway.broker.state_log import STATE_CONFIG, StateLog
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import Change, ConfigResource
from kgateway.cluster.partition import DiskUsage
from kgateway.cluster.view import NewTopic, Topic
from kgateway.coordination.placement import STATE_TOPICS
from kgateway.interfaces import IBroker
from kgateway.log_messages import PRELOADING_FAILED
from kgateway.security.permissions import Resource
from kgateway.topic_partition import PartitionId, TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

OPEN_FILES_MAX = 2_000
_STOPPING = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the gateway is stopping")


@implementer(IBroker)
class LogBroker(SingleNodeBroker):
    _log = Logger()
    _folder: DataFolder
    _configs: ConfigChanges
    _registry: PartitionRegistry
    _checkpointer: Checkpointer
    _maintenance: Maintenance

    def __init__(
        self,
        path: Path,
        *,
        node_id: int,
        now_ms: Callable[[], int],
        clock: IReactorTime,
        in_thread: InThread,
        in_turns: InTurns,
        disk: Disk,
        open_session: Callable[[Path, Disk, int], FolderSession] = FolderSession.open,
        producer_expiry_ms: int = EXPIRY_MS,
        topic_defaults: Mapping[str, str] | None = None,
        open_files_max: int = OPEN_FILES_MAX,
        offsets_partitions: int = STATE_PARTITIONS,
        retention_check_ms: int = CHECK_MS,
        compaction_backoff_ms: int = BACKOFF_MS,
        compactor: Compactor | None = None,
        sync_thread: SyncThread | None = None,
    ) -> None:
        super().__init__(node_id, "", offsets_partitions, topic_defaults)
        self._retention_check_ms = retention_check_ms
        self._compaction_backoff_ms = compaction_backoff_ms
        self._compactor = compactor or InThreadCompactor(disk)
        self._path = path
        self._disk = disk
        self._sync_thread = sync_thread
        self._runtime = LogRuntime(FileCache(disk, open_files_max), now_ms, clock, in_thread, in_turns, sync_thread)
        self._open_session = open_session
        self._producer_expiry_ms = producer_expiry_ms
        self._state_logs: dict[PartitionId, StateLog] = {}
        self._is_open = False

    @property
    def description(self) -> str:
        count = len(self._view.topics)
        return f"data in {self._path} ({count} topic{'' if count == 1 else 's'})"

    @property
    def folder(self) -> str | None:
        return str(self._path)

    @property
    def log_dir(self) -> str:
        return str(self._path.absolute())

    def measure(self, partitions: Iterable[PartitionId]) -> Deferred[DiskUsage]:
        known = [(topic, index) for topic_id, index in partitions if (topic := self._current(topic_id))]
        return self._runtime.in_thread(partial(disk_usage, self._path, self._disk, known))

    def start(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._start())

    async def _start(self) -> None:
        session = self._open_session(self._path, self._disk, self.node_id)
        try:
            self._open(session)
        except BaseException:
            session.give_back()
            raise
        self._is_open = True

    def _open(self, session: FolderSession) -> None:
        folder = self._folder = DataFolder(session, self._runtime)
        self._topic_defaults.follow(folder.overrides)
        topics = folder.topics(self._topic_defaults)
        self._view = self._view.with_cluster(session.cluster_id, topics).with_overrides(folder.overrides)
        self._configs = ConfigChanges(folder.overrides, folder.save_overrides, self._show_overrides)
        folder.forget_all_but(topics)
        self._registry = PartitionRegistry(
            self._path,
            self._runtime,
            folder.checkpoints,
            folder.log_starts,
            self._producer_expiry_ms,
            self._current,
            self._save_checkpoints_soon,
            self._save_checkpoints,
        )
        self._maintenance = Maintenance(
            self._runtime,
            self._partitions_with_folder,
            self.partition,
            self._compactor,
            folder.cleaned_offsets,
            retention_check_ms=self._retention_check_ms,
            compaction_backoff_ms=self._compaction_backoff_ms,
        )
        self._checkpointer = Checkpointer(self._registry, folder.checkpoints, self._runtime)
        folder.remove_deleted()
        if not session.was_clean:
            opening = self._runtime.in_turns(self._registry.open_all(self._partitions_with_folder()))
            opening.addErrback(lambda failure: self._log.failure(PRELOADING_FAILED, failure))

    def _partitions_with_folder(self, wanted: Callable[[Topic], bool] = lambda _: True) -> list[tuple[Topic, int]]:
        topics = [topic for topic in self._view.topics.values() if wanted(topic)]
        names = self._disk.names(self._path) if topics else {}
        partitions = ((topic, index) for topic in topics for index in range(len(topic.partitions)))
        return [(topic, index) for topic, index in partitions if folder_of(self._path, topic, index).name in names]

    def _save_checkpoints_soon(self) -> None:
        self._checkpointer.save_soon()

    def _save_checkpoints(self, partition: LogPartition) -> None:
        self._checkpointer.save_at_once(partition)

    def _current(self, topic_id: Uuid) -> Topic | None:
        return self._view.topics_by_id.get(topic_id)

    def stop(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._stop(FolderSession.close))

    def undo_start(self) -> Deferred[None]:
        return self.stop() if self._view.topics else Deferred.fromCoroutine(self._stop(FolderSession.give_back))

    async def _stop(self, leave: Callable[[FolderSession], None]) -> None:
        if not self._is_open:
            return
        self._is_open = False
        await self._maintenance.stop()
        await self._topic_configs.stop()
        await self._configs.stop()
        await self._registry.stop()
        await self._folder.stop()
        self._folder.finish(synced=await self._checkpointer.finish())
        for partition in self._registry.open.values():
            partition.lose(_STOPPING)
        if self._sync_thread:
            self._sync_thread.stop()
        self._runtime.files.close_all()
        leave(self._folder.session)

    def partition(self, topic_id: Uuid, index: int) -> LogPartition:
        found = self._registry.open.get((topic_id, index))
        if found is None:
            topic = self._topic(topic_id)
            if not 0 <= index < len(topic.partitions):
                raise topic.no_partition(index)
            found = self._registry.partition(topic, index)
        return found

    def _state_log(self, topic: Topic, index: int) -> StateLog:
        found = self._state_logs.get(PartitionId(topic.id, index))
        if found is None:
            partition = self.partition(topic.id, index)
            snapshots = FileSnapshots(partition.folder, self._runtime, partition.sync)
            found = self._state_logs[PartitionId(topic.id, index)] = StateLog(
                partition, snapshots, self._runtime.now_ms
            )
        return found

    def _change_overrides(self, resource: ConfigResource, change: Change) -> Deferred[None]:
        return self._configs.make(resource, change)

    def new_producer_id(self) -> Deferred[int]:
        return self._folder.producer_ids.next()

    def create_topic(self, new: NewTopic) -> Deferred[Topic]:
        return Deferred.fromCoroutine(self._create(new))

    def add_partitions(self, topic_id: Uuid, partition_count: int) -> Deferred[Topic]:
        return Deferred.fromCoroutine(self._grow(topic_id, partition_count))

    def delete_topic(self, topic_id: Uuid) -> Deferred[None]:
        return Deferred.fromCoroutine(self._delete(topic_id))

    def _create_state_topic(self, resource: Resource) -> Topic:
        config = TopicConfig.of(STATE_CONFIG, self._topic_defaults)
        topic = self._new_topic_of_this_start(
            NewTopic(STATE_TOPICS[resource], self._state_partitions[resource], config, internal=True)
        )
        with self._folder.changing(topic.name, topic_exists):
            self._folder.put_topic_now(topic)
        self._show(self._view.with_topic(topic))
        return topic

    async def _create(self, new: NewTopic) -> Topic:
        topic = self._new_topic_of_this_start(new)
        with self._folder.changing(new.name, topic_exists):
            await self._folder.make_way(new.name)
            await self._folder.put_topic(topic)
            return self._show_topic(topic)

    def _new_topic_of_this_start(self, new: NewTopic) -> Topic:
        born = self._folder.session.start_number
        return self._new_topic(new, self._folder.leader_epoch(born), born)

    async def _grow(self, topic_id: Uuid, partition_count: int) -> Topic:
        topic = self._topic(topic_id)
        grown = self._grown(topic, partition_count, self._folder.leader_epoch(topic.born))
        with self._folder.changing(topic.name):
            await self._change(grown)
        return grown

    async def _configure(self, name: str, change: Change) -> None:
        topic = self._configured(name, change)
        if topic is not self._view.topics[name]:
            with self._folder.changing(name):
                await self._change(topic)

    async def _change(self, topic: Topic) -> None:
        await self._folder.put_topic(topic)
        self._apply_config(topic)
        self._show_topic(topic)

    def _apply_config(self, topic: Topic) -> None:
        for index in range(len(topic.partitions)):
            if (topic.id, index) in self._registry.open:
                self._registry.open[topic.id, index].set_topic(topic)

    async def _delete(self, topic_id: Uuid) -> None:
        topic = self._topic(topic_id)
        with self._folder.changing(topic.name):
            await self._folder.delete_topic(topic)
            self._view = self._view.without_topic(topic)
            closed = [self._close(topic, index) for index in range(len(topic.partitions))]
            self._view_listeners.wake()
            self._save_checkpoints_soon()
            await gatherResults(closed)
            await self._folder.delete_partition_folders(topic)

    def _close(self, topic: Topic, index: int) -> Deferred[None]:
        """
        Give up a partition of a deleted topic; fires when no thread touches its files any more.
        """
        self._state_logs.pop(PartitionId(topic.id, index), None)
        self._folder.forget(TopicPartition(topic.name, index))
        partition, closed = self._registry.forget(topic, index)
        if partition:
            partition.lose(topic_deleted(topic))
            closed = gatherResults([closed, partition.segments_lock.run(lambda: None)]).addCallback(lambda _: None)
        self._runtime.files.close_in(folder_of(self._path, topic, index))
        return closed
