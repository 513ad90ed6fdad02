"""
Keeps the ledger of a partition in step with its log files, and never ahead of them.

What this gateway has published becomes rows as soon as it is in files; no file is read for that. The rest is read from
the files, in turns with other work: what others have published, what was flushed while no gateway ran, and everything
if the stored ledger is missing or wrong.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import sub

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweedmq.files.partition_files import FilesEnd, PartitionFiles
from kgateway.broker.seaweedmq.formats.format import MessageFormat, SkippedMessage
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.broker.seaweedmq.ledger.ledger import LATEST, RUN_MESSAGES, Ledger, Mapping
from kgateway.broker.seaweedmq.ledger.records import Replay
from kgateway.broker.seaweedmq.publishing.in_flight import SentBatch
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.wire.errors import Malformed

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


class LedgerMismatch(Exception):
    """
    The ledger does not agree with the log.
    """


def check(
    ledger: Ledger, message_format: MessageFormat, folders: Sequence[PartitionFolder], start: int, end: int
) -> None:
    """
    Raise LedgerMismatch if it cannot be the ledger of a log with this start and end, in these folders.
    """
    if start < end and not ledger.rows:
        raise LedgerMismatch("there is none")
    if not ledger.rows:
        return
    if ledger.batched != message_format.batched:
        raise LedgerMismatch("its rows are of another format")
    if ledger.end > end:
        raise LedgerMismatch(f"it ends with offset {ledger.end - 1}, but the log ends with {end - 1}")
    if ledger.rows.kafka[0] > start:
        raise LedgerMismatch(f"it begins with offset {ledger.rows.kafka[0]}, but the log begins with {start}")
    there = [(folder.unix_time_ns, folder.part) for folder in folders]
    if any(section[1:] not in there for section in ledger.sections):
        raise LedgerMismatch("it has partitions that the topic never had")


_ROWS_AT_ONCE = 500
_WAITING_MAX = 10_000  # batches that wait until files are read
_AGAIN_S, _AGAIN_MAX_S = 5.0, 600.0  # after the first failure, and after many


@dataclass(slots=True)
class StoredLedger:
    """
    A ledger, and the number of the first row that is not stored yet.
    """

    ledger: Ledger
    first_unstored: int = 0

    @property
    def unstored(self) -> int:
        return self.ledger.rows.end - self.first_unstored


async def replay_ledgers(files: PartitionFiles) -> Replay:
    """
    The stored ledgers, as far as the files of their topic can be read.
    """
    replay = Replay()
    await files.refresh()
    try:
        async for _, piece in files.messages(EARLIEST_OFFSET):
            for entry in piece:
                replay.add(entry.key, entry.value)
    except Malformed as error:
        replay.leave_out(f"the rest of its files cannot be read: {error}")
    return replay


class PartitionLedger:
    _log = Logger()

    def __init__(
        self,
        known: StoredLedger,
        name: str,
        files: PartitionFiles,
        message_format: MessageFormat,
        clock: IReactorTime,
        changed: Callable[[], None],
    ) -> None:
        self._known = known
        self._name = name
        self._files = files
        self._format = message_format
        self._clock = clock
        self._changed = changed  # called when there are rows to be stored
        self._waiting: deque[SentBatch] = deque()
        # Called with each batch of ours that is in files; no method, to save a call for each.
        self.add_flushed: Callable[[SentBatch], object] = self._waiting.append
        self._taking: IDelayedCall | None = None
        self._reading: Deferred[None] | None = None
        self._read_on = False  # read once more when it is done
        self._gap_at = -1  # where noted batches were not consecutive, before files were read again
        self._retries: IDelayedCall | None = None
        self._delay_s = _AGAIN_S
        self._closed = False

    @property
    def ledger(self) -> Ledger:
        return self._known.ledger

    def open(self, start: int, end: FilesEnd) -> None:
        """
        Continue the stored ledger, if it agrees with the files.
        """
        self._files.ledger = self.ledger
        in_files = end.offset - end.gap
        try:
            check(self.ledger, self._format, self._files.folders, start, in_files)
        except LedgerMismatch as error:
            self._begin_again(str(error))
        self.ledger.drop_before(start)
        if self.ledger.end < in_files or not self._is_at(end):
            self.catch_up()

    def begin_at(self, offset: int) -> None:
        """
        Drop what is before the offset: it is deleted.
        """
        known = self._known
        known.ledger.drop_before(offset)
        known.first_unstored = max(known.first_unstored, known.ledger.rows.first)
        self._changed()

    def grown(self) -> None:
        """
        Make rows of noted batches, if there are any.
        """
        if self._reading and len(self._waiting) > _WAITING_MAX:
            self._waiting.clear()  # they are read from files, too
        if self._waiting and self._taking is None and self._reading is None and not self._closed:
            self._taking = self._clock.callLater(0, self._take)

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
            self._reading = Deferred.fromCoroutine(self.follow()).addErrback(self._not_read)
            self._reading.addCallback(self._has_read)
            if self._reading.called:
                self._reading = None

    def flush(self) -> None:
        while self._waiting and self._reading is None:
            self._take()

    def close(self) -> None:
        self._closed = True
        self._waiting.clear()
        for call in (self._taking, self._retries):
            if call and call.active():
                call.cancel()
        if self._reading:
            self._reading.cancel()

    def _is_at(self, end: FilesEnd) -> bool:
        """
        Whether the last row says of the last message what the files do. If not, they are read from there on.
        """
        rows = self.ledger.rows
        if not rows or end.last_file is None:
            return True
        row = rows.at(-1)
        return row.message_offset + (1 if self._format.batched else row.span) == end.next_message - end.gap

    def _begin_again(self, why: str) -> None:
        self._log.info("{name}: rebuilding its ledger from its files: {why}", name=self._name, why=why)
        oldest = self._files.folders[0]
        self._known.ledger = Ledger(self._format.batched, oldest.unix_time_ns, oldest.part)
        self._known.first_unstored = 0
        self._files.ledger = self.ledger

    def _take(self) -> None:
        self._taking = None
        waiting, found = self._waiting, [self._waiting.popleft()]
        while waiting and waiting[0].base_offset == found[-1].end and len(found) < _ROWS_AT_ONCE:
            found.append(waiting.popleft())
        if self._add(found):
            self._changed()
            self.grown()
        else:
            waiting.extendleft(reversed(found))
            self.catch_up()

    def _add(self, found: list[SentBatch]) -> bool:
        """
        Add these consecutive batches. Returns whether they are in rows: not if the ledger lacks what is before them.
        """
        ledger, done = self._known.ledger, self._known.ledger.end
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

    async def follow(self) -> None:
        """
        Add what the files have after the last row; everything, if they do not agree with that row.
        """
        await self._files.refresh()
        try:
            await self._add_from_files()
        except LedgerMismatch as error:
            start = self.ledger.start
            self._begin_again(str(error))
            self.ledger.drop_before(start)
            await self._add_from_files()
        self._delay_s = _AGAIN_S
        self._changed()

    async def _add_from_files(self) -> None:
        last = self.ledger.at(LATEST)
        async for folder, piece in self._files.messages(last.batch_offset if last else self.ledger.start):
            if last and self._agrees(last, folder, piece):
                last = None
            self._extend(folder, piece)
            if self._known.unstored > _WAITING_MAX:
                self._changed()
        if last:
            raise LedgerMismatch(f"it has offset {last.offset}, but the log does not")

    def _agrees(self, last: Mapping, folder: PartitionFolder, piece: list[LoggedMessage]) -> bool:
        """
        Whether the messages contain the ledger's last one; raises LedgerMismatch if another is in its place.
        """
        offset, message_offset = last.batch_offset, last.message_offset
        for placed in self._format.walk(piece, folder.shift, offset, _skip):
            if (placed.offset, placed.message_offset) != (offset, message_offset):
                found = f"offset {placed.offset} in message {placed.message_offset}"
                raise LedgerMismatch(f"it has offset {offset} in message {message_offset}, but the log has {found}")
            return True
        return False

    def _extend(self, folder: PartitionFolder, piece: list[LoggedMessage]) -> None:
        ledger = self.ledger
        found = list(self._format.walk(piece, folder.shift, ledger.end, _skip))
        if found:
            ledger.begin(folder.unix_time_ns, folder.part)
        for offset, span, message_offset, ts_ns, max_timestamp, _ in found:
            ledger.append(offset, message_offset, ts_ns, span, max_timestamp)

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


def _skip(left_out: SkippedMessage) -> None:
    """
    A message that nobody can read has no row.
    """
