"""
The files at the root of a data folder, from the start of a broker to its stop. The partitions, each in a folder of its
own below it, belong to the registry (partition/registry.py).

    kgateway.topics                     the topics (topic_journal.py)
    recovery-point-offset-checkpoint    how far partitions are synced (checkpoints.py)
    kgateway.settled                    how far they are settled (checkpoints.py)
    log-start-offset-checkpoint         where they begin, if not with their first segment (checkpoints.py)
    cleaner-offset-checkpoint           up to where they are compacted (checkpoints.py)
    kgateway.configs                    what was set for groups and brokers (config_file.py)
    kgateway.producer-ids               which ids were given (producer_ids.py)
    meta.properties, .lock, ...         whose folder it is (session.py)
    TOPIC-INDEX/                        a partition (partition_folder.py)

A topic is in the journal before anybody sees it. Configs, producer ids and log starts are nowhere else either, and are
synced when they change. The other checkpoints only save time: without them the segments are read.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.broker.config_changes import ConfigsNotSaved
from kgateway.broker.log.data_folder.checkpoints import CLEANED_OFFSETS, LOG_STARTS, Checkpoints, OffsetCheckpoint
from kgateway.broker.log.data_folder.config_file import CONFIGS, ConfigFile
from kgateway.broker.log.data_folder.folder_error import FolderError
from kgateway.broker.log.data_folder.partition_folder import folder_of, mark_deleted, remove_deleted, rename_strays
from kgateway.broker.log.data_folder.producer_ids import PRODUCER_IDS, ProducerIds
from kgateway.broker.log.data_folder.session import FolderSession
from kgateway.broker.log.data_folder.topic_journal import TOPICS, StoredTopic, TopicJournal
from kgateway.broker.log.runtime import LogRuntime, describe_error
from kgateway.broker.topic_changes import ChangeLock, being_changed
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import AllOverrides
from kgateway.cluster.view import PartitionState, Topic
from kgateway.log_messages import CANNOT_REMOVE_DELETED, FOLDER_WITHOUT_TOPIC, LOG_STARTS_LOST
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError

_JOURNAL = "the topic journal"


class DataFolder:
    """
    The only object that writes the root of a data folder.
    """

    _log = Logger()

    def __init__(self, session: FolderSession, runtime: LogRuntime) -> None:
        path, disk = session.path, runtime.files.disk
        self.session = session
        self._path = path
        self._runtime = runtime
        self._lock = ChangeLock()
        self._journal = TopicJournal.open(path / TOPICS, disk, session.last_end)
        self.producer_ids = ProducerIds.open(path / PRODUCER_IDS, runtime)
        self._configs = ConfigFile.open(path / CONFIGS, disk)
        trusts_settled = session.was_clean or session.same_boot
        self.checkpoints = Checkpoints(path, disk, trust_settled=trusts_settled, clean=session.was_clean)
        self.checkpoints.save(sync=True)
        if not trusts_settled:
            session.record_boot()  # the checkpoints claim nothing any more that only another boot had
        self.log_starts = OffsetCheckpoint(path / LOG_STARTS, runtime)
        self.cleaned_offsets = OffsetCheckpoint(path / CLEANED_OFFSETS, runtime)
        if self.log_starts.is_damaged:
            self._log.error(LOG_STARTS_LOST, path=path / LOG_STARTS)

    @property
    def overrides(self) -> AllOverrides:
        return self._configs.overrides

    async def save_overrides(self, overrides: AllOverrides) -> None:
        try:
            await self._runtime.in_thread(partial(self._configs.write, overrides))
        except OSError as error:
            self._runtime.health.failed(CONFIGS, error)
            raise ConfigsNotSaved(describe_error(error)) from None
        self._runtime.health.worked(CONFIGS)

    def leader_epoch(self, born: int) -> int:
        """
        The leader epoch, in this start, of all partitions of a topic that the start of number `born` created.
        """
        return self.session.start_number - born

    def topics(self, defaults: Mapping[str, str]) -> list[Topic]:
        return [self._topic(stored, defaults) for stored in self._journal.topics.values()]

    def _topic(self, stored: StoredTopic, defaults: Mapping[str, str]) -> Topic:
        try:
            config = TopicConfig.of(stored.config, defaults)
        except KafkaError as error:
            raise FolderError(
                f"topic {stored.name} in {self._path}: {error.message}; start a version of kgateway that knows it"
            ) from None
        node_id = self.session.node_id
        led = PartitionState(node_id, self.leader_epoch(stored.born), (node_id,), (node_id,))
        partitions = (led,) * stored.partition_count
        return Topic(stored.id, stored.name, partitions, config, stored.internal, stored.born)

    @contextmanager
    def changing(self, name: str, refusal: Callable[[str], KafkaError] = being_changed) -> Iterator[None]:
        """
        Refuse other changes of this topic meanwhile. An error of the disk becomes a KAFKA_STORAGE_ERROR.
        """
        with self._lock.hold(name, refusal):
            try:
                yield
                self._runtime.health.worked(_JOURNAL)
            except OSError as error:
                self._runtime.health.failed(_JOURNAL, error)
                reason = f"topic {name} cannot be changed: {describe_error(error)}"
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason) from None

    async def make_way(self, name: str) -> None:
        """
        Before a topic of this name is created: make sure that no file lists an earlier one.
        """
        self.checkpoints.forget_earlier(name)
        await self.log_starts.forget_earlier(name)
        await self.cleaned_offsets.forget_earlier(name)

    async def put_topic(self, topic: Topic) -> None:
        await self._runtime.in_thread(partial(self._journal.put, _stored(topic)))

    def put_topic_now(self, topic: Topic) -> None:
        """
        Put a topic while the reactor waits for the disk: an internal topic, once in the life of a folder.
        """
        self.checkpoints.forget_earlier(topic.name)
        self._journal.put(_stored(topic))

    async def delete_topic(self, topic: Topic) -> None:
        await self._runtime.in_thread(partial(self._journal.delete, topic.id))

    async def delete_partition_folders(self, topic: Topic) -> None:
        """
        Free the folders' names for good; their files are removed later.
        """
        await self._runtime.in_thread(partial(self._put_away, topic))
        self.remove_deleted()

    def _put_away(self, topic: Topic) -> None:
        disk = self._runtime.files.disk
        names = disk.names(self._path)
        for index in range(len(topic.partitions)):
            folder = folder_of(self._path, topic, index)
            if folder.name in names:
                mark_deleted(disk, folder, topic.id)
        disk.sync_folder(self._path)

    def remove_deleted(self) -> None:
        disk = self._runtime.files.disk
        removing = self._runtime.in_thread(partial(remove_deleted, disk, self._path))
        removing.addErrback(lambda failure: self._log.failure(CANNOT_REMOVE_DELETED, failure))

    def forget_all_but(self, topics: Collection[Topic]) -> None:
        """
        Forget the offsets of partitions of other topics, and put their folders aside.
        """
        known = {TopicPartition(topic.name, index) for topic in topics for index in range(len(topic.partitions))}
        for checkpoint in (self.checkpoints, self.log_starts, self.cleaned_offsets):
            checkpoint.forget_all_but(known)
        for name in rename_strays(self._runtime.files.disk, self._path, topics):
            self._log.warn(FOLDER_WITHOUT_TOPIC, folder=self._path / name)

    def forget(self, partition: TopicPartition) -> None:
        for checkpoint in (self.checkpoints, self.log_starts, self.cleaned_offsets):
            checkpoint.forget(partition)

    def stop(self) -> Deferred[None]:
        """
        Fires when no thread writes offsets any more.
        """
        return self.log_starts.stop().addCallback(lambda _: self.cleaned_offsets.stop())

    def finish(self, *, synced: bool) -> None:
        """
        Take no more changes; if all partitions are synced, leave the marker of a clean shutdown.
        """
        if self._journal.close() and synced:
            self.session.mark_clean()


def _stored(topic: Topic) -> StoredTopic:
    count, config = len(topic.partitions), topic.config.overrides
    return StoredTopic(topic.id, topic.name, count, config, topic.internal, topic.born)
