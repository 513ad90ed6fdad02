"""
Learns from the filer how far SeaweedMQ has flushed its messages into files.

The change feed reports each file that grows. Its attributes may name a last message that is one too high, so they prove
all messages but that one; if that is not enough, the file is read.
"""

from collections.abc import Callable
from struct import Struct

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweed.protos.filer_pb2 import Entry
from kgateway.broker.seaweedmq.files.partition_files import FilesEnd, PartitionFiles

SOON_S = 1.0  # after the last event, if no client waits
AT_ONCE_S = 0.0
LOST_EVENT_S = 5.0  # a flush takes no longer, and the feed may miss it
_LAST = "offset_max"
_OFFSET = Struct(">q")


class FlushTracker:
    _log = Logger()

    def __init__(
        self,
        files: PartitionFiles,
        start: int,
        clock: IReactorTime,
        flushed: Callable[[int], None],
        ended: Callable[[FilesEnd], None],
        is_complete: Callable[[], bool],
        patience_s: Callable[[], float],
    ) -> None:
        self._files = files
        self._start = start
        self._clock = clock
        self._flushed = flushed  # called with a message before which all are in files
        self._ended = ended  # called with the end of the files
        self._is_complete = is_complete  # whether everything is in files
        self._patience_s = patience_s
        self._soon: IDelayedCall | None = None
        self._reading = False

    def published(self) -> None:
        """
        Expect a flush of what was published.
        """
        self._look_in(LOST_EVENT_S)

    def file_grown(self, entry: Entry) -> None:
        last = entry.extended.get(_LAST, b"")
        if len(last) == _OFFSET.size:
            self._flushed(_OFFSET.unpack(last)[0])
        self.look_again()

    def look_again(self) -> None:
        """
        Read the files: others may publish, too.
        """
        self.stop()
        self._look_in(self._patience_s(), True)

    def _look_in(self, seconds: float, anyhow: bool = False) -> None:
        if self._soon is None and not self._reading and (anyhow or not self._is_complete()):
            self._soon = self._clock.callLater(seconds, self._look)

    def stop(self) -> None:
        if self._soon:
            self._soon.cancel()
            self._soon = None

    def _look(self) -> None:
        self._soon = None
        self._reading = True
        Deferred.fromCoroutine(self._read()).addErrback(self._unreadable).addBoth(self._looked)

    async def _read(self) -> None:
        await self._files.refresh()
        self._ended(await self._files.end(self._start))

    def _unreadable(self, failure: Failure) -> None:
        self._log.info("cannot read flush progress: {error}", error=failure.getErrorMessage())

    def _looked(self, _: None) -> None:
        self._reading = False
        self._look_in(SOON_S)
