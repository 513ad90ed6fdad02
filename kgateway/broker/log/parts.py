"""
What the partitions of one data folder share.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import random
from typing import Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from kgateway.broker.log.open_files import OpenFiles
from kgateway.broker.log.segment import Segment
from kgateway.broker.log.together import Together
from kgateway.broker.log.walking import Scratch

T = TypeVar("T")

PIECE_BYTES = (1 << 20) + (64 << 10)  # read at once: a batch of the usual largest size fits
_TOLD_AGAIN_S = 10
_LOADED_MAX = 64  # of a few megabytes each, at most


class InThread(Protocol):
    """
    Calls what waits for the disk in a thread of its own.
    """

    def __call__(self, call: Callable[[], T], /) -> Deferred[T]: ...


class InTurns(Protocol):
    """
    Takes an iterator's steps a few at a time, and lets others go on between them; where one gives a Deferred, the next
    step is taken when it has fired.
    """

    def __call__(self, steps: Iterator[Deferred[object] | None], /) -> Deferred[object]: ...


class LoadedIndexes:
    """
    The full segments whose indexes are in memory: those that were read from last.
    """

    def __init__(self, limit: int = _LOADED_MAX) -> None:
        self._limit = limit
        self._segments: OrderedDict[Segment, None] = OrderedDict()

    def used(self, segment: Segment) -> None:
        """
        Keep this one longest, and let the one go that was not used for the longest time.
        """
        self._segments[segment] = None
        self._segments.move_to_end(segment)
        if len(self._segments) > self._limit:
            oldest, _ = self._segments.popitem(last=False)
            oldest.indexes.let_go()

    def forget(self, segment: Segment) -> None:
        """
        Nobody will ask for this one again.
        """
        self._segments.pop(segment, None)


class Storage:
    """
    What the disk refuses to take, told when it begins and when it ends. A disk that is nearly full takes this and
    refuses that, so a reason is told again only after a while.
    """

    _log = Logger()

    def __init__(self, seconds: Callable[[], float]) -> None:
        self.failing: dict[str, str] = {}  # what, and the reason
        self._seconds = seconds
        self._told: dict[str, float] = {}  # a reason, and when

    def failed(self, what: str, error: OSError) -> None:
        """
        Something could not be written.
        """
        reason = error.strerror or str(error)
        self.failing[what] = reason
        if self._seconds() - self._told.get(reason, -_TOLD_AGAIN_S) >= _TOLD_AGAIN_S:
            self._told[reason] = self._seconds()
            self._log.critical(
                "{what} cannot be written: {reason}. Clients are told KAFKA_STORAGE_ERROR and try again; "
                "nothing that was acknowledged is lost. Once the cause is mended, writing goes on by itself.",
                what=what,
                reason=plain(error),
            )

    def worked(self, what: str) -> None:
        """
        This was written.
        """
        if self.failing.pop(what, None) and not self.failing:
            self._log.info("{what} can be written again, and nothing else is known to be refused.", what=what)

    def forget(self, partition: str) -> None:
        """
        A partition of this name is written no more: nobody will ever tell that it could be.
        """
        for what in [what for what in self.failing if what == partition or what.endswith(f" {partition}")]:
            del self.failing[what]


@dataclass(slots=True)
class LogParts:
    """
    Files, time and threads.
    """

    files: OpenFiles
    now_ms: Callable[[], int]
    clock: IReactorTime
    in_thread: InThread
    in_turns: InTurns
    chance: Callable[[], float] = random  # from 0 to 1
    scratch: Scratch = field(default_factory=lambda: Scratch(PIECE_BYTES))
    loaded: LoadedIndexes = field(default_factory=LoadedIndexes)
    storage: Storage = field(init=False)
    syncs: Together = field(init=False)

    def __post_init__(self) -> None:
        self.syncs = Together(self.in_thread)
        self.storage = Storage(self.clock.seconds)


def plain(error: BaseException) -> str:
    """
    What went wrong, with the file it is about.
    """
    if not isinstance(error, OSError):
        return repr(error)
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}"
