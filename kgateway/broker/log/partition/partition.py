"""
A partition whose log is files.

What is appended is in the page cache when the append returns: it is stored, survives a crash of the process, and is
committed as Kafka means it. If the topic has `kgateway.acks.fsync`, it is committed once it is synced, and only then
can it be read.
"""

from collections.abc import Callable
from functools import partial
from math import inf
from pathlib import Path

from twisted.internet.defer import Deferred, DeferredLock, fail, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.broker.log.partition.reader import Reader
from kgateway.broker.log.partition.segment_deletion import SegmentDeletion
from kgateway.broker.log.partition.syncer import FlushPolicy, Syncer
from kgateway.broker.log.partition.time_search import TimeSearch
from kgateway.broker.log.recovery.recovery import Recovered
from kgateway.broker.log.runtime import LogRuntime, describe_error
from kgateway.broker.log.segments.file_names import file_name
from kgateway.broker.log.segments.fsync import side_files_of
from kgateway.broker.log.segments.segment_list import LogEnd, SegmentLimits
from kgateway.broker.log.segments.side_files import SideFiles
from kgateway.broker.partition.base import PartitionBase
from kgateway.broker.partition.listeners import OffsetWaiters
from kgateway.broker.partition.producer_snapshot import SNAPSHOT
from kgateway.broker.partition.retention import LogExtent, expired, retention_limits
from kgateway.cluster.partition import EARLIEST_OFFSET, EpochEnd, Isolation, Origin, Read, TimestampAndOffset
from kgateway.cluster.view import Topic
from kgateway.interfaces import IPartition
from kgateway.log_messages import PARTITION_OFFLINE
from kgateway.records.batch import Batch, placed
from kgateway.records.control import leader_change_batch
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer

_READ_COMMITTED = Isolation.READ_COMMITTED  # in Python 3.11 a look-up in an enum costs as much as three calls


@implementer(IPartition)
class LogPartition(PartitionBase):
    _log = Logger()
    high_watermark: int = EARLIEST_OFFSET  # a plain attribute, because every append and read looks at it

    def __init__(
        self,
        topic: Topic,
        index: int,
        recovered: Recovered,
        runtime: LogRuntime,
        changed: Callable[["LogPartition"], None],
        save_log_start: Callable[[TopicPartition, int], Deferred[None]],
    ) -> None:
        super().__init__(topic, index, runtime.now_ms, recovered.producers)
        self.segment_list = recovered.segment_list
        self.log_start, self.log_end = recovered.log_start, self.segment_list.end_offset
        self.high_watermark = self.log_end
        self.offline = False
        self.synced_offset = recovered.synced  # everything before it is synced
        self.is_synced = recovered.clean  # whether everything is, side files too
        self.settled = recovered.snapshot == self.log_end and not recovered.faults  # the side files match the segments
        self.settled_offset = self.log_end if self.settled else None  # the log end when they last did
        self.segments_lock = DeferredLock()  # held while segments are deleted or replaced
        self.deletion = SegmentDeletion(self.segment_list, runtime)
        self._runtime = runtime
        self._changed = changed
        self._save_log_start = save_log_start
        self._epochs = recovered.epochs
        self._epochs_of_batches = recovered.epochs_unknown  # offsets whose epoch is only in their batches
        self._committed_end = (
            self.segment_list.end
        )  # position of the high watermark, used while it is below the log end
        self._stable_end = self.segment_list.end  # position of the last stable offset, as last looked up
        self._uncommitted = OffsetWaiters()
        self._reader = Reader(self.segment_list, runtime, self._epoch_at)
        self._syncer = Syncer(
            self.segment_list, runtime, self._synced, self._sync_failed, recovered.synced, recovered.unsynced
        )
        self._flush_policy = FlushPolicy(self.segment_list, runtime, self._syncer.request)
        self._side_files = SideFiles(self.segment_list, recovered.epochs, recovered.producers, recovered.snapshot)
        recovered.producers.transactions.drop_committed_markers(self.high_watermark)
        self._epochs.assign(self.leader_epoch, self.log_end)
        self.deletion.clear(recovered.left_over)
        self.set_topic(topic)

    @property
    def folder(self) -> Path:
        return self.segment_list.folder

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic.name, self.index)

    def set_topic(self, topic: Topic) -> None:
        """
        Follow another config. If records need not be synced any more, those that are stored can be read now; producers
        that wait for a sync still get it.
        """
        super().set_topic(topic)
        config = topic.config
        if not config.acks_fsync and self.high_watermark < self.log_end:
            self.high_watermark = self.log_end
            self._listeners.wake()
        if self.high_watermark == self.log_end:
            self._committed_end = self.segment_list.end
        self._limits = self._segment_limits()
        self._flush_policy.configured(config)

    def _segment_limits(self) -> SegmentLimits:
        config = self.topic.config
        jitter_ms = int(min(config.segment_jitter_ms, config.roll_ms) * self._runtime.chance())
        roll_ms = config.roll_ms - jitter_ms
        return SegmentLimits(config.segment_bytes, roll_ms, config.index_interval_bytes, config.segment_index_bytes)

    def _write(self, batch: Batch) -> None:
        header, offset = batch.header, self.log_end
        try:
            if self.segment_list.is_full_for(header, self._limits):
                self._roll()
            self.segment_list.append(placed(batch, offset, self.leader_epoch), header, offset, self._limits)
        except OSError as error:
            self._runtime.health.failed(self.folder.name, error)
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"the log cannot be written: {describe_error(error)}"
            ) from None
        if self._runtime.health.failing:
            self._runtime.health.worked(self.folder.name)
        self.log_end = offset + header.last_offset_delta + 1
        self.is_synced = False
        if self.settled:
            self._unsettle()
        config = self.topic.config
        if config.acks_fsync:
            self._syncer.request()
        else:
            self.high_watermark = self.log_end
            self._flush_policy.wrote(config, header.records_count)

    def end_gap(self) -> None:
        """
        Write a control batch after missing offsets at the end of the log: without any batch there, a consumer would
        wait in front of them until the next record is produced.
        """
        leader_id = self.topic.partitions[self.index].leader_id
        appended = self.append(leader_change_batch(leader_id, self._now_ms()), Origin.COORDINATOR)
        appended.ignore(appended.stored, appended.committed)

    def _roll(self) -> None:
        """
        Begin a new segment; sync the one before it, and its side files.
        """
        sealed = self._side_files.roll()
        self._limits = self._segment_limits()
        self.is_synced = False
        self._syncer.add(sealed, *side_files_of(sealed, self.log_end))
        self._syncer.request()

    def _when_committed(self, offset: int) -> Deferred[None] | None:
        if offset <= self.high_watermark:
            return None
        if self.lost:  # lost in the middle of the append
            return fail(KafkaError(self.lost.code, self.lost.message))
        return self._uncommitted.wait(offset)

    @property
    def last_stable(self) -> int:
        return self._stable(self.high_watermark)

    def read(
        self, offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool, due: float = inf
    ) -> Read | Deferred[Read]:
        if self.lost:
            self._check_led()
        is_read_committed = isolation is _READ_COMMITTED
        if offset == self.high_watermark:  # a consumer that waits for records
            return Read([], 0, offset, self.last_stable, self.log_start, [] if is_read_committed else None)
        self._check_offset(offset)
        end = self._stable_read_end if is_read_committed else self._read_end
        if offset >= end.offset:
            return self._read_result([], offset, is_read_committed)
        data = self._reader.read(offset, end, max_bytes, at_least_one)
        if isinstance(data, list):  # the usual case; isinstance of Deferred takes longer
            return self._read_result(data, offset, is_read_committed)
        return data.addCallbacks(self._late_read_result, self._unless_lost, (offset, is_read_committed))

    def _late_read_result(self, data: list[bytes], offset: int, is_read_committed: bool) -> Read:
        """
        With read_committed, records deleted meanwhile are refused: it is not known any more which of them were aborted.
        """
        if is_read_committed:
            self._check_offset(offset)
        return self._read_result(data, offset, is_read_committed)

    def _read_result(self, data: list[bytes], offset: int, is_read_committed: bool) -> Read:
        batches: list[Buffer] = [*data]
        aborted = self._aborted(offset, batches) if is_read_committed else None
        high_watermark = self.high_watermark
        return Read(batches, sum(map(len, data)), high_watermark, self._stable(high_watermark), self.log_start, aborted)

    @property
    def _read_end(self) -> LogEnd:
        return self.segment_list.end if self.high_watermark == self.log_end else self._committed_end

    @property
    def _stable_read_end(self) -> LogEnd:
        offset = self.last_stable
        if offset == self.high_watermark:
            return self._read_end
        if self._stable_end.offset != offset:
            self._stable_end = self._reader.end_before(offset)
        return self._stable_end

    def find_time(self, timestamp: int) -> Deferred[TimestampAndOffset | None]:
        return self._find(lambda search: search.first(timestamp))

    def find_max_time(self) -> Deferred[TimestampAndOffset | None]:
        return self._find(TimeSearch.largest)

    def _find(self, look: Callable[[TimeSearch], TimestampAndOffset | None]) -> Deferred[TimestampAndOffset | None]:
        self._check_led()
        return Deferred.fromCoroutine(self._search(look)).addErrback(self._unless_lost)

    async def _search(self, look: Callable[[TimeSearch], TimestampAndOffset | None]) -> TimestampAndOffset | None:
        """
        Search in a thread, and again if searched segments were deleted or compacted meanwhile.
        """
        search = TimeSearch(self._runtime.files.disk, self.segment_list.segments, self.log_start, self._read_end)
        try:
            found = await self._runtime.in_thread(partial(look, search))
        except FileNotFoundError:
            if search.is_of(self.segment_list):
                raise
            return await self._search(look)
        finally:
            for segment in search.searched:
                self._reader.loaded(segment)
        is_there = search.is_of(self.segment_list) and (found is None or found.offset >= self.log_start)
        return found if is_there else await self._search(look)

    def epoch_end(self, leader_epoch: int) -> EpochEnd | None:
        self._check_led()
        return self._epochs.end(leader_epoch, self.log_end)

    def _epoch_at(self, offset: int) -> int | None:
        return None if offset in self._epochs_of_batches else self._epochs.at(offset)

    def _unless_lost(self, failure: Failure) -> Failure:
        """
        A failed read: the topic may have been deleted meanwhile, or the disk is at fault.
        """
        self._check_led()
        if isinstance(failure.value, OSError):
            reason = f"{self.folder.name} cannot be read: {describe_error(failure.value)}"
            return Failure(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason))
        return failure

    def sync(self) -> Deferred[None]:
        """
        Sync all records written by now; fires when that is done, and fails if it cannot be.
        """
        self._check_led()
        return self._syncer.finish().addCallback(lambda _: self._check_led())

    def sync_all(self) -> Deferred[None]:
        """
        Sync everything written since the partition was opened, side files too; fires when that is done, or the
        partition is offline.
        """
        if self.is_synced:
            return succeed(None)
        self._syncer.add(*side_files_of(self.segment_list.segments[-1].path, self.log_end))
        return self._syncer.finish().addCallback(self._all_synced, self.log_end)

    def _all_synced(self, _: None, offset: int) -> None:
        self.is_synced = not self.lost and self.log_end == offset

    def _synced(self, end: LogEnd) -> None:
        self.synced_offset = max(end.offset, self.synced_offset)  # a later sync may be reported first
        moves = end.offset > self.high_watermark
        if moves:
            self.high_watermark, self._committed_end = end.offset, end
        self._uncommitted.reached(end.offset)
        if moves:
            self._listeners.wake()

    def _sync_failed(self, error: BaseException) -> None:
        """
        What could not be synced may be lost, and nobody can tell how much of it.
        """
        self.go_offline(f"it could not be synced: {describe_error(error)}")

    def settle(self) -> None:
        """
        Bring the side files up to date, so that recovery after a crash has little to check.
        """
        self._side_files.settle()
        self.settled, self.settled_offset = True, self.log_end

    def _unsettle(self) -> None:
        self.settled = False
        self._changed(self)

    def checkpointed(self) -> None:
        """
        The checkpoint file says how far this partition is settled.
        """
        self._side_files.checkpointed()

    async def _raise_log_start(self, offset: int) -> None:
        await self.segments_lock.run(lambda: Deferred.fromCoroutine(self._delete_up_to(offset)))

    async def _delete_up_to(self, offset: int) -> None:
        """
        What remains of the log, and the snapshot of its producers, are synced before the rest is deleted.
        """
        self._check_led()
        if offset <= self.log_start:
            return
        synced = self._base_of(offset) if self.is_synced else None
        synced = await self._sync_snapshot(offset, synced)
        try:
            await self._save_log_start(self.topic_partition, offset)
        except OSError as error:
            reason = f"the log start of {self.folder.name} cannot be saved: {describe_error(error)}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason) from None
        self._check_led()
        await self._sync_snapshot(offset, synced)
        self.log_start = max(self.log_start, offset)
        self._epochs.begin_at(self.log_start)
        self._producers.transactions.aborted.begin_at(self.log_start)
        if self.settled:
            self._unsettle()
        self.deletion.drop(self.log_start, self.topic.config.file_delete_delay_ms)

    async def _sync_snapshot(self, offset: int, synced: int | None) -> int:
        """
        Sync the producer snapshot at the base of the segment that has the offset, unless that base is `synced`. Returns
        the base. A new segment may begin meanwhile, with that very offset.
        """
        while synced != (base := self._base_of(offset)):
            self._syncer.add(self.folder / file_name(base, SNAPSHOT))
            await self.sync()
            synced = base
        return base

    def _base_of(self, offset: int) -> int:
        return self.segment_list.segment_of(offset).base_offset

    def expire(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._expire()).addErrback(self._unless_lost)

    async def _expire(self) -> None:
        self._check_led()
        limits = retention_limits(self.topic)
        if limits.are_none:
            return
        pieces = await self.deletion.pieces()
        log = LogExtent(sum(piece.size for piece in pieces), self.log_start, self.high_watermark)
        count = expired(pieces, log, limits, self._runtime.now_ms())
        if count == len(pieces) and not self._roll_to_expire():
            count -= 1
        if count:
            await self._raise_log_start(max(pieces[count - 1].end, self.log_start))

    def _roll_to_expire(self) -> bool:
        try:
            self._roll()
        except OSError as error:
            self._runtime.health.failed(self.folder.name, error)
            return False
        return True

    def go_offline(self, why: str) -> None:
        """
        Serve nothing any more until a restart has recovered the files.
        """
        if self.lost:  # its topic was deleted meanwhile
            return
        self._log.critical(PARTITION_OFFLINE, partition=self.folder.name, why=why)
        self.offline = True
        self._changed(self)
        reason = PARTITION_OFFLINE.format(partition=self.folder.name, why=why)
        self.lose(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason))

    def lose(self, why: KafkaError) -> None:
        super().lose(why)
        self._uncommitted.fail(why)
        self._flush_policy.stop()
        self.deletion.stop()
        self._syncer.stop()
        self._runtime.health.forget(self.folder.name)
