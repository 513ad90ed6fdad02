"""
Keeps the ledger of a partition in step with its log files, and never ahead of them.

What this gateway has published becomes rows as soon as it is in files; no file is read for that. The rest is read from
the files, in turns with other work: what others have published, what was flushed while no gateway ran, and everything
if the saved ledger is missing or wrong.

The ledger is saved some time after it has changed, as a whole. Nothing waits for that, because the log files have
everything that is in it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import sub

from twisted.internet.defer import CancelledError, Deferred, DeferredLock
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.partition.leader_epochs import LeaderEpochs
from kgateway.broker.seaweedmq.files.partition_files import FilesEnd, PartitionFiles
from kgateway.broker.seaweedmq.formats.format import MessageFormat, SkippedMessage
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.layout.kafka_errors import CLUSTER_ERRORS
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.broker.seaweedmq.ledger.ledger import LATEST, RUN_MESSAGES, Ledger, Mapping
from kgateway.broker.seaweedmq.ledger.snapshot import Snapshot, UnusableLedger, saved_bytes
from kgateway.broker.seaweedmq.partitions.side_files import FilerSideFiles
from kgateway.broker.seaweedmq.publishing.in_flight import SentBatch
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.log_messages import LEDGER_UNUSABLE
from kgateway.topic_partition import PartitionId
from kgateway.wire.errors import KafkaError

_MILLISECOND_NS = 1_000_000
_SECOND_MS = 1000


def first_offset(sent: SentBatch, batched: bool) -> int:
    """
    Kafka's offset of the first record that was published.
    """
    return sent.base_offset if batched else sent.end - sent.message_count


def add_rows(ledger: Ledger, found: Sequence[SentBatch]) -> None:
    """
    Add consecutive batches in one call; the first may be in the ledger in part.
    """
    if ledger.batched:
        bases, ends, last_messages, _, times_ms, max_timestamps = zip(*found, strict=True)
        times = [time_ms * _MILLISECOND_NS for time_ms in times_ms]
        ledger.append_batches(bases, last_messages, times, map(sub, ends, bases), max_timestamps)
        return
    head = found[0]
    head = head._replace(message_count=min(head.message_count, head.end - ledger.end))
    for _, end, last_message, count, time_ms, max_timestamp in _merged((head, *found[1:])):
        ledger.append(end - count, last_message + 1 - count, time_ms * _MILLISECOND_NS, count, max_timestamp)


def _merged(found: Iterable[SentBatch]) -> Iterator[SentBatch]:
    """
    Merge batches of one second, because a row has no more detail.
    """
    last: SentBatch | None = None
    for sent in found:
        _, end, last_message, count, time_ms, max_timestamp = sent
        if (
            last
            and last_message - count == last.last_message
            and end - count == last.end
            and last.message_count < RUN_MESSAGES
            and time_ms - last.time_ms < _SECOND_MS
        ):
            largest = max(last.max_timestamp, max_timestamp)
            last = SentBatch(last.base_offset, end, last_message, last.message_count + count, last.time_ms, largest)
            continue
        if last:
            yield last
        last = sent
    if last:
        yield last


def empty_ledger(files: PartitionFiles, message_format: MessageFormat) -> Ledger:
    oldest = files.folders[0]
    return Ledger(message_format.batched, oldest.unix_time_ns, oldest.part)


def check(
    ledger: Ledger, message_format: MessageFormat, folders: Sequence[PartitionFolder], start: int, end: int
) -> None:
    """
    Raise UnusableLedger if it cannot be the ledger of a log with this start and end, in these folders.
    """
    begin = ledger.rows.kafka[0] if ledger.rows else ledger.start
    if ledger.batched != message_format.batched:
        raise UnusableLedger("its rows are of another format")
    if ledger.end > end:
        raise UnusableLedger(f"it ends with offset {ledger.end - 1}, but the log ends with {end - 1}")
    if max(begin, ledger.start) > start:
        raise UnusableLedger(f"it begins with offset {max(begin, ledger.start)}, but the log begins with {start}")
    there = [(folder.unix_time_ns, folder.part) for folder in folders]
    if any(section[1:] not in there for section in ledger.sections):
        raise UnusableLedger("it has partitions that the topic never had")


async def follow(
    ledger: Ledger, files: PartitionFiles, message_format: MessageFormat, changed: Callable[[], None] = lambda: None
) -> None:
    """
    Add what the files, as they were listed last, have after the last row; raises UnusableLedger if they do not agree
    with that row. `changed` is called after each step.
    """
    last = ledger.at(LATEST)
    async for folder, piece in files.messages(last.batch_offset if last else ledger.start):
        if last and _agrees(last, message_format, folder, piece):
            last = None
        # The first row may begin before the start, because a message may.
        found = list(message_format.walk(piece, folder.shift, ledger.end if ledger.rows else EARLIEST_OFFSET, _skip))
        if found:
            ledger.begin(folder.unix_time_ns, folder.part)
            ledger.extend(found)
            ledger.drop_before(ledger.start)
            changed()
    if last:
        raise UnusableLedger(f"it has offset {last.offset}, but the log does not")


def _agrees(last: Mapping, message_format: MessageFormat, folder: PartitionFolder, piece: list[LoggedMessage]) -> bool:
    """
    Whether the messages contain the ledger's last one; raises UnusableLedger if another is in its place.
    """
    offset, message_offset = last.batch_offset, last.message_offset
    for placed in message_format.walk(piece, folder.shift, offset, _skip):
        if (placed.offset, placed.message_offset) != (offset, message_offset):
            found = f"offset {placed.offset} in message {placed.message_offset}"
            raise UnusableLedger(f"it has offset {offset} in message {message_offset}, but the log has {found}")
        return True
    return False


def _skip(left_out: SkippedMessage) -> None:
    """
    A message that nobody can read has no row.
    """


_SAVED_BYTES_PER_S = 1 << 18  # on average, however large a ledger is
_ROWS_AT_ONCE = 500
_WAITING_MAX = 10_000  # batches that wait until files are read
_AGAIN_S, _AGAIN_MAX_S = 5.0, 600.0  # after the first failure, and after many


class PartitionLedger:
    _log = Logger()

    def __init__(
        self,
        owner: PartitionId,
        name: str,
        epoch: int,
        files: PartitionFiles,
        message_format: MessageFormat,
        side_files: FilerSideFiles,
        clock: IReactorTime,
        interval_s: float,
    ) -> None:
        self.ledger = empty_ledger(files, message_format)
        self._owner = owner
        self._name = name
        self._epoch = self._saved_epoch = epoch
        self._files = files
        self._format = message_format
        self._side_files = side_files
        self._clock = clock
        self._interval_s = interval_s  # from a change until the ledger is saved
        self._waiting: deque[SentBatch] = deque()
        # Called with each batch of ours that is in files; no method, to save a call for each.
        self.add_flushed: Callable[[SentBatch], object] = self._waiting.append
        self._taking: IDelayedCall | None = None
        self._reading: Deferred[None] | None = None
        self._read_on = False  # read once more when it is done
        self._gap_at = -1  # where noted batches were not consecutive, before files were read again
        self._retries: IDelayedCall | None = None
        self._delay_s = _AGAIN_S
        self._is_changed = False  # since it was saved
        self._save_later: IDelayedCall | None = None
        self._saving: Deferred[None] | None = None
        self._one_save = DeferredLock()
        self._closed = False

    async def load(self) -> None:
        """
        Read the saved ledger. If it cannot be read, nothing is lost: the log files have everything that is in it.
        """
        try:
            found = await self._side_files.ledger(self._owner)
        except (UnusableLedger, *CLUSTER_ERRORS) as error:
            self._log.warn(LEDGER_UNUSABLE, name=self._name, why=error)
        else:
            self.ledger, self._saved_epoch = found or (self.ledger, self._epoch)
            self._files.ledger = self.ledger

    def open(self, start: int, end: FilesEnd, epochs: LeaderEpochs) -> None:
        """
        Continue the saved ledger, if it agrees with the log.
        """
        self._files.ledger, in_files = self.ledger, end.offset - end.gap
        try:
            check(self.ledger, self._format, self._files.folders, start, in_files)
            self._check_epoch(epochs, in_files)
        except UnusableLedger as error:
            self._begin_again(error)
        self.ledger.drop_before(start)
        if self.ledger.end < in_files or not self._is_at(end):
            self._log.info(
                "{name}: its ledger ends before offset {end}, the log files before {in_files}; reading them from there",
                name=self._name,
                end=self.ledger.end,
                in_files=in_files,
            )
            self.catch_up()

    def begin_at(self, offset: int) -> None:
        """
        Drop what is before the offset: it is deleted.
        """
        self.ledger.drop_before(offset)
        self._has_changed()

    def grown(self) -> None:
        """
        Make rows of noted batches, if there are any.
        """
        if self._reading and len(self._waiting) > _WAITING_MAX:
            self._waiting.clear()  # they are read from files, too
        if self._waiting and self._taking is None and self._reading is None and not self._closed:
            self._taking = self._clock.callLater(0, self._take_soon)

    def partition_moved(self) -> None:
        """
        SeaweedMQ has recreated the partition. Noted batches are of the partition before, and in its files.
        """
        self._waiting.clear()
        self.catch_up()

    def catch_up(self) -> None:
        """
        Read what the files have after the last row.
        """
        if self._reading:
            self._read_on = True
        elif not self._closed:
            self._reading = Deferred.fromCoroutine(self._follow()).addErrback(self._not_read)
            self._reading.addCallback(self._has_read)  # at once if it had nothing to wait for

    async def save(self) -> None:
        """
        Save the ledger with all noted batches, if it has changed.
        """
        while self._waiting and self._reading is None and not self._closed:
            self._take()
        await self._one_save.run(lambda: Deferred.fromCoroutine(self._save()))

    def close(self) -> None:
        self._closed = True
        self._waiting.clear()
        for call in (self._taking, self._retries, self._save_later):
            if call and call.active():
                call.cancel()
        for work in (self._reading, self._saving):
            if work:
                work.cancel()

    def _check_epoch(self, epochs: LeaderEpochs, end: int) -> None:
        """
        A gateway that was suspended may save its ledger after another one has begun to lead.
        """
        ended = epochs.end(self._saved_epoch, end)
        if ended and self.ledger.end > ended.end_offset:
            reason = f"it was saved in epoch {self._saved_epoch}, which ended before offset {ended.end_offset}"
            raise UnusableLedger(f"{reason}, but ends with offset {self.ledger.end - 1}")

    def _is_at(self, end: FilesEnd) -> bool:
        """
        Whether the last row says of the last message what the files do. If not, they are read from there on.
        """
        rows = self.ledger.rows
        if not rows or end.last_file is None:
            return True
        row = rows.at(-1)
        return row.message_offset + (1 if self._format.batched else row.span) == end.next_message - end.gap

    def _begin_again(self, why: UnusableLedger) -> None:
        self._log.warn(LEDGER_UNUSABLE, name=self._name, why=why)
        self.ledger = self._files.ledger = empty_ledger(self._files, self._format)
        self._has_changed()

    def _take_soon(self) -> None:
        self._taking = None
        if self._waiting:
            self._take()

    def _take(self) -> None:
        waiting, found = self._waiting, [self._waiting.popleft()]
        while waiting and waiting[0].base_offset == found[-1].end and len(found) < _ROWS_AT_ONCE:
            found.append(waiting.popleft())
        if self._add(found):
            self._has_changed()
            self.grown()
        else:
            waiting.extendleft(reversed(found))
            self.catch_up()

    def _add(self, found: list[SentBatch]) -> bool:
        """
        Add these consecutive batches. Returns whether they are in rows: not if the ledger lacks what is before them.
        """
        ledger, done = self.ledger, self.ledger.end
        found = [sent for sent in found if sent.end > done]
        if not found:
            return True
        if first_offset(found[0], ledger.batched) > done != self._gap_at:
            self._gap_at = done
            return False
        newest = self._files.folders[-1]
        ledger.begin(newest.unix_time_ns, newest.part)
        add_rows(ledger, found)
        return True

    def _has_read(self, _: None) -> None:
        self._reading = None
        self.grown()
        if self._read_on:
            self._read_on = False
            self.catch_up()

    async def _follow(self) -> None:
        """
        Add what the files have after the last row; everything, if they do not agree with that row.
        """
        await self._files.refresh()
        try:
            await follow(self.ledger, self._files, self._format, self._has_changed)
        except UnusableLedger as error:
            start = self.ledger.start
            self._begin_again(error)
            self.ledger.drop_before(start)
            await follow(self.ledger, self._files, self._format, self._has_changed)
        self._delay_s = _AGAIN_S

    def _not_read(self, failure: Failure) -> None:
        if self._closed or failure.check(CancelledError):
            return
        self._gap_at = -1
        self._log.info(
            "{name}: cannot read files for its ledger, trying again: {why}",
            name=self._name,
            why=failure.getErrorMessage(),
        )
        self._retries = self._clock.callLater(self._delay_s, self.catch_up)
        self._delay_s = min(2 * self._delay_s, _AGAIN_MAX_S)

    def _has_changed(self) -> None:
        self._is_changed = True
        if self._save_later is None and not self._closed:
            delay_s = max(self._interval_s, saved_bytes(self.ledger) / _SAVED_BYTES_PER_S)
            self._save_later = self._clock.callLater(delay_s, self._save_now)

    def _save_now(self) -> None:
        self._save_later = None
        self._saving = Deferred.fromCoroutine(self.save())
        self._saving.addErrback(lambda failure: failure.trap(CancelledError))

    async def _save(self) -> None:
        if self._closed or not self._is_changed:
            return
        self._is_changed = False
        try:
            await self._side_files.store_ledger(Snapshot(self.ledger, self._epoch), self._owner)
        except (*CLUSTER_ERRORS, KafkaError) as error:
            self._log.info("{name}: its ledger will be saved later: {why}", name=self._name, why=error)
            self._has_changed()
