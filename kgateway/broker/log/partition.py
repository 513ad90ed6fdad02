"""
A partition whose log is files.

What is appended is in the page cache when the append returns: it survives the end of the process, and is safe as Kafka
means it. Where the topic has `kgateway.acks.fsync` it is safe once it would survive the end of the machine, and only
then can it be read.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

from twisted.internet.defer import Deferred, fail, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.broker.log.beside import Beside
from kgateway.broker.log.due import files_beside
from kgateway.broker.log.flushing import Flushing
from kgateway.broker.log.partition_log import End, Limits
from kgateway.broker.log.parts import LogParts, plain
from kgateway.broker.log.reading import Reader
from kgateway.broker.log.recovery import Recovered
from kgateway.broker.log.syncing import Syncing
from kgateway.broker.log.time_search import TimeSearch
from kgateway.broker.owned import OwnedPartition
from kgateway.cluster.partition import Aborted, EpochEnd, Found, Isolation, Read
from kgateway.cluster.view import Topic
from kgateway.interfaces import IPartition
from kgateway.records.batch import Batch, placed
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer


@implementer(IPartition)
class LogPartition(OwnedPartition):
    """
    One partition, open.
    """

    _logger = Logger()

    def __init__(
        self, topic: Topic, index: int, recovered: Recovered, parts: LogParts, changed: Callable[["LogPartition"], None]
    ) -> None:
        super().__init__(topic, index, parts.now_ms, recovered.producers)
        self._log = recovered.log
        self._parts = parts
        self._changed = changed
        self._epochs = recovered.epochs
        self.log_start, self.log_end = self._log.start_offset, self._log.end_offset
        self.high_watermark = self.log_end
        self.offline = False
        # Whether the files beside the segments tell of all that is in them.
        self.settled = recovered.snapshot == self.log_end and not recovered.faults
        self.settled_offset = self.log_end if self.settled else None  # up to where they did at last
        self.synced_offset = recovered.synced  # what is before it will outlast the machine
        self._safe_end = self._log.end  # where the high watermark is while it is behind the end
        self._syncing = Syncing(
            self._log, parts, self._outlasts, self._go_offline, recovered.synced, recovered.doubtful
        )
        self._reader = Reader(self._log, parts, self._epoch_at)
        self._looked_through = recovered.looked_through  # what was told by its batches alone
        self._unsafe: deque[tuple[int, Deferred[None]]] = deque()
        self._flushing = Flushing(self._log, parts, self._syncing.request)
        self._beside = Beside(self._log, recovered.epochs, recovered.producers, recovered.snapshot)
        self.is_sure = recovered.clean  # whether all there is will outlast the machine, files beside the segments too
        self._epochs.assign(self.leader_epoch, self.log_end)
        self.become(topic)

    def become(self, topic: Topic) -> None:
        """
        The topic has another config, or more partitions.
        """
        self.topic = topic
        if self.high_watermark == self.log_end:
            self._safe_end = self._log.end
        config = topic.config
        self._limits = Limits(config.segment_bytes, config.segment_ms, config.index_interval_bytes)

    @property
    def last_stable(self) -> int:
        return self.high_watermark

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
        self._syncing.note(*files_beside(self._log.segments[-1].path, self.log_end))
        return self._syncing.finish().addCallback(self._made_sure, self.log_end)

    def _made_sure(self, _: None, offset: int) -> None:
        self.is_sure = not self.lost and self.log_end == offset

    @property
    def folder(self) -> Path:
        return self._log.folder

    @property
    def place(self) -> tuple[str, int]:
        """
        What checkpoints call it.
        """
        return self.topic.name, self.index

    def _keep(self, batch: Batch) -> None:
        header, offset = batch.header, self.log_end
        try:
            if self._log.is_full_for(header, self._limits):
                self._roll()
            self._log.append(placed(batch, offset, self.leader_epoch), header, offset, self._limits)
        except OSError as error:
            self._parts.storage.failed(self.folder.name, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log cannot be written: {plain(error)}") from None
        if self._parts.storage.failing:
            self._parts.storage.worked(self.folder.name)
        self.log_end = offset + header.last_offset_delta + 1
        self.is_sure = False
        if self.settled:
            self.settled = False
            self._changed(self)
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
        self._syncing.note(sealed, *files_beside(sealed, self.log_end))
        self._syncing.request()

    def _outlasts(self, end: End) -> None:
        """
        All before this end will outlast the machine.
        """
        self.synced_offset = end.offset
        if end.offset > self.high_watermark:
            self.high_watermark, self._safe_end = end.offset, end
            while self._unsafe and self._unsafe[0][0] <= end.offset:
                self._unsafe.popleft()[1].callback(None)
            self._waiters.wake()

    def _go_offline(self, error: BaseException) -> None:
        """
        What could not be synced may be lost, and nobody can tell how much of it.
        """
        if self.lost:  # a topic that was deleted meanwhile
            return
        reason = f"{self.folder.name} is offline, for it could not be synced: {plain(error)}; restart the gateway"
        self._logger.critical("{reason}", reason=reason)
        self.offline = True
        self._changed(self)
        self.lose(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason))

    def lose(self, why: KafkaError) -> None:
        super().lose(why)
        unsafe, self._unsafe = self._unsafe, deque()
        for _, waiting in unsafe:
            waiting.errback(KafkaError(why.code, why.message))
        self._flushing.stop()
        self._syncing.stop()
        self._parts.storage.forget(self.folder.name)

    def _when_safe(self, offset: int) -> Deferred[None] | None:
        if offset <= self.high_watermark:
            return None
        if self.lost:  # in the middle of the append
            return fail(KafkaError(self.lost.code, self.lost.message))
        waiting: Deferred[None] = Deferred()
        self._unsafe.append((offset, waiting))
        return waiting

    def read(self, offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool) -> Read | Deferred[Read]:
        self._check_owned()
        self._check_offset(offset)
        if offset >= self.high_watermark:
            return self._read([], isolation)
        data = self._reader.read(offset, self._readable, max_bytes, at_least_one)
        if isinstance(data, Deferred):
            return data.addCallbacks(self._read, self._unless_lost, (isolation,))
        return self._read(data, isolation)

    def _read(self, data: list[bytes], isolation: Isolation) -> Read:
        aborted: list[Aborted] | None = [] if isolation is Isolation.READ_COMMITTED else None
        batches: list[Buffer] = [*data]
        return Read(batches, sum(map(len, data)), self.high_watermark, self.last_stable, self.log_start, aborted)

    def find_time(self, timestamp: int) -> Deferred[Found | None]:
        return self._find(lambda search: search.first(timestamp))

    def find_max_time(self) -> Deferred[Found | None]:
        return self._find(TimeSearch.largest)

    def _find(self, look: Callable[[TimeSearch], Found | None]) -> Deferred[Found | None]:
        self._check_owned()
        search = TimeSearch(self._parts.files.disk, self._log.segments, self._readable)

        def ended(result: Found | Failure | None) -> Found | Failure | None:
            for segment in search.searched:
                self._reader.loaded(segment)
            return result

        return self._parts.in_thread(partial(look, search)).addBoth(ended).addErrback(self._unless_lost)

    def _unless_lost(self, failure: Failure) -> Failure:
        """
        What could not be read because the topic was deleted meanwhile.
        """
        self._check_owned()
        if isinstance(failure.value, OSError):
            reason = f"{self.folder.name} cannot be read: {plain(failure.value)}"
            return Failure(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason))
        return failure

    @property
    def _readable(self) -> End:
        return self._log.end if self.high_watermark == self.log_end else self._safe_end

    def epoch_end(self, leader_epoch: int) -> EpochEnd | None:
        self._check_owned()
        return self._epochs.end(leader_epoch, self.log_end)

    def _epoch_at(self, offset: int) -> int | None:
        """
        Under which epoch the offset was given; `None` where only the batch itself has told that.
        """
        return None if offset in self._looked_through else self._epochs.at(offset)

    def settle(self) -> None:
        """
        Bring the files beside the segments up to date, so that a crash costs little.
        """
        self._beside.settle()
        self.settled, self.settled_offset = True, self.log_end

    def told_settled(self) -> None:
        """
        The checkpoint says how far this is settled.
        """
        self._beside.told()
