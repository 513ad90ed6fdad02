"""
The folder of this machine that the embedded log has its files in, from the start of a broker to its stop.

    kgateway.topics                     which topics there are (topic_journal.py)
    TOPIC-INDEX/                        a partition (partition_folder.py, recovery.py, segment.py)
    recovery-point-offset-checkpoint    how far they are known to be good (checkpoints.py)
    log-start-offset-checkpoint         where they begin, if not with their first segment (kept_offsets.py)
    cleaner-offset-checkpoint           up to where they are compacted (the same)
    kgateway.configs                    what was set for groups (config_file.py)
    kgateway.producer-ids               which ids were given (producer_ids.py)
    meta.properties, .lock, ...         whose folder it is (folder.py)

What decides is written before it is shown: a topic is in its journal before anybody sees it. All the rest can be made
up from the segments, and is written now and then so that this need not be done.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.config_changes import ConfigChanges, NotKept
from kgateway.broker.log import sizes
from kgateway.broker.log.checkpoints import Checkpoints
from kgateway.broker.log.compaction.cleaner import BACKOFF_MS
from kgateway.broker.log.compaction.compacting import Compactor, OwnThread
from kgateway.broker.log.config_file import CONFIGS, ConfigFile
from kgateway.broker.log.disk import Disk
from kgateway.broker.log.folder import DataFolder
from kgateway.broker.log.kept_offsets import LOG_STARTS, KeptOffsets
from kgateway.broker.log.open_files import OpenFiles
from kgateway.broker.log.opening import Openings
from kgateway.broker.log.partition import LogPartition
from kgateway.broker.log.partition_folder import folder_of, put_strays_aside
from kgateway.broker.log.parts import InThread, InTurns, LogParts, plain
from kgateway.broker.log.producer_ids import PRODUCER_IDS, ProducerIds
from kgateway.broker.log.settling import Settling
from kgateway.broker.log.shared_ids import SharedIds
from kgateway.broker.log.state_snapshots import FileSnapshots
from kgateway.broker.log.stored_topics import with_stored
from kgateway.broker.log.topic_changes import TopicChanges
from kgateway.broker.log.topic_journal import TOPICS, TopicJournal
from kgateway.broker.log.upkeep import Upkeep
from kgateway.broker.lone import STATE_PARTITIONS, LoneBroker
from kgateway.broker.producers import EXPIRY_MS
from kgateway.broker.retention_rounds import CHECK_MS
from kgateway.broker.state_log import StateLog
from kgateway.cluster.config_resource import AllOverrides, Change, ConfigResource
from kgateway.cluster.log_dir import Measured, Places
from kgateway.cluster.view import Topic
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

OPEN_FILES_MAX = 2_000
_STOPPING = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the gateway stops")


class FolderBroker(LoneBroker):
    """
    One node, with its data in one folder. What follows from this changes which topics there are.
    """

    _log = Logger()
    _journal: TopicJournal
    _data: DataFolder
    _ids: SharedIds
    _checkpoints: Checkpoints
    _starts: KeptOffsets
    _openings: Openings
    _changes: TopicChanges
    _configs: ConfigChanges
    _settling: Settling
    _upkeep: Upkeep

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
        retention_check_ms: int = CHECK_MS,
        compaction_backoff_ms: int = BACKOFF_MS,
        compactor: Compactor | None = None,
    ) -> None:
        super().__init__(node_id, "", offsets_partitions, topic_defaults)
        self._retention_check_ms = retention_check_ms
        self._compaction_backoff_ms = compaction_backoff_ms
        self._compactor = compactor or OwnThread(disk)
        self._path = path
        self._disk = disk
        self._parts = LogParts(OpenFiles(disk, open_files_max), now_ms, clock, in_thread, in_turns)
        self._open_folder = open_folder
        self._producer_expiry_ms = producer_expiry_ms
        self._state_logs: dict[tuple[Uuid, int], StateLog] = {}
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

    def measure(self, places: Places) -> Deferred[Measured]:
        known = [(topic, index) for key, index in places if (topic := self._current(key))]
        return self._parts.in_thread(partial(sizes.measure, self._path, self._disk, known))

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
        self._topic_defaults.follow(configs.overrides)
        self._view = with_stored(self._view, data, self._journal.topics.values(), self._topic_defaults)
        self._view = self._view.with_overrides(configs.overrides)
        self._configs = ConfigChanges(configs.overrides, partial(self._keep_configs, configs), self._show_overrides)
        topics = self._view.topics.values()
        places = {(topic.name, index) for topic in topics for index in range(len(topic.partitions))}
        checkpoints.keep(places)
        starts = self._starts = KeptOffsets(self._path / LOG_STARTS, self._parts)
        if starts.is_damaged:
            self._log.error(
                "{path} is damaged: logs begin with their first segments again", path=self._path / LOG_STARTS
            )
        starts.keep(places)
        self._openings = Openings(
            self._path,
            self._parts,
            checkpoints,
            starts,
            self._producer_expiry_ms,
            self._current,
            self._save_soon,
            self._save_at_once,
        )
        self._changes = TopicChanges(self._path, self._journal, data.start_number, self._parts)
        self._upkeep = Upkeep(
            self._path,
            self._parts,
            self._written,
            self.partition,
            self._compactor,
            retention_check_ms=self._retention_check_ms,
            compaction_backoff_ms=self._compaction_backoff_ms,
        )
        self._upkeep.keep(places)
        self._settling = Settling(self._openings, checkpoints, self._parts)
        for name in put_strays_aside(self._disk, self._path, self._view.topics.values()):
            self._log.warn("{folder} belongs to no topic; remove it if nobody misses it", folder=self._path / name)
        self._changes.remove_deleted()
        if not data.was_clean:
            self._parts.in_turns(self._openings.open_all(self._written())).addErrback(self._complain)

    async def _keep_configs(self, file: ConfigFile, overrides: AllOverrides) -> None:
        try:
            await self._parts.in_thread(partial(file.write, overrides))
        except OSError as error:
            self._parts.storage.failed(CONFIGS, error)
            raise NotKept(plain(error)) from None
        self._parts.storage.worked(CONFIGS)

    def _written(self, wanted: Callable[[Topic], bool] = lambda _: True) -> list[tuple[Topic, int]]:
        """
        The partitions that have a folder, of the topics that are wanted.
        """
        topics = [topic for topic in self._view.topics.values() if wanted(topic)]
        names = self._disk.names(self._path) if topics else {}
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
        await self._upkeep.stop()
        await self._topic_configs.stop()
        await self._configs.stop()
        await self._openings.stop()
        await self._starts.stop()
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
                raise topic.no_partition(index)
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

    def _change_overrides(self, resource: ConfigResource, change: Change) -> Deferred[None]:
        return self._configs.make(resource, change)

    def new_producer_id(self) -> Deferred[int]:
        return self._ids.next()
