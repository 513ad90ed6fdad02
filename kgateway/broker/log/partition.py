"""
A partition whose log is files.

What is appended is in the page cache when the append returns: it survives the end of the process, and is safe as Kafka
means it. Where the topic has `kgateway.acks.fsync` it is safe once it would survive the end of the machine, and only
then can it be read.
"""

from collections.abc import Callable

from twisted.internet.defer import Deferred, DeferredLock, fail, succeed
from twisted.logger import Logger
from zope.interface import implementer

from kgateway.broker.awaited import Awaited
from kgateway.broker.log.beside import Beside
from kgateway.broker.log.checkpoints import Place
from kgateway.broker.log.due import files_beside
from kgateway.broker.log.flushing import Flushing
from kgateway.broker.log.letting_go import LettingGo
from kgateway.broker.log.partition_log import End, Limits
from kgateway.broker.log.parts import LogParts, plain
from kgateway.broker.log.readable import ReadablePartition
from kgateway.broker.log.recovery import Recovered
from kgateway.broker.log.segment import file_name
from kgateway.broker.log.syncing import Syncing
from kgateway.broker.producer_snapshots import SNAPSHOT
from kgateway.broker.retention import Standing, expired, limits_of
from kgateway.cluster.view import Topic
from kgateway.interfaces import IPartition
from kgateway.records.batch import Batch, placed
from kgateway.wire.errors import ErrorCode, KafkaError


@implementer(IPartition)
class LogPartition(ReadablePartition):
    """
    One partition, open.
    """

    _logger = Logger()

    def __init__(
        self,
        topic: Topic,
        index: int,
        recovered: Recovered,
        parts: LogParts,
        changed: Callable[["LogPartition"], None],
        keep_start: Callable[[Place, int], Deferred[None]],
    ) -> None:
        super().__init__(topic, index, recovered, parts)
        self._changed = changed
        self._keep_start = keep_start
        self.offline = False
        # Whether the files beside the segments tell of all that is in them.
        self.settled = recovered.snapshot == self.log_end and not recovered.faults
        self.settled_offset = self.log_end if self.settled else None  # up to where they did at last
        self.synced_offset = recovered.synced  # what is before it will outlast the machine
        self._syncing = Syncing(self.log, parts, self._outlasts, self._not_synced, recovered.synced, recovered.doubtful)
        self.reshaping = DeferredLock()  # held by who takes segments away or puts others in their place
        self._unsafe = Awaited()
        self.letting_go = LettingGo(self.log, parts)
        self.letting_go.clear(recovered.left_over)
        self._flushing = Flushing(self.log, parts, self._syncing.request)
        self._beside = Beside(self.log, recovered.epochs, recovered.producers, recovered.snapshot)
        self.is_sure = recovered.clean  # whether all there is will outlast the machine, files beside the segments too
        self._epochs.assign(self.leader_epoch, self.log_end)
        self.become(topic)

    def become(self, topic: Topic) -> None:
        """
        The topic has another config, or more partitions. Where records need not outlast the machine any more, those
        that are there can be read now; who has waited until they do still does.
        """
        super().become(topic)
        config = topic.config
        if not config.acks_fsync and self.high_watermark < self.log_end:
            self.high_watermark = self.log_end
            self._waiters.wake()
        if self.high_watermark == self.log_end:
            self._safe_end = self.log.end
        self._limits = self._limits_now()
        self._flushing.configured(config)

    def _limits_now(self) -> Limits:
        """
        Those of the segment that begins, or goes on with another config.
        """
        config = self.topic.config
        jitter_ms = int(min(config.segment_jitter_ms, config.roll_ms) * self._parts.chance())
        roll_ms = config.roll_ms - jitter_ms
        return Limits(config.segment_bytes, roll_ms, config.index_interval_bytes, config.segment_index_bytes)

    def sync(self) -> Deferred[None]:
        """
        Sync all records that are written by now; fires when that is done, and fails where it cannot be.
        """
        self._check_owned()
        return self._syncing.finish().addCallback(lambda _: self._check_owned())

    def all_synced(self) -> Deferred[None]:
        """
        Sync what was written since the partition was opened, with the files beside it, and fire when that is done, or
        the partition offline.
        """
        if self.is_sure:
            return succeed(None)
        self._syncing.note(*files_beside(self.log.segments[-1].path, self.log_end))
        return self._syncing.finish().addCallback(self._made_sure, self.log_end)

    def _made_sure(self, _: None, offset: int) -> None:
        self.is_sure = not self.lost and self.log_end == offset

    def _keep(self, batch: Batch) -> None:
        header, offset = batch.header, self.log_end
        try:
            if self.log.is_full_for(header, self._limits):
                self._roll()
            self.log.append(placed(batch, offset, self.leader_epoch), header, offset, self._limits)
        except OSError as error:
            self._parts.storage.failed(self.folder.name, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log cannot be written: {plain(error)}") from None
        if self._parts.storage.failing:
            self._parts.storage.worked(self.folder.name)
        self.log_end = offset + header.last_offset_delta + 1
        self.is_sure = False
        if self.settled:
            self._unsettle()
        config = self.topic.config
        if config.acks_fsync:
            self._syncing.request()
        else:
            self.high_watermark = self.log_end
            self._flushing.wrote(config, header.records_count)

    def _roll(self) -> None:
        """
        Begin a new segment, and sync the one that ends, with what lies beside it.
        """
        sealed = self._beside.roll()
        self._limits = self._limits_now()
        self.is_sure = False
        self._syncing.note(sealed, *files_beside(sealed, self.log_end))
        self._syncing.request()

    def _outlasts(self, end: End) -> None:
        """
        All before this end will outlast the machine.
        """
        self.synced_offset = end.offset
        moves = end.offset > self.high_watermark
        if moves:
            self.high_watermark, self._safe_end = end.offset, end
        self._unsafe.reached(end.offset)
        if moves:
            self._waiters.wake()

    def _not_synced(self, error: BaseException) -> None:
        """
        What could not be synced may be lost, and nobody can tell how much of it.
        """
        self.go_offline(f"it could not be synced: {plain(error)}")

    def go_offline(self, why: str) -> None:
        """
        Serve nothing any more until the next opening has looked through the files.
        """
        if self.lost:  # a topic that was deleted meanwhile
            return
        reason = f"{self.folder.name} is offline, for {why}; restart the gateway"
        self._logger.critical("{reason}", reason=reason)
        self.offline = True
        self._changed(self)
        self.lose(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason))

    def lose(self, why: KafkaError) -> None:
        super().lose(why)
        self._unsafe.fail(why)
        self._flushing.stop()
        self.letting_go.stop()
        self._syncing.stop()
        self._parts.storage.forget(self.folder.name)

    def _when_safe(self, offset: int) -> Deferred[None] | None:
        if offset <= self.high_watermark:
            return None
        if self.lost:  # in the middle of the append
            return fail(KafkaError(self.lost.code, self.lost.message))
        return self._unsafe.wait(offset)

    async def _begin_at(self, offset: int) -> None:
        await self.reshaping.run(lambda: Deferred.fromCoroutine(self._shorten(offset)))

    async def _shorten(self, offset: int) -> None:
        """
        What is left of the log, and tells of its producers, is synced before the rest is given up.
        """
        self._check_owned()
        if offset <= self.log_start:
            return
        sure = self._border(offset) if self.is_sure else None
        sure = await self._synced_for(offset, sure)
        try:
            await self._keep_start(self.place, offset)
        except OSError as error:
            reason = f"the log start of {self.folder.name} cannot be kept: {plain(error)}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason) from None
        self._check_owned()
        await self._synced_for(offset, sure)
        self.log_start = max(self.log_start, offset)
        self._epochs.begin_at(self.log_start)
        self._producers.transactions.aborted.begin_at(self.log_start)
        if self.settled:
            self._unsettle()
        self.letting_go.drop(self.log_start, self.topic.config.file_delete_delay_ms)

    async def _synced_for(self, offset: int, sure: int | None) -> int:
        """
        Sync what tells of the producers where the segment of the offset begins, unless that one is sure; which one it
        was. Meanwhile another may begin, with the very offset.
        """
        while sure != (border := self._border(offset)):
            self._syncing.note(self.folder / file_name(border, SNAPSHOT))
            await self.sync()
            sure = border
        return border

    def _border(self, offset: int) -> int:
        return self.log.segment_of(offset).base_offset

    def expire(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._expire()).addErrback(self._unless_lost)

    async def _expire(self) -> None:
        self._check_owned()
        limits = limits_of(self.topic)
        if limits.are_none:
            return
        pieces = await self.letting_go.pieces()
        log = Standing(sum(piece.size for piece in pieces), self.log_start, self.high_watermark)
        count = expired(pieces, log, limits, self._parts.now_ms())
        if count == len(pieces) and not self._begin_segment():
            count -= 1
        if count:
            await self._begin_at(max(pieces[count - 1].end, self.log_start))

    def _begin_segment(self) -> bool:
        """
        Whether the one that is written to can go, for there is another.
        """
        try:
            self._roll()
        except OSError as error:
            self._parts.storage.failed(self.folder.name, error)
            return False
        return True

    def settle(self) -> None:
        """
        Bring the files beside the segments up to date, so that a crash costs little.
        """
        self._beside.settle()
        self.settled, self.settled_offset = True, self.log_end

    def _unsettle(self) -> None:
        """
        The files beside the segments do not tell all any more.
        """
        self.settled = False
        self._changed(self)

    def told_settled(self) -> None:
        """
        The checkpoint says how far this is settled.
        """
        self._beside.told()
