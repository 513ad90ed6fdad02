"""
What a data folder and its partitions share: open files, clocks, threads, loaded indexes, and the health of the disk.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import random
from typing import Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from kgateway.broker.log.files.file_cache import FileCache
from kgateway.broker.log.segments.batch_scan import Scratch
from kgateway.broker.log.segments.fsync import SyncPool
from kgateway.broker.log.segments.group_sync import GroupSync
from kgateway.broker.log.segments.segment import Segment
from kgateway.log_messages import CANNOT_WRITE

T = TypeVar("T")

READ_BYTES = (1 << 20) + (64 << 10)  # read at once: a batch of the usual largest size fits
_REPEATED_S = 600  # from one log line about a lasting failure to the next
_AGAIN_S = 60  # the same about a failure that has come back
_LOADED_MAX = 64  # of a few megabytes each, at most


class InThread(Protocol):
    """
    Runs a call in a thread, because it waits for the disk.
    """

    def __call__(self, call: Callable[[], T], /) -> Deferred[T]: ...


class InTurns(Protocol):
    """
    Takes the steps of an iterator, a few in each turn of the reactor. If a step returns a Deferred, the next one waits
    for it.
    """

    def __call__(self, steps: Iterator[Deferred[object] | None], /) -> Deferred[object]: ...


class LoadedIndexes:
    """
    The full segments whose indexes are in memory: those that were read last.
    """

    def __init__(self, limit: int = _LOADED_MAX) -> None:
        self._limit = limit
        self._segments: OrderedDict[Segment, None] = OrderedDict()

    def used(self, segment: Segment) -> None:
        """
        Keep this one longest, and unload the one that was not used for the longest time.
        """
        self._segments[segment] = None
        self._segments.move_to_end(segment)
        if len(self._segments) > self._limit:
            oldest, _ = self._segments.popitem(last=False)
            oldest.indexes.unload()

    def forget(self, segment: Segment) -> None:
        self._segments.pop(segment, None)


class DiskHealth:
    """
    Logs when the disk begins to refuse writes, and when it takes them again; a lasting refusal is repeated now and
    then. A disk that is nearly full takes some and refuses others, and not every change of that is logged.
    """

    _log = Logger()

    def __init__(self, seconds: Callable[[], float]) -> None:
        self.failing: dict[str, str] = {}  # what, and the reason
        self._seconds = seconds
        self._logged_at: dict[str, float] = {}  # by reason
        self._last_said_failing = False

    def failed(self, what: str, error: OSError) -> None:
        reason = error.strerror or str(error)
        self.failing[what] = reason
        silent_s = _REPEATED_S if self._last_said_failing else _AGAIN_S
        if self._seconds() - self._logged_at.get(reason, -silent_s) >= silent_s:
            self._logged_at[reason] = self._seconds()
            self._last_said_failing = True
            self._log.critical(CANNOT_WRITE, what=what, reason=describe_error(error))

    def worked(self, what: str) -> None:
        if self.failing.pop(what, None) and not self.failing and self._last_said_failing:
            self._last_said_failing = False
            self._log.info("{what} can be written again, and no other write is known to fail.", what=what)

    def forget(self, partition: str) -> None:
        """
        Forget a partition that is not written any more: no write to it will ever succeed.
        """
        for what in [what for what in self.failing if what == partition or what.endswith(f" {partition}")]:
            del self.failing[what]


@dataclass(slots=True)
class LogRuntime:
    files: FileCache
    now_ms: Callable[[], int]
    clock: IReactorTime
    in_thread: InThread
    in_turns: InTurns
    sync_thread: InThread | None = None  # for syncs that clients wait for
    chance: Callable[[], float] = random  # from 0 to 1
    scratch: Scratch = field(default_factory=lambda: Scratch(READ_BYTES))
    loaded: LoadedIndexes = field(default_factory=LoadedIndexes)
    health: DiskHealth = field(init=False)
    group_sync: GroupSync = field(init=False)
    syncs: SyncPool = field(init=False)

    def __post_init__(self) -> None:
        self.group_sync = GroupSync(self.sync_thread or self.in_thread, self.files.disk)
        self.syncs = SyncPool(self.in_thread)
        self.health = DiskHealth(self.clock.seconds)

    def stop_syncs(self) -> None:
        """
        Begin no more syncs.
        """
        self.group_sync.stop()
        self.syncs.stop()


def describe_error(error: BaseException) -> str:
    """
    The reason for an error, and the file it is about.
    """
    if not isinstance(error, OSError):
        return repr(error)
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}"
