"""
Syncs what a partition has written: in a thread, one sync at a time.

Batches written while one sync runs share the next, so the more producers wait, the more of them one sync serves. A sync
that fails is not tried again: the system has forgotten by then what it could not write, and a second sync would succeed
without having written it.

Nobody waits for the syncs of `flush.messages` and `flush.ms`. In addition the disk is told to begin writing early,
before there is so much to write that appends have to wait for it.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.python.failure import Failure

from kgateway.broker.log.files.disk import File
from kgateway.broker.log.runtime import LogRuntime
from kgateway.broker.log.segments.fsync import NotTried, SyncJob, UnsyncedPart, side_files_of
from kgateway.broker.log.segments.segment_list import LogEnd, SegmentList
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import LONG_MAX

T = TypeVar("T")

_AGAIN_S = 1.0
EARLY_BYTES = 8 << 20


class Syncer:
    __slots__ = (
        "_due",
        "_failed",
        "_is_requested_again",
        "_retry_timer",
        "_running",
        "_runtime",
        "_segment_list",
        "_stopped",
        "_synced",
        "_waiting",
    )

    def __init__(
        self,
        segment_list: SegmentList,
        runtime: LogRuntime,
        synced: Callable[[LogEnd], None],
        failed: Callable[[BaseException], None],
        synced_offset: int,
        unsynced: list[UnsyncedPart],
    ) -> None:
        self._segment_list = segment_list
        self._runtime = runtime
        self._synced = synced
        self._failed = failed
        self._running = self._is_requested_again = self._stopped = False
        self._retry_timer: IDelayedCall | None = None
        self._waiting: list[Deferred[None]] = []
        self._due = SyncJob(unsynced, folders=[segment_list.folder, segment_list.folder.parent])
        for segment, following in pairwise(segment_list.segments):
            if segment.next_offset > synced_offset:  # it was full, and its process crashed before it was synced
                self.add(segment.path, *side_files_of(segment.path, following.base_offset))

    def add(self, *files: Path) -> None:
        """
        Cover these files too with the next sync, as far as they exist then.
        """
        self._due.files += files
        self._due.add_folder(self._segment_list.folder)

    def finish(self) -> Deferred[None]:
        """
        Sync everything written by now; fires when that has ended, with or without success.
        """
        ended: Deferred[None] = Deferred()
        self._waiting.append(ended)
        self.request()
        return ended

    def stop(self) -> None:
        """
        Touch no file any more: a new topic may soon have files of the same names.
        """
        self._stopped = True
        if self._retry_timer and self._retry_timer.active():
            self._retry_timer.cancel()
            self._fire_waiting()

    def request(self) -> None:
        if self._stopped:
            self._fire_waiting()
        elif self._running:
            self._is_requested_again = True
        else:
            self._running = True
            self._begin()

    def _begin(self) -> None:
        self._is_requested_again = False
        due, self._due = self._due, SyncJob()
        end, files = self._segment_list.end, self._runtime.files
        try:
            log = files.hold(self._segment_list.segments[-1].path)
        except OSError as error:
            self._try_again(due, error)
            return
        syncing = self._runtime.syncs.run(partial(due.sync, files.disk, [log]))
        syncing.addBoth(self._release, log)
        served, self._waiting = self._waiting, []
        syncing.addCallbacks(
            self._done, self._sync_failed_or_not_tried, callbackArgs=(end, served), errbackArgs=(due, served)
        )

    def _release(self, result: T, held: File) -> T:
        self._runtime.files.release(held)
        return result

    def _done(self, _: object, end: LogEnd, served: list[Deferred[None]]) -> None:
        self._running = False
        self._runtime.health.worked(self._what)
        self._synced(end)
        if self._is_requested_again:
            self.request()
        for ended in served:
            ended.callback(None)

    def _fire_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for ended in waiting:
            ended.callback(None)

    def _sync_failed_or_not_tried(self, failure: Failure, due: SyncJob, served: list[Deferred[None]]) -> None:
        error = failure.value
        assert error
        self._waiting = served + self._waiting
        if isinstance(error, NotTried) and not self._stopped:
            self._try_again(due, error.error)
        else:
            self._failed(error)
            self._fire_waiting()

    def _try_again(self, due: SyncJob, error: OSError) -> None:
        """
        A file could not be opened, so no sync has failed.
        """
        self._due = due.merged_with(self._due)
        self._runtime.health.failed(self._what, error)
        self._retry_timer = self._runtime.clock.callLater(_AGAIN_S, self._begin)

    @property
    def _what(self) -> str:
        return f"the sync of {self._segment_list.folder.name}"


class FlushPolicy:
    """
    Decides when a partition is synced although nobody waits for it.
    """

    __slots__ = ("_count", "_runtime", "_segment_list", "_sync", "_timer", "_writing")

    def __init__(self, segment_list: SegmentList, runtime: LogRuntime, sync: Callable[[], None]) -> None:
        self._segment_list = segment_list
        self._runtime = runtime
        self._sync = sync
        self._count = 0  # records since the last sync was asked for
        self._timer: IDelayedCall | None = None
        self._writing = False

    def wrote(self, config: TopicConfig, count: int) -> None:
        self._count += count
        self._sync_in_time(config)
        self._write_early()

    def configured(self, config: TopicConfig) -> None:
        """
        Apply the present config to the records that are not synced.
        """
        if self._count:
            self._cancel_timer()
            self._sync_in_time(config)

    def stop(self) -> None:
        self._count = 0
        self._cancel_timer()

    def _sync_in_time(self, config: TopicConfig) -> None:
        if self._count >= config.flush_messages:
            self._sync_now()
        elif self._timer is None and config.flush_ms < LONG_MAX:
            self._timer = self._runtime.clock.callLater(config.flush_ms / 1000, self._sync_now)

    def _cancel_timer(self) -> None:
        if self._timer and self._timer.active():
            self._timer.cancel()
        self._timer = None

    def _sync_now(self) -> None:
        self.stop()
        self._sync()

    def _write_early(self) -> None:
        segment = self._segment_list.segments[-1]
        part = None if self._writing else segment.write_early_part(EARLY_BYTES)
        if part:
            self._writing = True
            file = self._runtime.files.hold(segment.path)

            def done(_: object) -> None:
                self._writing = False
                self._runtime.files.release(file)

            self._runtime.in_thread(lambda: file.write_early(*part)).addBoth(done)
