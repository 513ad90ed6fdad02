"""
Learns from the filer how far SeaweedMQ has written its messages into files.

The change feed tells of each file that grows. What its attributes say of the last message in it may be one too high, so
they prove all messages but that one; where that is not enough the file is read.
"""

from collections.abc import Callable
from struct import Struct

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweed.protos.filer_pb2 import Entry
from kgateway.broker.seaweedmq.history import End, History

SOON_S = 1.0  # after the last event, where nobody waits
AT_ONCE_S = 0.0
LOST_EVENT_S = 5.0  # a flush takes no longer, and the feed may forget to tell of it
_LAST = "offset_max"
_OFFSET = Struct(">q")


class Flushes:
    """
    Of one partition.
    """

    _log = Logger()

    def __init__(
        self,
        history: History,
        start: int,
        clock: IReactorTime,
        flushed: Callable[[int], None],
        ended: Callable[[End], None],
        is_complete: Callable[[], bool],
        patience_s: Callable[[], float],
    ) -> None:
        self._history = history
        self._start = start
        self._clock = clock
        self._flushed = flushed  # told that all messages before one are in files
        self._ended = ended  # told where the files end
        self._is_complete = is_complete  # whether nothing is waited for
        self._patience_s = patience_s
        self._soon: IDelayedCall | None = None
        self._reading = False

    def published(self) -> None:
        """
        Something is on its way that will be in a file.
        """
        self._look_in(LOST_EVENT_S)

    def grown(self, entry: Entry) -> None:
        """
        A file of the partition has grown.
        """
        last = entry.extended.get(_LAST, b"")
        if len(last) == _OFFSET.size:
            self._flushed(_OFFSET.unpack(last)[0])
        self.look_again()

    def look_again(self) -> None:
        """
        A file may have grown: others may publish, too.
        """
        self.stop()
        self._look_in(self._patience_s(), True)

    def _look_in(self, seconds: float, anyhow: bool = False) -> None:
        if self._soon is None and not self._reading and (anyhow or not self._is_complete()):
            self._soon = self._clock.callLater(seconds, self._look)

    def stop(self) -> None:
        """
        Look no more.
        """
        if self._soon:
            self._soon.cancel()
            self._soon = None

    def _look(self) -> None:
        self._soon = None
        self._reading = True
        Deferred.fromCoroutine(self._read()).addErrback(self._unreadable).addBoth(self._looked)

    async def _read(self) -> None:
        await self._history.refresh()
        self._ended(await self._history.end(self._start))

    def _unreadable(self, failure: Failure) -> None:
        self._log.info("what is in files is not known just now: {error}", error=failure.getErrorMessage())

    def _looked(self, _: None) -> None:
        self._reading = False
        self._look_in(SOON_S)
