"""
Keeps the ledger of a partition in step with its log files, and never ahead of them.

What this gateway has published becomes rows as soon as it is in files; no file is read for that. What it does not know
is read out of the files, in turns with other work: what others have published, what came to be in files while nobody
looked, and all of it where the ledger that was kept is missing or wrong.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweedmq.agreement import WrongLedger, check
from kgateway.broker.seaweedmq.folders import Folder
from kgateway.broker.seaweedmq.forms.form import Form, LeftOut
from kgateway.broker.seaweedmq.history import End, History
from kgateway.broker.seaweedmq.in_flight import Sent
from kgateway.broker.seaweedmq.ledger import LATEST, Ledger, Mapping
from kgateway.broker.seaweedmq.log_entries import Entry
from kgateway.broker.seaweedmq.sent_rows import add_rows, first_offset

_ROWS_AT_ONCE = 500
_NOTED_MAX = 10_000  # batches that wait until files are read
_AGAIN_S, _AGAIN_MAX_S = 5.0, 600.0  # after the first failure, and after many


@dataclass(slots=True)
class Known:
    """
    A ledger, and the number of the first row in it that is not kept yet.
    """

    ledger: Ledger
    first_unkept: int = 0

    @property
    def unkept(self) -> int:
        """
        How many rows are to be kept.
        """
        return self.ledger.rows.end - self.first_unkept


class PartitionLedger:
    """
    Of one partition that is open.
    """

    _log = Logger()

    def __init__(
        self, known: Known, name: str, history: History, form: Form, clock: IReactorTime, changed: Callable[[], None]
    ) -> None:
        self._known = known
        self._name = name
        self._history = history
        self._form = form
        self._clock = clock
        self._changed = changed  # told when there are rows that can be kept
        self._waiting: deque[Sent] = deque()
        self.noted: Callable[[Sent], object] = self._waiting.append  # told of each batch of ours that is in files
        self._taking: IDelayedCall | None = None
        self._reading: Deferred[None] | None = None
        self._read_on = False  # once more, when it is done
        self._gap_at = -1  # where what was noted did not go on, before all files were read again
        self._retrying: IDelayedCall | None = None
        self._delay_s = _AGAIN_S
        self._closed = False

    @property
    def ledger(self) -> Ledger:
        """
        As far as it has come.
        """
        return self._known.ledger

    def open(self, start: int, end: End) -> None:
        """
        Go on from what was kept, if that agrees with what there is.
        """
        self._history.ledger = self.ledger
        in_files = end.offset - end.gap
        try:
            check(self.ledger, self._form, self._history.folders, start, in_files)
        except WrongLedger as error:
            self._begin_again(str(error))
        self.ledger.drop_before(start)
        if self.ledger.end < in_files or not self._is_at(end):
            self.catch_up()

    def begin_at(self, offset: int) -> None:
        """
        What is before the offset is deleted.
        """
        known = self._known
        known.ledger.drop_before(offset)
        known.first_unkept = max(known.first_unkept, known.ledger.rows.first)
        self._changed()

    def grown(self) -> None:
        """
        Something was noted, perhaps.
        """
        if self._reading and len(self._waiting) > _NOTED_MAX:
            self._waiting.clear()  # they are read from files, too
        if self._waiting and self._taking is None and self._reading is None and not self._closed:
            self._taking = self._clock.callLater(0, self._take)

    def moved(self) -> None:
        """
        SeaweedMQ has made the partition anew. What was noted is of the partition before, and in its files.
        """
        self._waiting.clear()
        self.catch_up()

    def catch_up(self) -> None:
        """
        Read what the files have, and the ledger has not.
        """
        if self._reading:
            self._read_on = True
        elif not self._closed:
            self._reading = Deferred.fromCoroutine(self.follow()).addErrback(self._not_read)
            self._reading.addCallback(self._has_read)
            if self._reading.called:
                self._reading = None

    def settle(self) -> None:
        """
        Let all that was noted become rows now.
        """
        while self._waiting and self._reading is None:
            self._take()

    def close(self) -> None:
        """
        Nothing of it is ours any more.
        """
        self._closed = True
        self._waiting.clear()
        for call in (self._taking, self._retrying):
            if call and call.active():
                call.cancel()
        if self._reading:
            self._reading.cancel()

    def _is_at(self, end: End) -> bool:
        """
        Whether the last row says of the last message what the files do. If not, they are read from there on.
        """
        rows = self.ledger.rows
        if not rows or end.last_file is None:
            return True
        row = rows.at(-1)
        return row.message + (1 if self._form.batched else row.span) == end.next_message - end.gap

    def _begin_again(self, why: str) -> None:
        self._log.info("{name}: its ledger is made from its files: {why}", name=self._name, why=why)
        oldest = self._history.folders[0]
        self._known.ledger = Ledger(self._form.batched, oldest.unix_time_ns, oldest.part)
        self._known.first_unkept = 0
        self._history.ledger = self.ledger

    def _take(self) -> None:
        """
        Let some of what was noted become rows.
        """
        self._taking = None
        waiting, found = self._waiting, [self._waiting.popleft()]
        while waiting and waiting[0].base_offset == found[-1].end and len(found) < _ROWS_AT_ONCE:
            found.append(waiting.popleft())
        if self._has_taken(found):
            self._changed()
            self.grown()
        else:
            waiting.extendleft(reversed(found))
            self.catch_up()

    def _has_taken(self, found: list[Sent]) -> bool:
        """
        Whether batches that follow one another are in rows; they are not where the ledger does not know what comes
        before them.
        """
        ledger, done = self._known.ledger, self._known.ledger.end
        found = [sent for sent in found if sent.end > done]
        if not found:
            return True
        if first_offset(found[0], ledger.batched) > done != self._gap_at:
            self._gap_at = done
            return False
        newest = self._history.folders[-1]
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
        Take over what the files have behind the last row; all they have, if that is not as they say.
        """
        await self._history.refresh()
        try:
            await self._go_on()
        except WrongLedger as error:
            start = self.ledger.start
            self._begin_again(str(error))
            self.ledger.drop_before(start)
            await self._go_on()
        self._delay_s = _AGAIN_S
        self._changed()

    async def _go_on(self) -> None:
        last = self.ledger.at(LATEST)
        async for folder, piece in self._history.messages(last.batch_offset if last else self.ledger.start):
            if last and self._agrees(last, folder, piece):
                last = None
            self._extend(folder, piece)
            if self._known.unkept > _NOTED_MAX:
                self._changed()
        if last:
            raise WrongLedger(f"it has offset {last.offset}, and the log has not")

    def _agrees(self, last: Mapping, folder: Folder, piece: list[Entry]) -> bool:
        """
        Whether the messages have the last one; a WrongLedger where they have another in its place.
        """
        offset, message = last.batch_offset, last.message
        for placed in self._form.walk(piece, folder.shift, offset, _passed_over):
            if (placed.offset, placed.message) != (offset, message):
                found = f"offset {placed.offset} in message {placed.message}"
                raise WrongLedger(f"it has offset {offset} in message {message}, and the log {found}")
            return True
        return False

    def _extend(self, folder: Folder, piece: list[Entry]) -> None:
        ledger = self.ledger
        found = list(self._form.walk(piece, folder.shift, ledger.end, _passed_over))
        if found:
            ledger.begin(folder.unix_time_ns, folder.part)
        for offset, span, message, ts_ns, max_timestamp, _ in found:
            ledger.append(offset, message, ts_ns, span, max_timestamp)

    def _not_read(self, failure: Failure) -> None:
        if self._closed or failure.check(CancelledError):
            return
        self._gap_at = -1
        self._log.info("{name}: its ledger waits: {why}", name=self._name, why=failure.getErrorMessage())
        self._retrying = self._clock.callLater(self._delay_s, self.catch_up)
        self._delay_s = min(2 * self._delay_s, _AGAIN_MAX_S)


def _passed_over(left_out: LeftOut) -> None:
    """
    What nobody can read has no row.
    """
