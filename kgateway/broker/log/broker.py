"""
The broker whose topics are files in a folder of this machine: the embedded log.

    kgateway.topics                     which topics there are (topic_journal.py)
    TOPIC-INDEX/                        a partition (partition_folder.py, recovery.py, segment.py)
    recovery-point-offset-checkpoint    how far they are known to be good (checkpoints.py)
    kgateway.configs                    what was set for groups (config_file.py)
    kgateway.producer-ids               which ids were given (producer_ids.py)
    meta.properties, .lock, ...         whose folder it is (folder.py)

What decides is written before it is shown: a topic is in its journal before anybody sees it. All the rest can be made
up from the segments, and is written now and then so that this need not be done.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.broker.log.checkpoints import Checkpoints
from kgateway.broker.log.config_changes import ConfigChanges
from kgateway.broker.log.config_file import CONFIGS, ConfigFile
from kgateway.broker.log.disk import Disk
from kgateway.broker.log.folder import DataFolder
from kgateway.broker.log.open_files import OpenFiles
from kgateway.broker.log.opening import Openings
from kgateway.broker.log.partition import LogPartition
from kgateway.broker.log.partition_folder import folder_of, put_strays_aside
from kgateway.broker.log.parts import InThread, InTurns, LogParts
from kgateway.broker.log.producer_ids import PRODUCER_IDS, ProducerIds
from kgateway.broker.log.settling import Settling
from kgateway.broker.log.shared_ids import SharedIds
from kgateway.broker.log.state_snapshots import FileSnapshots
from kgateway.broker.log.stored_topics import with_stored
from kgateway.broker.log.topic_changes import TopicChanges
from kgateway.broker.log.topic_journal import TOPICS, TopicJournal
from kgateway.broker.lone import STATE_PARTITIONS, LoneBroker, deleted, no_partition
from kgateway.broker.producers import EXPIRY_MS
from kgateway.broker.state_log import STATE_TOPICS, StateLog
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import Change, ConfigResource
from kgateway.cluster.view import NewTopic, Topic
from kgateway.interfaces import IBroker
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

OPEN_FILES_MAX = 2_000
_FIRST_EPOCH = 0
_STOPPING = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the gateway stops")


@implementer(IBroker)
class LogBroker(LoneBroker):
    """
    One node, with its data in one folder.
    """

    _log = Logger()
    _journal: TopicJournal
    _data: DataFolder
    _ids: SharedIds
    _checkpoints: Checkpoints
    _openings: Openings
    _changes: TopicChanges
    _configs: ConfigChanges
    _settling: Settling

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
        open_folder: Callable[[Path, Disk, int], DataFolder] = DataFolder.open,
        producer_expiry_ms: int = EXPIRY_MS,
        topic_defaults: Mapping[str, str] | None = None,
        open_files_max: int = OPEN_FILES_MAX,
        offsets_partitions: int = STATE_PARTITIONS,
    ) -> None:
        super().__init__(node_id, "", offsets_partitions)
        self._path = path
        self._disk = disk
        self._parts = LogParts(OpenFiles(disk, open_files_max), now_ms, clock, in_thread, in_turns)
        self._open_folder = open_folder
        self._producer_expiry_ms = producer_expiry_ms
        self._topic_defaults = topic_defaults or {}
        self._state_logs: dict[tuple[Uuid, int], StateLog] = {}
        self._is_open = False

    @property
    def description(self) -> str:
        count = len(self._view.topics)
        return f"data in {self._path} ({count} topic{'' if count == 1 else 's'})"

    @property
    def folder(self) -> str | None:
        return str(self._path)

    def start(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._start())

    async def _start(self) -> None:
        data = self._open_folder(self._path, self._disk, self.node_id)
        try:
            self._open(data)
        except BaseException:
            data.give_back()
            raise
        self._is_open = True

    def _open(self, data: DataFolder) -> None:
        self._data = data
        self._journal = TopicJournal.open(self._path / TOPICS, self._disk, data.last_end)
        self._ids = SharedIds(ProducerIds.open(self._path / PRODUCER_IDS, self._disk), self._parts)
        configs = ConfigFile.open(self._path / CONFIGS, self._disk)
        whole = data.was_clean or data.same_boot
        checkpoints = self._checkpoints = Checkpoints(self._path, self._disk, trust_settled=whole, clean=data.was_clean)
        checkpoints.save(sync=True)
        if not whole:
            data.mark_recovered()  # what the checkpoints say now holds whatever happens
        self._view = with_stored(self._view, data, self._journal.topics.values(), self._topic_defaults)
        self._view = self._view.with_overrides(configs.overrides)
        self._configs = ConfigChanges(configs, self._parts, self._show_overrides)
        topics = self._view.topics.values()
        checkpoints.keep({(topic.name, index) for topic in topics for index in range(len(topic.partitions))})
        self._openings = Openings(
            self._path,
            self._parts,
            checkpoints,
            self._producer_expiry_ms,
            self._current,
            self._save_soon,
            self._save_at_once,
        )
        self._changes = TopicChanges(self._path, self._journal, data.start_number, self._parts)
        self._settling = Settling(self._openings, checkpoints, self._parts)
        for name in put_strays_aside(self._disk, self._path, self._view.topics.values()):
            self._log.warn("{folder} belongs to no topic; remove it if nobody misses it", folder=self._path / name)
        self._changes.remove_deleted()
        if not data.was_clean:
            self._parts.in_turns(self._openings.open_all(self._written())).addErrback(self._complain)

    def _written(self) -> list[tuple[Topic, int]]:
        """
        The partitions that have a folder.
        """
        names, topics = self._disk.names(self._path), self._view.topics.values()
        places = ((topic, index) for topic in topics for index in range(len(topic.partitions)))
        return [(topic, index) for topic, index in places if folder_of(self._path, topic, index).name in names]

    def _complain(self, failure: Failure) -> None:
        self._log.failure("not all partitions could be opened", failure)

    def _save_soon(self) -> None:
        self._settling.save_soon()

    def _save_at_once(self, partition: LogPartition) -> None:
        self._settling.save_at_once(partition)

    def _current(self, topic_id: Uuid) -> Topic | None:
        return self._view.topics_by_id.get(topic_id)

    def stop(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        await self._configs.stop()
        await self._openings.stop()
        synced = await self._settling.finish()
        if self._journal.close() and synced:
            self._data.mark_clean()
        for partition in self._openings.open.values():
            partition.lose(_STOPPING)
        self._parts.files.close_all()
        self._data.close()

    def partition(self, topic_id: Uuid, index: int) -> LogPartition:
        found = self._openings.open.get((topic_id, index))
        if found is None:
            topic = self._topic(topic_id)
            if not 0 <= index < len(topic.partitions):
                raise no_partition(topic, index)
            found = self._openings.partition(topic, index)
        return found

    def _state_log(self, topic: Topic, index: int) -> StateLog:
        found = self._state_logs.get((topic.id, index))
        if found is None:
            partition = self.partition(topic.id, index)
            found = StateLog(
                partition, FileSnapshots(partition.folder, self._parts, partition.sync), self._parts.now_ms
            )
            self._state_logs[topic.id, index] = found
        return found

    def _create_state_topic(self, resource: Resource) -> Topic:
        """
        Once in the life of a folder everybody waits for it.
        """
        config = TopicConfig.of({}, self._topic_defaults)
        new = NewTopic(STATE_TOPICS[resource], self._state_partitions[resource], config, internal=True)
        topic = self._new_topic(new, _FIRST_EPOCH)
        with self._changes.one_at_a_time(topic.name):
            self._checkpoints.begin(topic.name)
            self._changes.keep_now(topic)
        self._show(self._view.with_topic(topic))
        return topic

    def create_topic(self, new: NewTopic) -> Deferred[Topic]:
        return Deferred.fromCoroutine(self._create(new))

    def delete_topic(self, topic_id: Uuid) -> Deferred[None]:
        return Deferred.fromCoroutine(self._delete(topic_id))

    def add_partitions(self, topic_id: Uuid, partition_count: int) -> Deferred[Topic]:
        return Deferred.fromCoroutine(self._grow(topic_id, partition_count))

    async def _create(self, new: NewTopic) -> Topic:
        topic = self._new_topic(new, _FIRST_EPOCH)
        with self._changes.one_at_a_time(new.name):
            self._checkpoints.begin(new.name)
            await self._changes.keep(topic)
            self._show(self._view.with_topic(topic))
        return topic

    async def _grow(self, topic_id: Uuid, partition_count: int) -> Topic:
        topic = self._grown(topic_id, partition_count)
        with self._changes.one_at_a_time(topic.name):
            await self._changes.keep(topic)
            for index in range(partition_count):
                if (topic_id, index) in self._openings.open:
                    self._openings.open[topic_id, index].become(topic)
            self._show(self._view.with_topic(topic))
        return topic

    async def _delete(self, topic_id: Uuid) -> None:
        topic = self._topic(topic_id)
        with self._changes.one_at_a_time(topic.name):
            await self._changes.forget(topic)
            self._view = self._view.without_topic(topic)
            gone = [self._let_go(topic, index) for index in range(len(topic.partitions))]
            self._waiters.wake()
            self._save_soon()
            await gatherResults(gone)
            await self._changes.clear(topic)

    def _let_go(self, topic: Topic, index: int) -> Deferred[None]:
        """
        Fires when no thread opens it any more.
        """
        self._state_logs.pop((topic.id, index), None)
        partition, gone = self._openings.forget(topic, index)
        if partition:
            partition.lose(deleted(topic))
        self._parts.files.close_in(folder_of(self._path, topic, index))
        return gone

    def change_config(self, resource: ConfigResource, change: Change) -> Deferred[None]:
        return self._configs.make(resource, change)

    def new_producer_id(self) -> Deferred[int]:
        return self._ids.next()
