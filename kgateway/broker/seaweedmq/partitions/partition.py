"""
A partition whose log is one of SeaweedMQ's.

An appended batch gets its offsets here, is kept among the recent batches, and is published. Consumers read it once the
broker has answered for it; in a topic whose `seaweedmq.acks` is `flushed`, once it is in the files of the filer. It is
kept until it is in files, whatever clients wait for, so that it can be published again when the broker is killed. All
that is not among the recent batches is read from SeaweedMQ's log files.

Messages of other programs are taken over from the files; while consumers wait for them, from the memory of the broker,
and kept among the recent batches until they are in files. Either way a message gets the offset after the one before it
in the log, and the file that it comes into says the same offset.
"""

from collections.abc import Callable, Iterator, Sequence
from math import inf

from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.broker.partition.base import PartitionBase
from kgateway.broker.partition.listeners import OffsetWaiters
from kgateway.broker.partition.retention import RetentionLimits, retention_limits
from kgateway.broker.partition.timestamp_search import find_max_time, find_time
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.protos.filer_pb2 import Entry
from kgateway.broker.seaweedmq.files.deadline_reads import DeadlineReads
from kgateway.broker.seaweedmq.files.partition_files import FilesEnd
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.layout.kafka_errors import with_kafka_errors
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.broker.seaweedmq.partitions.file_retention import FileRetention
from kgateway.broker.seaweedmq.partitions.partition_context import InitialState, PartitionContext
from kgateway.broker.seaweedmq.partitions.publisher import PartitionPublisher
from kgateway.broker.seaweedmq.partitions.shown_messages import ShownMessages
from kgateway.broker.seaweedmq.partitions.time_search import FileTimeSearch
from kgateway.broker.seaweedmq.publishing.flush_tracker import AT_ONCE_S, SOON_S, FlushTracker
from kgateway.broker.seaweedmq.publishing.in_flight import OffsetsShifted, OutgoingBatch, SentBatch
from kgateway.broker.seaweedmq.publishing.publish_stream import encode_publish_request
from kgateway.broker.seaweedmq.publishing.recent_batches import RecentBatches
from kgateway.broker.seaweedmq.tail.tail import BrokerTail, Tail
from kgateway.broker.seaweedmq.tail.tail_pace import TailPace
from kgateway.broker.seaweedmq.tail.tail_position import TailPosition
from kgateway.cluster.partition import Aborted, Appended, EpochEnd, Isolation, Origin, Read, TimestampAndOffset
from kgateway.cluster.view import Topic
from kgateway.interfaces import IPartition
from kgateway.log_messages import NUMBERS_GIVEN_AGAIN, OFFSETS_SHIFTED
from kgateway.records.batch import NO_TIMESTAMP, Batch, batches, placed, read_batch
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed
from kgateway.wire.types import Buffer

_MS, _BYTES = "retention.ms", "retention.bytes"
_NO_LIMIT = -1
_MILLISECOND_NS = 1_000_000


@implementer(IPartition)
class SeaweedMQPartition(PartitionBase):
    """
    A partition that this gateway alone appends to.
    """

    _log = Logger()

    def __init__(
        self,
        topic: Topic,
        index: int,
        now_ms: Callable[[], int],
        initial: InitialState,
        context: PartitionContext,
        recent: RecentBatches,
        unflushed_max: Callable[[], int],
        window: Callable[[], int],
        tail_pace: TailPace,
    ) -> None:
        super().__init__(topic, index, now_ms, initial.producers)
        self.log_start, self.log_end = initial.log_start, initial.end.offset
        self._end_when_opened = self.log_end
        self._gap_when_opened = initial.end.gap
        self._epochs = initial.epochs
        self._format = context.format
        self._context = context
        self._is_removed = context.is_removed
        self._ledger = context.ledger
        self._recent = recent
        self._unflushed_max = unflushed_max  # bytes that may wait to be in files
        self._stored = self.log_end  # before which all is in the broker's memory
        self._flushed = self.log_end  # before which all is in files
        self._shown = self.log_start  # before which all could be read, whatever the topic waits for now
        self._unstored, self._uncommitted = OffsetWaiters(), OffsetWaiters()
        files, clock = context.files, context.clock
        self._file_reads = DeadlineReads(files.read, clock, self._listeners.wake)
        self._file_retention = FileRetention(files, context.format, context.seaweed, context.check_lease)
        self._raising_log_start = DeferredLock()
        self._publisher = PartitionPublisher(
            context, initial.end, self._outgoing_from, window, self._progressed, self._lose_shifted
        )
        self._flush_tracker = FlushTracker(
            files, initial.log_start, clock, self._flushed_to, self._files_end, self._is_flushed, self._patience_s
        )
        self._others = ShownMessages(initial.end)
        files.lead(context.check_lease, lambda: self._others.end, self._note_loss)
        broker_tail = BrokerTail(context.rpc, context.topic, context.assignment, clock)
        self._tail = Tail(
            broker_tail,
            self._name,
            tail_pace,
            clock,
            self._tail_position,
            self._show_others,
            self._is_awaited,
            self._broker_lost,
        )

    @property
    def high_watermark(self) -> int:
        return max(self._flushed, self._shown) if self._waits_for_files else self._stored

    @property
    def last_stable(self) -> int:
        return self.high_watermark  # there are no transactions

    @property
    def size(self) -> int:
        """
        Bytes of the files as they were listed last, which are those of SeaweedMQ's messages.
        """
        return sum(file.size for file in self._context.files.listed)

    @property
    def has_grown(self) -> bool:
        return self.log_end > self._end_when_opened

    @property
    def unflushed_count(self) -> int:
        """
        Records that are not known to be in files.
        """
        return self.log_end - self._flushed

    @property
    def _waits_for_files(self) -> bool:
        return self.topic.config.seaweedmq_acks == "flushed"

    def set_topic(self, topic: Topic) -> None:
        """
        Take another config of the topic, or more partitions. What could be read still can.
        """
        before = self._shown = self.high_watermark
        super().set_topic(topic)
        self._report_progress(before)

    def append(self, batch: Batch, origin: Origin, client_id: str | None = None) -> Appended:
        # Without the lease another gateway may know better what is repeated, and what was left out.
        self._context.check_lease()
        if self._is_removed:
            raise self._removed()
        self._publisher.client_id = client_id
        return super().append(batch, origin)

    def read(
        self, offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool, due: float = inf
    ) -> Read | Deferred[Read]:
        self._check_led()
        self._check_offset(offset)
        stop = self.high_watermark
        if self._may_follow and offset >= stop - (0 if self.has_grown else self._gap_when_opened):
            self._tail.want()
        if offset >= stop:
            return self._read([], isolation)
        files_stop = self._recent.start
        if offset >= files_stop:
            try:
                return self._read(self._recent.read(offset, max_bytes, at_least_one, stop), isolation)
            except KafkaError:
                if offset >= self._flushed:
                    raise
            files_stop = self._flushed
        found = self._file_reads.read(offset, max_bytes, at_least_one, min(stop, files_stop), due)
        if isinstance(found, Deferred):
            return found.addCallbacks(self._read, self._unreadable, (isolation,))
        return self._read(found, isolation)

    def find_time(self, timestamp: int) -> Deferred[TimestampAndOffset | None]:
        unflushed, files = self._to_search()

        async def find() -> TimestampAndOffset | None:
            found = await files.first(timestamp) if files else None
            return found or find_time(unflushed, timestamp, self.log_start)

        return Deferred.fromCoroutine(find()).addErrback(self._unreadable)

    def find_max_time(self) -> Deferred[TimestampAndOffset | None]:
        unflushed, files = self._to_search()

        async def find() -> TimestampAndOffset | None:
            found = find_max_time(unflushed, self.log_start)
            return await files.largest(found) if files else found

        return Deferred.fromCoroutine(find()).addErrback(self._unreadable)

    def epoch_end(self, leader_epoch: int) -> EpochEnd | None:
        self._check_led()
        return self._epochs.end(leader_epoch, self.log_end)

    def expire(self) -> Deferred[None]:
        return Deferred.fromCoroutine(with_kafka_errors(self._expire()))

    def file_grown(self, entry: Entry) -> None:
        """
        Note what the entry of a log file says of it after a flush.
        """
        self._flush_tracker.file_grown(entry)

    def look_again(self) -> None:
        """
        Look at the files: they may have grown while the filer's feed was broken.
        """
        self._flush_tracker.look_again()

    async def follow_others(self) -> None:
        """
        Show what the broker has in memory of others.
        """
        if self._may_follow:
            await self._tail.catch_up()

    async def pause(self) -> int:
        """
        Publish nothing for now; the offset at which the files end then.
        """
        return self.log_end if self._is_removed else (await self._publisher.pause()).offset

    def move(self, folders: Sequence[PartitionFolder], *, is_removed: bool) -> None:
        """
        Continue in the last of these folders: SeaweedMQ has recreated the partition.
        """
        self._is_removed = is_removed
        self._context.files.folders = list(folders)
        self._others.moved()
        self._tail.moved()
        self._ledger.partition_moved()
        self._publisher.resume()

    async def save(self) -> None:
        """
        Write the producer state and the ledger, which the log files do not tell cheaply.
        """
        if self.has_grown:
            await self._context.side_files.store_producers(self._producers, self._stored)
        await self._ledger.save()

    def lose(self, why: KafkaError) -> None:
        super().lose(why)
        self._publisher.close()
        self._tail.stop()
        self._flush_tracker.stop()
        self._ledger.close()
        self._unstored.fail(why)
        self._uncommitted.fail(why)
        self._recent.begin_at(self.log_end)

    def _write(self, batch: Batch) -> None:
        self._format.check(self.topic.config)
        if (waiting := self._recent.unflushed) > self._unflushed_max():
            reason = f"{waiting} bytes of {self.topic.name}-{self.index} are waiting for SeaweedMQ; try again"
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, reason)
        base_offset = self.log_end
        data = b"".join(placed(batch, base_offset, self.leader_epoch))
        outgoing = self._outgoing(read_batch(data))
        self._recent.add(data, base_offset, outgoing.end)
        self.log_end = outgoing.end
        self._publisher.publish(outgoing)
        self._flush_tracker.published()

    def _after_write(self) -> None:
        pass  # nobody can read the batch yet

    def _when_stored(self, offset: int) -> Deferred[None] | None:
        return None if offset <= self._stored else self._unstored.wait(offset)

    def _when_committed(self, offset: int) -> Deferred[None] | None:
        return None if offset <= self.high_watermark else self._uncommitted.wait(offset)

    def _outgoing(self, batch: Batch) -> OutgoingBatch:
        header = batch.header
        encoded = self._format.encode(batch, header.base_offset, self.index)
        messages = [encode_publish_request(key, value) for key, value in encoded]
        return OutgoingBatch(header.base_offset, header.last_offset + 1, messages, self._now_ms(), header.max_timestamp)

    def _outgoing_from(self, offset: int) -> Iterator[OutgoingBatch]:
        """
        Appended batches from this offset on, which may be amid a batch.
        """
        for data in self._recent.each_from(offset):
            outgoing = self._outgoing(read_batch(data))
            published = max(offset - outgoing.base_offset, 0) if len(outgoing.messages) > 1 else 0
            yield outgoing._replace(messages=outgoing.messages[published:])

    def _progressed(self) -> None:
        """
        Note which messages were acknowledged or flushed, and wake who waits for them.
        """
        before, in_flight = self.high_watermark, self._publisher.in_flight
        self._stored = max(self._stored, in_flight.acked)
        if in_flight.flushed > self._flushed:
            self._flushed = in_flight.flushed
            self._recent.flushed_to(self._flushed)
            self._ledger.grown()
        self._unstored.reached(self._stored)
        self._report_progress(before)

    def _report_progress(self, before: int) -> None:
        self._uncommitted.reached(self.high_watermark)
        if self.high_watermark > before:
            self._listeners.wake()

    def _flushed_to(self, next_message: int) -> None:
        in_flight = self._publisher.in_flight
        if self._has_shown_others:  # the number may be that of another message by now
            return
        if in_flight.in_files(next_message):
            self._progressed()
        if in_flight.is_empty and next_message > in_flight.next_message:
            self._follow()

    def _files_end(self, end: FilesEnd) -> None:
        """
        Note where the files end: Kafka's offset there shows which of our batches they have, however brokers count.
        """
        in_flight, known = self._publisher.in_flight, self._tail_position()
        if self._has_shown_others and (known is None or known.ts_ns is None or end.ts_ns > known.ts_ns):
            self._follow()
            return
        if in_flight.in_files_to(end.offset):
            self._progressed()
        if self._has_shown_others:
            self._tail.check(in_flight.next_message)
        if end.next_message == in_flight.next_message and not end.gap:
            self._others.follow(end)
        if in_flight.is_empty and (end.offset > self.log_end or end.next_message > in_flight.next_message):
            self._follow()

    def _follow(self) -> None:
        Deferred.fromCoroutine(self._take_over_files()).addErrback(self._not_followed)

    async def _take_over_files(self) -> None:
        """
        Take over what others have published, as far as it is in files. Messages without an offset of Kafka's move the
        offset of SeaweedMQ that is published next, too.
        """
        files = self._context.files
        await files.refresh()
        end = await files.end(self.log_start)
        if self.lost or end.offset < self.log_end or not self._publisher.follow(end, is_lost=self._others.has_lost):
            return
        self._others.take_over(end)
        has_grown, before = end.offset > self.log_end, self.high_watermark
        self.log_end = self._stored = self._flushed = end.offset
        if has_grown:
            self._recent.begin_at(end.offset)
            self._ledger.catch_up()
        else:
            self._recent.flushed_to(end.offset)
            self._ledger.grown()
        self._report_progress(before)

    def _removed(self) -> KafkaError:
        """
        The error for producers. Trying again helps them only if the topic is about to get the partition back.
        """
        code = ErrorCode.POLICY_VIOLATION if self._context.is_foreign else ErrorCode.NOT_LEADER_OR_FOLLOWER
        return KafkaError(code, f"another program has removed {self._name}, which can only be read now")

    def _note_loss(self, offset: int) -> None:
        """
        Note that consumers have got messages of others that a killed broker has lost.
        """
        if self._others.lose():
            self._log.warn(NUMBERS_GIVEN_AGAIN, name=self._name, offset=offset)

    def _broker_lost(self) -> None:
        """
        Store where consumers are, because the broker does not answer that has the last records in memory: if it is
        killed, another gateway must not give their offsets again.
        """
        if self._has_shown_others:
            storing = self._context.side_files.store_shown_end(self._others.end)
            Deferred.fromCoroutine(storing).addErrback(self._shown_not_stored)

    def _shown_not_stored(self, failure: Failure) -> None:
        reason = failure.getErrorMessage()
        self._log.info("cannot store the end of {name}: {reason}", name=self._name, reason=reason)

    @property
    def _may_follow(self) -> bool:
        return not (self._format.batched or self._waits_for_files or self._is_removed)

    @property
    def _has_shown_others(self) -> bool:
        """
        Whether the only messages that are not known to be in files are of others.
        """
        in_flight = self._publisher.in_flight
        return not (in_flight.is_empty or in_flight.has_own)

    def _is_awaited(self) -> bool:
        return self._may_follow and bool(self._listeners)

    def _tail_position(self) -> TailPosition | None:
        """
        The position after the last message that can be read; none while ours are on their way, or too much is in no
        file.
        """
        in_flight = self._publisher.in_flight
        if self.lost or not self._publisher.is_answered or self._recent.unflushed > self._unflushed_max():
            return None
        return self._others.position(in_flight.next_message)

    async def _show_others(self, found: Sequence[LoggedMessage]) -> None:
        """
        Show messages that the broker has in memory after the last one.
        """
        files, first, last = self._context.files, found[0], found[-1]
        if not self._is_next(first):
            return  # it is ours, or ours have come in the meantime
        shift = self.log_end - first.offset
        if files.shift_at(first.ts_ns) != shift:
            await files.add_shift_at(first.ts_ns, shift, self._context.check_lease)
            if not self._is_next(first) or self.log_end - first.offset != shift:
                return
        self._context.check_lease()
        base_offset, before, max_timestamp = self.log_end, self.high_watermark, NO_TIMESTAMP
        decoded = self._format.decode(found, shift, base_offset, files.report)
        for batch in (each for buffer in decoded for each in batches(buffer)):
            header = batch.header
            self.log_end = header.last_offset + 1
            self._recent.add(bytes(batch.data), header.base_offset, self.log_end)
            max_timestamp = max(max_timestamp, header.max_timestamp)
        self._others.show(base_offset, self.log_end, found, self._flushed)
        time_ms = first.ts_ns // _MILLISECOND_NS
        others = SentBatch(base_offset, self.log_end, last.offset, len(found), time_ms, max_timestamp)
        self._publisher.in_flight.follow(others)
        self._stored = self.log_end
        self._report_progress(before)
        self._flush_tracker.published()

    def _is_next(self, message: LoggedMessage) -> bool:
        position = self._tail_position()
        return position is not None and position.next_message == message.offset

    def _not_followed(self, failure: Failure) -> None:
        reason = failure.getErrorMessage()
        self._log.info(
            "cannot read the messages of other programs in {topic}: {reason}", topic=self.topic.name, reason=reason
        )

    def _is_flushed(self) -> bool:
        return self._flushed >= self.log_end or self.lost is not None

    def _patience_s(self) -> float:
        return AT_ONCE_S if self._waits_for_files else SOON_S

    def _lose_shifted(self, error: OffsetsShifted) -> None:
        """
        Give the partition up, to be opened again: the offsets in the log are not those that clients got.
        """
        named = {"partition": f"{self.topic.name}-{self.index}", "error": error}
        self._log.error(OFFSETS_SHIFTED, **named)
        self.lose(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, OFFSETS_SHIFTED.format(**named)))

    async def _expire(self) -> None:
        """
        Delete expired log files; a file is deleted as a whole.
        """
        self._check_led()
        limits, start = self._retention(), self.log_start
        if not limits.are_none:
            start = await self._file_retention.kept_from(start, self.high_watermark, limits, self._now_ms())
        if start > self.log_start:
            await self._raise_log_start(start)
        elif await self._file_retention.are_before(start):  # they could not be deleted before
            await self._file_retention.delete_before(start)

    def _retention(self) -> RetentionLimits:
        """
        How old and large the log may become. For a topic that others have made only its own configs count: what they
        have kept so far is not for a default of Kafka's to delete.
        """
        limits, config = retention_limits(self.topic), self.topic.config.overrides
        if not self._context.is_foreign:
            return limits
        return RetentionLimits(
            limits.ms if _MS in config else _NO_LIMIT, limits.bytes if _BYTES in config else _NO_LIMIT
        )

    async def _raise_log_start(self, offset: int) -> None:
        raised = self._raising_log_start.run(lambda: Deferred.fromCoroutine(self._raise_locked(offset)))
        await with_kafka_errors(raised)

    async def _raise_locked(self, offset: int) -> None:
        if offset <= self.log_start:  # by now
            return
        self._context.check_lease()
        await self._context.side_files.store_log_start(offset)
        self._check_led()
        self.log_start = offset
        self._ledger.begin_at(offset)
        self._listeners.wake()
        self._file_retention.delete_before(offset).addErrback(self._not_deleted)

    def _not_deleted(self, failure: Failure) -> None:
        reason = failure.getErrorMessage()
        self._log.info("old files of {topic} will be deleted later: {reason}", topic=self.topic.name, reason=reason)

    def _read(self, found: list[Buffer], isolation: Isolation) -> Read:
        self._check_led()
        aborted: list[Aborted] | None = [] if isolation is Isolation.READ_COMMITTED else None
        return Read(found, sum(map(len, found)), self.high_watermark, self.last_stable, self.log_start, aborted)

    def _to_search(self) -> tuple[Iterator[Batch], FileTimeSearch | None]:
        """
        The batches that can be read and are in no file, and the search in files, if there are older ones.
        """
        self._check_led()
        unflushed = (batch for data in self._recent.all_from(self._flushed) for batch in batches(data))
        stop, start, context = self.high_watermark, self._flushed, self._context
        readable = (batch for batch in unflushed if batch.header.base_offset < stop)
        if start <= self.log_start:
            return readable, None
        ledger = self._ledger.ledger
        return readable, FileTimeSearch(context.files, self._format, ledger, self.log_start, min(start, stop))

    def _unreadable(self, failure: Failure) -> Failure:
        self._check_led()
        if isinstance(failure.value, RpcError | OSError):
            reason = f"{self.topic.name}-{self.index} cannot be read from the filer: {failure.value}"
            return Failure(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason))
        if isinstance(failure.value, Malformed):
            reason = f"{self.topic.name}-{self.index} has a damaged log file: {failure.value}"
            return Failure(KafkaError(ErrorCode.CORRUPT_MESSAGE, reason))
        return failure
