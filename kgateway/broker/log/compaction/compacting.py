"""
Compacts one partition of this gateway: asks a helper for the work, and puts what it has written in place.

Before anything takes the place of what was there, all that has decided what goes will outlast the machine: the records
that the helper has read, and the markers behind them. Else a record could go for a later one of its key that is lost
when the power goes, or turns out to be of a transaction without an end.
"""

from collections.abc import Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import count
from typing import Protocol

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.broker.log.compaction.cleaning import Full, Job, Outcome, Rewritten, compact
from kgateway.broker.log.compaction.dirt import Aged, Dirt, dirt
from kgateway.broker.log.compaction.retaining import LastBatch
from kgateway.broker.log.compaction.swapping import Decision, Place, discard, forget, swap
from kgateway.broker.log.disk import Disk
from kgateway.broker.log.found_files import COMPACTED
from kgateway.broker.log.letting_go import age_of
from kgateway.broker.log.partition import LogPartition
from kgateway.broker.log.parts import LogParts, plain
from kgateway.broker.log.segment import Segment, largest_timestamp
from kgateway.broker.log.state_snapshots import state_offsets
from kgateway.broker.log.walking import Damaged
from kgateway.broker.producers import Producer
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.records.batch import HEADER_SIZE, NO_TIMESTAMP, read_header
from kgateway.wire.malformed import Malformed


class Compactor(Protocol):
    """
    Who does the work.
    """

    def compact(self, job: Job) -> Outcome:
        """
        In a thread. An OSError where it cannot be done, or was stopped; Damaged where the log is.
        """

    def rest(self) -> None:
        """
        There is nothing to do for a while. In a thread, too.
        """

    def stop(self) -> None:
        """
        End what runs, and begin nothing any more.
        """


class Overtaken(Exception):
    """
    A segment went meanwhile, as by retention, or the topic did: all stays as it is, and the next round will see.
    """


class OwnThread:
    """
    The thread that asks does the work itself.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def compact(self, job: Job) -> Outcome:
        return compact(job, self._disk)

    def rest(self) -> None:
        """
        Nothing is held for the next job.
        """

    def stop(self) -> None:
        """
        Nothing runs that somebody else began.
        """


class Compacting:
    """
    That of all partitions, one at a time.
    """

    _log = Logger()

    def __init__(self, parts: LogParts, compactor: Compactor) -> None:
        self._parts = parts
        self._compactor = compactor
        self._numbers = count()

    def rest(self) -> Deferred[None]:
        """
        There is nothing to do for a while.
        """
        return self._parts.in_thread(self._compactor.rest)

    async def look(self, partition: LogPartition, cleaned_to: int) -> Dirt:
        """
        What there is to compact. Overtaken where that cannot be told for what went meanwhile.
        """
        log = _full(partition.log.segments)
        first_dirty = cleaned_to if partition.log_start <= cleaned_to <= partition.log_end else partition.log_start
        config = partition.topic.config
        aged = await self._aged(partition, log) if config.has_compaction_lag else [Aged(one, -1, -1) for one in log]
        return dirt(aged, first_dirty, partition.last_stable, config, self._parts.now_ms())

    async def _aged(self, partition: LogPartition, log: list[Full]) -> list[Aged]:
        segments = partition.log.segments[: len(log)]
        if not segments:
            return []
        try:
            return await self._parts.in_thread(partial(_ages, self._parts.files.disk, segments, log))
        except FileNotFoundError:
            if all(map(partition.log.has, segments)):
                raise
            raise Overtaken from None

    async def compact(self, partition: LogPartition, dirt: Dirt) -> int:
        """
        Do it; the offset before which the log is clean now.
        """
        job = self._job(partition, dirt, await self._deletions_stay_from(partition))
        began, decided_by = self._parts.clock.seconds(), partition.log_end
        before = partition.log.segments[: len(job.segments)]
        if [segment.base_offset for segment in before] != [one.base for one in job.segments]:
            raise Overtaken  # since it was looked at
        try:
            outcome = await self._parts.in_thread(partial(self._compactor.compact, job))
            if not partition.lost and partition.synced_offset < decided_by:
                await partition.sync()
            if outcome.rewritten:
                exchange = partial(self._exchange, partition, job, outcome, before)
                await partition.reshaping.run(lambda: Deferred.fromCoroutine(exchange()))
        except (OSError, Damaged, Overtaken) as error:
            await self._discard(partition, job)
            if isinstance(error, FileNotFoundError) and not all(map(partition.log.has, before)):
                raise Overtaken from None
            raise
        self._tell(partition, outcome, self._parts.clock.seconds() - began)
        return outcome.cleaned_to

    async def _deletions_stay_from(self, partition: LogPartition) -> int:
        """
        The state of a coordinator begins with a snapshot, which may know of what was deleted after it.
        """
        if not partition.topic.internal:
            return LONG_MAX
        names = await self._parts.in_thread(partial(self._parts.files.disk.names, partition.folder))
        return min(state_offsets(names), default=LONG_MAX)

    def _job(self, partition: LogPartition, dirt: Dirt, deletions_stay_from: int) -> Job:
        config, now_ms = partition.topic.config, self._parts.now_ms()
        table = partition.producers()
        producers = table.producers
        return Job(
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

    async def _exchange(self, partition: LogPartition, job: Job, outcome: Outcome, before: Sequence[Segment]) -> None:
        if partition.lost or not all(map(partition.log.has, before)):
            raise Overtaken
        disk, folder = self._parts.files.disk, partition.folder
        decision = Decision(job.token, [Place(one.base, one.end) for one in outcome.rewritten])
        await self._parts.in_thread(partial(disk.write, folder / COMPACTED, decision.written(), sync=True))
        for one in outcome.rewritten:
            await self._parts.in_turns(iter([None]))
            if partition.lost:
                raise Overtaken
            self._swap(partition, job.token, one)
        await self._parts.in_thread(partial(forget, disk, folder))

    def _swap(self, partition: LogPartition, token: str, one: Rewritten) -> None:
        """
        On disk and in memory with nobody between.
        """
        files, folder = self._parts.files, partition.folder
        fresh = Segment(files, folder, one.base)
        fresh.take_over(one.size, one.end)
        fresh.checked(0, one.size)
        gone = partition.log.replace(fresh)
        partition.producers().transactions.aborted.replace(one.base, one.end, one.aborted)
        for segment in gone:
            self._parts.loaded.forget(segment)
            files.close(segment.path)
        try:
            renamed = swap(files.disk, folder, files.disk.names(folder), token, Place(one.base, one.end))
        except OSError as error:
            partition.go_offline(f"its compacted segments could not be put in place: {plain(error)}")
            raise
        partition.letting_go.clear(renamed, partition.topic.config.file_delete_delay_ms)

    async def _discard(self, partition: LogPartition, job: Job) -> None:
        """
        Remove what was written in vain, unless it may be needed: then the next opening decides.
        """
        with suppress(OSError):
            await self._parts.in_thread(partial(discard, self._parts.files.disk, partition.folder, job.token))

    def _tell(self, partition: LogPartition, outcome: Outcome, seconds: float) -> None:
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
                "{folder}: the records of {count} batches cannot be read; those batches stay as they are",
                folder=partition.folder.name,
                count=outcome.unreadable,
            )


def _last_batch(producer: Producer) -> LastBatch:
    return LastBatch(producer.epoch, producer.last_offset)


def _full(segments: Sequence[Segment]) -> list[Full]:
    """
    All but the last one, which is written to.
    """
    return [Full(segment.base_offset, segment.next_offset, segment.size) for segment in segments[:-1]]


def _ages(disk: Disk, segments: Sequence[Segment], full: Sequence[Full]) -> list[Aged]:
    return [
        Aged(one, _first_timestamp(disk, segment), age_of(disk, segment).newest_ms)
        for segment, one in zip(segments, full, strict=True)
    ]


def _first_timestamp(disk: Disk, segment: Segment) -> int:
    """
    Of the first batch, which is the oldest where timestamps grow; one without records has none.
    """
    with closing(disk.open(segment.path)) as file:
        try:
            header = read_header(file.read(0, HEADER_SIZE))
        except Malformed:
            return NO_TIMESTAMP
    return largest_timestamp(header) if header.records_count else NO_TIMESTAMP
