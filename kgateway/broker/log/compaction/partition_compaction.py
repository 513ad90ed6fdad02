"""
Compacts one partition: decides what is dirty, has the helper rewrite it, and swaps the result in.

By Kafka's rules a log is clean up to some offset, and dirty after it. The active segment is left as it is, and so are
all from the first on that has records younger than `min.compaction.lag.ms`. The rest is compacted when more of it is
dirty than `min.cleanable.dirty.ratio`, or when it has been dirty for longer than `max.compaction.lag.ms`.

Before a rewritten segment replaces others, everything that decided what is removed is synced: the records that the
helper has read, and the markers after them. Otherwise a record could be removed because of a later one of its key that
is lost when the power fails, or turns out to belong to a transaction without an end.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Protocol

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.broker.log.compaction.compaction_round import (
    CompactionJob,
    CompactionOutcome,
    FullSegment,
    RewrittenSegment,
    compact,
)
from kgateway.broker.log.compaction.record_filter import LastBatch
from kgateway.broker.log.data_folder.state_snapshots import state_offsets
from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.partition.partition import LogPartition
from kgateway.broker.log.partition.segment_deletion import read_piece
from kgateway.broker.log.runtime import LogRuntime, describe_error
from kgateway.broker.log.segments.batch_scan import Damaged
from kgateway.broker.log.segments.file_names import COMPACTED
from kgateway.broker.log.segments.segment import Segment, largest_timestamp
from kgateway.broker.log.segments.segment_swap import (
    Decision,
    OffsetRange,
    discard_rewritten,
    remove_decision,
    swap_segment,
)
from kgateway.broker.partition.producer_state import Producer
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.log_messages import BATCHES_NOT_COMPACTED
from kgateway.plurals import counted
from kgateway.records.batch import HEADER_SIZE, NO_TIMESTAMP, read_header
from kgateway.wire.errors import Malformed


@dataclass(frozen=True, slots=True)
class AgedSegment:
    """
    A full segment, the timestamp of its first batch, -1 if it has none, and that of its newest record.
    """

    full: FullSegment
    first_timestamp: int
    newest_ms: int


@dataclass(frozen=True, slots=True)
class DirtyPart:
    """
    What can be compacted of a log: its segments from the first on.
    """

    segments: Sequence[FullSegment]
    first_dirty: int
    is_due: bool  # whatever its ratio

    @property
    def end(self) -> int:
        return self.segments[-1].end if self.segments else self.first_dirty

    @property
    def ratio(self) -> float:
        dirty = sum(segment.size for segment in self.segments if segment.end > self.first_dirty)
        return dirty / max(sum(segment.size for segment in self.segments), 1)

    def is_worth_it(self, config: TopicConfig) -> bool:
        return self.end > self.first_dirty and (self.is_due or self.ratio > config.min_cleanable_dirty_ratio)


def dirt(log: Sequence[AgedSegment], first_dirty: int, stable: int, config: TopicConfig, now_ms: int) -> DirtyPart:
    """
    The dirty part of a log with these full segments; nothing after the stable offset may be touched.
    """
    segments = list(_cleanable(log, first_dirty, stable, config, now_ms))
    began = [one.first_timestamp for one in segments if one.full.end > first_dirty]
    oldest = min((timestamp for timestamp in began if timestamp > NO_TIMESTAMP), default=now_ms)
    is_due = oldest < now_ms - config.max_compaction_lag_ms
    return DirtyPart([one.full for one in segments], first_dirty, is_due)


def _cleanable(
    log: Sequence[AgedSegment], first_dirty: int, stable: int, config: TopicConfig, now_ms: int
) -> Iterator[AgedSegment]:
    for one in log:
        is_young = config.min_compaction_lag_ms and one.newest_ms > now_ms - config.min_compaction_lag_ms
        if one.full.end > stable or (is_young and one.full.end > first_dirty):
            return
        yield one


class Compactor(Protocol):
    def compact(self, job: CompactionJob) -> CompactionOutcome:
        """
        Compact in a thread. Raises OSError if that cannot be done or was stopped, Damaged if the log is damaged.
        """

    def rest(self) -> None:
        """
        There is nothing to do for a while; called in a thread.
        """

    def stop(self) -> None: ...


class Overtaken(Exception):
    """
    A segment or the topic was deleted meanwhile: everything is left as it is until the next round.
    """


class InThreadCompactor:
    """
    Does the work in the thread that asks for it.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def compact(self, job: CompactionJob) -> CompactionOutcome:
        return compact(job, self._disk)

    def rest(self) -> None:
        pass

    def stop(self) -> None:
        pass


class PartitionCompaction:
    _log = Logger()

    def __init__(self, runtime: LogRuntime, compactor: Compactor) -> None:
        self._runtime = runtime
        self._compactor = compactor
        self._numbers = count()

    def rest(self) -> Deferred[None]:
        return self._runtime.in_thread(self._compactor.rest)

    async def look(self, partition: LogPartition, cleaned_to: int) -> DirtyPart:
        """
        The part that can be compacted. Raises Overtaken if segments were deleted meanwhile.
        """
        log = _full(partition.segment_list.segments)
        first_dirty = cleaned_to if partition.log_start <= cleaned_to <= partition.log_end else partition.log_start
        config = partition.topic.config
        aged = (
            await self._aged(partition, log) if config.has_compaction_lag else [AgedSegment(one, -1, -1) for one in log]
        )
        return dirt(aged, first_dirty, partition.last_stable, config, self._runtime.now_ms())

    async def _aged(self, partition: LogPartition, log: list[FullSegment]) -> list[AgedSegment]:
        segments = partition.segment_list.segments[: len(log)]
        if not segments:
            return []
        try:
            return await self._runtime.in_thread(partial(_ages, self._runtime.files.disk, segments, log))
        except FileNotFoundError:
            if all(map(partition.segment_list.has, segments)):
                raise
            raise Overtaken from None

    async def compact(self, partition: LogPartition, dirt: DirtyPart) -> int:
        """
        Compact a partition. Returns the offset before which it is clean now.
        """
        job = self._job(partition, dirt, await self._deletions_stay_from(partition))
        began, decided_by = self._runtime.clock.seconds(), partition.log_end
        before = partition.segment_list.segments[: len(job.segments)]
        if [segment.base_offset for segment in before] != [one.base for one in job.segments]:
            raise Overtaken  # by a change since it was looked at
        try:
            outcome = await self._runtime.in_thread(partial(self._compactor.compact, job))
            if not partition.lost and partition.synced_offset < decided_by:
                await partition.sync()
            if outcome.rewritten:
                exchange = partial(self._exchange, partition, job, outcome, before)
                await partition.segments_lock.run(lambda: Deferred.fromCoroutine(exchange()))
        except (OSError, Damaged, Overtaken) as error:
            await self._discard(partition, job)
            if isinstance(error, FileNotFoundError) and not all(map(partition.segment_list.has, before)):
                raise Overtaken from None
            raise
        self._log_outcome(partition, outcome, self._runtime.clock.seconds() - began)
        return outcome.cleaned_to

    async def _deletions_stay_from(self, partition: LogPartition) -> int:
        """
        The offset from which tombstones are kept: the state of a coordinator begins with a snapshot, which may have
        keys that were deleted after it.
        """
        if not partition.topic.internal:
            return LONG_MAX
        names = await self._runtime.in_thread(partial(self._runtime.files.disk.names, partition.folder))
        return min(state_offsets(names), default=LONG_MAX)

    def _job(self, partition: LogPartition, dirt: DirtyPart, deletions_stay_from: int) -> CompactionJob:
        config, now_ms = partition.topic.config, self._runtime.now_ms()
        table = partition.producers()
        producers = table.producers
        return CompactionJob(
            folder=str(partition.folder),
            token=f"{now_ms}-{next(self._numbers)}",
            segments=list(dirt.segments),
            first_dirty=dirt.first_dirty,
            log_start=partition.log_start,
            now_ms=now_ms,
            delete_retention_ms=config.delete_retention_ms,
            deletions_stay_from=deletions_stay_from,
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            last_batches={key: _last_batch(one) for key, one in producers.items()},
            aborted=table.transactions.aborted.reaching(partition.log_start, dirt.end),
        )

    async def _exchange(
        self, partition: LogPartition, job: CompactionJob, outcome: CompactionOutcome, before: Sequence[Segment]
    ) -> None:
        if partition.lost or not all(map(partition.segment_list.has, before)):
            raise Overtaken
        disk, folder = self._runtime.files.disk, partition.folder
        decision = Decision(job.token, [OffsetRange(one.base, one.end) for one in outcome.rewritten])
        await self._runtime.in_thread(partial(disk.write, folder / COMPACTED, decision.encoded(), sync=True))
        for one in outcome.rewritten:
            await self._runtime.in_turns(iter([None]))
            if partition.lost:
                raise Overtaken
            self._swap(partition, job.token, one)
        await self._runtime.in_thread(partial(remove_decision, disk, folder))

    def _swap(self, partition: LogPartition, token: str, one: RewrittenSegment) -> None:
        files, folder = self._runtime.files, partition.folder
        fresh = Segment(files, folder, one.base)
        fresh.trust_files(one.size, one.end)
        fresh.checked(0, one.size)
        gone = partition.segment_list.replace(fresh)
        partition.producers().transactions.aborted.replace(one.base, one.end, one.aborted)
        for segment in gone:
            self._runtime.loaded.forget(segment)
            files.close(segment.path)
        try:
            renamed = swap_segment(files.disk, folder, files.disk.names(folder), token, OffsetRange(one.base, one.end))
        except OSError as error:
            partition.go_offline(f"its compacted segments could not be put in place: {describe_error(error)}")
            raise
        partition.deletion.clear(renamed, partition.topic.config.file_delete_delay_ms)

    async def _discard(self, partition: LogPartition, job: CompactionJob) -> None:
        """
        Remove the files that were written in vain, unless they may be needed: then the next start decides.
        """
        with suppress(OSError):
            await self._runtime.in_thread(
                partial(discard_rewritten, self._runtime.files.disk, partition.folder, job.token)
            )

    def _log_outcome(self, partition: LogPartition, outcome: CompactionOutcome, seconds: float) -> None:
        self._log.info(
            "{folder} is compacted up to offset {end}: {kept} of {seen} records stay, {keys} new keys, {seconds} s",
            folder=partition.folder.name,
            end=outcome.cleaned_to,
            kept=outcome.records_kept,
            seen=outcome.records_seen,
            keys=outcome.keys,
            seconds=round(seconds, 1),
        )
        if outcome.unreadable:
            self._log.warn(
                BATCHES_NOT_COMPACTED,
                folder=partition.folder.name,
                batches=counted(outcome.unreadable, "batch", "batches"),
            )


def _last_batch(producer: Producer) -> LastBatch:
    return LastBatch(producer.epoch, producer.last_offset)


def _full(segments: Sequence[Segment]) -> list[FullSegment]:
    return [FullSegment(segment.base_offset, segment.next_offset, segment.size) for segment in segments[:-1]]


def _ages(disk: Disk, segments: Sequence[Segment], full: Sequence[FullSegment]) -> list[AgedSegment]:
    return [
        AgedSegment(one, _first_timestamp(disk, segment), read_piece(disk, segment).newest_ms)
        for segment, one in zip(segments, full, strict=True)
    ]


def _first_timestamp(disk: Disk, segment: Segment) -> int:
    """
    The timestamp of the first batch, the oldest if timestamps grow; a batch without records has none.
    """
    with closing(disk.open(segment.path)) as file:
        try:
            header = read_header(file.read(0, HEADER_SIZE))
        except Malformed:
            return NO_TIMESTAMP
    return largest_timestamp(header) if header.records_count else NO_TIMESTAMP
