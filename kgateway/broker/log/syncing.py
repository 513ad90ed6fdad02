"""
Makes what a partition has written outlast the machine: in a thread, one sync at a time.

What is written while one runs is synced with the next, however many batches that are; so the more producers wait, the
more of them one sync serves. A sync that fails is not tried again: the system has forgotten by then what it could not
write, and a second try would succeed without having written it.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.python.failure import Failure

from kgateway.broker.log.disk import File
from kgateway.broker.log.due import Doubtful, Due, NotTried, files_beside
from kgateway.broker.log.partition_log import End, PartitionLog
from kgateway.broker.log.parts import LogParts

T = TypeVar("T")

_AGAIN_S = 1.0


class Syncing:
    """
    The syncs of one partition.
    """

    __slots__ = (
        "_again",
        "_due",
        "_failed",
        "_later",
        "_log",
        "_parts",
        "_running",
        "_stopped",
        "_synced",
        "_waiting",
    )

    def __init__(
        self,
        log: PartitionLog,
        parts: LogParts,
        synced: Callable[[End], None],
        failed: Callable[[BaseException], None],
        begin: int,
        doubtful: list[Doubtful],
    ) -> None:
        self._log = log
        self._parts = parts
        self._synced = synced
        self._failed = failed
        self._running = self._again = self._stopped = False
        self._later: IDelayedCall | None = None
        self._waiting: list[Deferred[None]] = []
        self._due = Due(doubtful, folders=[log.folder, log.folder.parent])
        for segment, following in pairwise(log.segments):
            if segment.next_offset > begin:  # it was full, and its process died before it was synced
                beside = files_beside(segment.path, following.base_offset)
                self.note(segment.path, *beside)

    def note(self, *files: Path) -> None:
        """
        Sync these too, as far as they are there then.
        """
        self._due.files += files
        self._due.add_folder(self._log.folder)

    def finish(self) -> Deferred[None]:
        """
        Sync all that is written by now, and fire when that has ended, well or not.
        """
        ended: Deferred[None] = Deferred()
        self._waiting.append(ended)
        self.request()
        return ended

    def stop(self) -> None:
        """
        Touch no file any more: there may soon be others of their names.
        """
        self._stopped = True
        if self._later and self._later.active():
            self._later.cancel()
            self._end()

    def request(self) -> None:
        """
        Sync all that is written by now.
        """
        if self._stopped:
            self._end()
        elif self._running:
            self._again = True
        else:
            self._running = True
            self._begin()

    def _begin(self) -> None:
        self._again = False
        due, self._due = self._due, Due()
        end, files = self._log.end, self._parts.files
        try:
            log = files.hold(self._log.segments[-1].path)
        except OSError as error:
            self._try_again(due, error)
            return
        syncing = self._parts.syncs.do(partial(due.sync, files.disk, [log]))
        syncing.addBoth(self._let_go, log)
        served, self._waiting = self._waiting, []
        syncing.addCallbacks(self._done, self._broken, callbackArgs=(end, served), errbackArgs=(due, served))

    def _let_go(self, result: T, held: File) -> T:
        self._parts.files.let_go(held)
        return result

    def _done(self, _: object, end: End, served: list[Deferred[None]]) -> None:
        self._running = False
        self._parts.storage.worked(self._what)
        self._synced(end)
        if self._again:
            self.request()
        for ended in served:
            ended.callback(None)

    def _end(self) -> None:
        """
        Let nobody wait for what will not come.
        """
        waiting, self._waiting = self._waiting, []
        for ended in waiting:
            ended.callback(None)

    def _broken(self, failure: Failure, due: Due, served: list[Deferred[None]]) -> None:
        error = failure.value
        assert error
        self._waiting = served + self._waiting
        if isinstance(error, NotTried) and not self._stopped:
            self._try_again(due, error.error)
        else:
            self._failed(error)
            self._end()

    def _try_again(self, due: Due, error: OSError) -> None:
        """
        Nothing was synced in vain.
        """
        self._due = due.and_then(self._due)
        self._parts.storage.failed(self._what, error)
        self._later = self._parts.clock.callLater(_AGAIN_S, self._begin)

    @property
    def _what(self) -> str:
        return f"the sync of {self._log.folder.name}"
