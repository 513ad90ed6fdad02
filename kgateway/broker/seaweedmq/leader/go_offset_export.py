"""
Exports committed offsets to the files of SeaweedFS's Go gateway (go_offset_files.py), after the commits.

What cannot be written is tried again for as long as this gateway leads. What was lost because the gateway was killed is
found after the next start: when groups are loaded, their commits are compared with the files.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.broker.deferreds import when_over, within
from kgateway.broker.seaweed.calls.retries import FilerRefused
from kgateway.broker.seaweedmq.leader.go_offset_files import OffsetFiles, is_offset
from kgateway.broker.state_log import Snapshots, StateLog
from kgateway.cluster.partition import Appended
from kgateway.interfaces import IPartition, IReplay, KeyValue, ProducerEpoch
from kgateway.log_messages import OFFSETS_NOT_EXPORTED, OFFSETS_NOT_EXPORTED_YET
from kgateway.plurals import counted

_BEHIND_S = 0.5
_AGAIN_S = 5.0
_FLUSH_S = 10.0


class OffsetExport:
    _log = Logger()

    def __init__(self, files: OffsetFiles, clock: IReactorTime) -> None:
        self._files = files
        self._clock = clock
        self._changed: dict[bytes, bytes | None] = {}  # the last row of each key that is in no file yet
        self._unsure: dict[bytes, bytes] = {}  # rows that may be in files or not
        self._soon: IDelayedCall | None = None
        self._writing: Deferred[None] | None = None
        self._is_failing = False
        self._is_over = False

    def export(self, records: Sequence[KeyValue]) -> None:
        """
        Export the offsets in these rows soon.
        """
        for key, value in records:
            if is_offset(key):
                self._changed[key] = value
                self._unsure.pop(key, None)
        self._write_in(_BEHIND_S)

    def compare(self, rows: Mapping[bytes, bytes]) -> None:
        """
        Export these rows of the past, if the files do not have them.
        """
        self._unsure |= rows
        self._write_in(_BEHIND_S)

    def flush(self) -> Deferred[None]:
        """
        Write now what was noted; fires when that is done, or takes too long.
        """
        return within(self._clock, _FLUSH_S, Deferred.fromCoroutine(self._flush()))

    def lose(self) -> None:
        self._is_over = True
        self._wait_no_more()
        if self._writing:
            self._writing.cancel()

    async def _flush(self) -> None:
        self._unsure = {}
        if self._writing:
            await when_over(self._writing)
        self._wait_no_more()
        if self._changed and not self._is_over:
            await when_over(self._write())
        if self._changed:
            self._log.warn(OFFSETS_NOT_EXPORTED, offsets=counted(len(self._changed), "offset"))

    def _write_in(self, seconds: float) -> None:
        if (self._changed or self._unsure) and not (self._soon or self._writing or self._is_over):
            self._soon = self._clock.callLater(seconds, self._write)

    def _wait_no_more(self) -> None:
        if self._soon:
            self._soon.cancel()
            self._soon = None

    def _write(self) -> Deferred[None]:
        self._soon = None
        writing = self._writing = Deferred.fromCoroutine(self._write_all())
        return writing.addErrback(self._unwritten).addCallback(self._written)

    async def _write_all(self) -> None:
        refused = dict[bytes, bytes | None]()
        try:
            while self._changed or self._unsure:
                await (self._write_next(refused) if self._changed else self._catch_up_next())
        finally:
            self._changed = refused | self._changed
        self._is_failing = bool(refused)

    async def _write_next(self, left: dict[bytes, bytes | None]) -> None:
        key = next(iter(self._changed))
        left[key] = self._changed.pop(key)
        with self._going_on():
            await self._files.write(key, left[key])
            del left[key]

    async def _catch_up_next(self) -> None:
        key, value = next(iter(self._unsure.items()))
        with self._going_on():
            await self._files.catch_up(key, value)
        self._unsure.pop(key, None)

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        """
        An offset that the filer refuses does not hold up the others.
        """
        try:
            yield
        except FilerRefused as error:
            self._say(str(error))

    def _unwritten(self, failure: Failure) -> None:
        if not failure.check(CancelledError):
            self._say(failure.getErrorMessage())

    def _say(self, error: str) -> None:
        if not self._is_failing:
            self._log.warn(OFFSETS_NOT_EXPORTED_YET, error=error)
        self._is_failing = True

    def _written(self, _: None) -> None:
        self._writing = None
        self._write_in(_AGAIN_S if self._is_failing else _BEHIND_S)


class ExportingStateLog(StateLog):
    """
    The log of a coordinator of groups, whose rows are exported as they are written, and when they are loaded.
    """

    def __init__(
        self, partition: IPartition, snapshots: Snapshots, now_ms: Callable[[], int], exported: OffsetExport
    ) -> None:
        super().__init__(partition, snapshots, now_ms)
        self._exported = exported

    def append(self, records: Sequence[KeyValue], producer: ProducerEpoch | None = None) -> Appended:
        appended = super().append(records, producer)
        self._exported.export(records)
        return appended

    def replay(self) -> Deferred[IReplay]:
        return super().replay().addCallback(partial(_ObservedReplay, self._exported.compare))


@implementer(IReplay)
class _ObservedReplay:
    """
    A replay that reports the last row of each offset at its end.
    """

    def __init__(self, tell: Callable[[Mapping[bytes, bytes]], None], replay: IReplay) -> None:
        self.undecided, self.began = replay.undecided, replay.began
        self._tell = tell
        self._replay = replay
        self._rows: dict[bytes, bytes] = {}

    def __iter__(self) -> "_ObservedReplay":
        return self

    def __next__(self) -> list[KeyValue]:
        try:
            piece = next(self._replay)
        except StopIteration:
            self._tell(self._rows)
            raise
        for key, value in piece:
            if value is None:
                self._rows.pop(key, None)
            elif is_offset(key):
                self._rows[key] = value
        return piece
