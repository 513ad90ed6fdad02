"""
Group commit: partitions that have written little are synced together, in one trip of a thread to the disk.

Everything requested during a trip makes the next one. That begins before the results of the last trip are reported, so
the disk works while responses are sent. A partition that has written much is synced by `SyncPool` instead, so that a
trip does not wait for it.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.broker.log.files.disk import Disk, File

_TOGETHER_MAX = 256  # files

Outcome = BaseException | None  # why a sync failed


class LogSync(NamedTuple):
    """
    A sync of one file. `release` is called when it has ended, and may request the next one; `report` is called once the
    next trip has begun.
    """

    file: File
    release: Callable[[Outcome], None]
    report: Callable[[Outcome], None]


Begin = Callable[[], LogSync | None]  # called when the trip begins; `None` if there is nothing to sync any more


class GroupSync:
    def __init__(self, in_thread: Callable[[Callable[[], Any]], Deferred[Any]], disk: Disk) -> None:
        self._in_thread = in_thread
        self._disk = disk
        self._requested: list[Begin] = []
        self._is_under_way = self._is_stopped = False

    def request(self, begin: Begin) -> None:
        self._requested.append(begin)
        self._start()

    def stop(self) -> None:
        """
        Begin no more trips.
        """
        self._is_stopped = True
        self._requested.clear()

    def _start(self) -> None:
        while self._requested and not self._is_under_way and not self._is_stopped:
            self._is_under_way = True
            taken, self._requested = self._requested[:_TOGETHER_MAX], self._requested[_TOGETHER_MAX:]
            syncs = [sync for begin in taken if (sync := begin())]
            if syncs:
                files = [sync.file for sync in syncs]
                self._in_thread(partial(self._disk.sync_files, files)).addBoth(self._ended, syncs)
            else:
                self._is_under_way = False

    def _ended(self, result: list[OSError | None] | Failure, syncs: list[LogSync]) -> None:
        outcomes: Sequence[Outcome] = [result.value] * len(syncs) if isinstance(result, Failure) else result
        for sync, outcome in zip(syncs, outcomes, strict=True):
            sync.release(outcome)
        self._is_under_way = False
        self._start()
        for sync, outcome in zip(syncs, outcomes, strict=True):
            sync.report(outcome)
