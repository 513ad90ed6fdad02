"""
Syncs what a partition has written: in a thread, one sync at a time.

If a sync has little to write, it is part of a trip that several partitions share (group_sync.py). Otherwise it waits
for a thread of a pool (fsync.py), so that the others do not wait for it.

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
from typing import NamedTuple

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.python.failure import Failure

from kgateway.broker.log.files.disk import File
from kgateway.broker.log.runtime import LogRuntime
from kgateway.broker.log.segments.fsync import NotTried, SyncJob, UnsyncedPart, side_files_of
from kgateway.broker.log.segments.group_sync import LogSync
from kgateway.broker.log.segments.segment import Segment
from kgateway.broker.log.segments.segment_list import LogEnd, SegmentList
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import LONG_MAX

_AGAIN_S = 1.0
_LITTLE_BYTES = 256 << 10
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
        "_synced_size",
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
        self._synced_size = 0  # what the last sync covers of the last segment, even if it is still under way
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
            if self._has_little:
                self._runtime.group_sync.request(self._begin_in_group)
            else:
                self._begin_in_pool()

    @property
    def _has_little(self) -> bool:
        return self._due.is_empty and self._segment_list.segments[-1].size - self._synced_size <= _LITTLE_BYTES

    def _begin_in_group(self) -> LogSync | None:
        """
        Begin a sync that was requested earlier. More may be due by now than a trip syncs, as after a new segment.
        """
        if self._stopped:
            self._fire_waiting()
        elif not self._due.is_empty:
            self._begin_in_pool()
        elif begun := self._begin():
            return LogSync(begun.log, partial(self._release, begun), partial(self._report, begun))
        return None

    def _begin_in_pool(self) -> None:
        if begun := self._begin():
            syncing = self._runtime.syncs.run(partial(begun.due.sync, self._runtime.files.disk, [begun.log]))
            syncing.addBoth(self._ended_in_pool, begun)

    def _ended_in_pool(self, result: Failure | None, begun: "_Begun") -> None:
        error = result.value if result else None
        self._release(begun, error)
        self._report(begun, error)

    def _begin(self) -> "_Begun | None":
        self._is_requested_again = False
        due, self._due = self._due, SyncJob()
        end = self._segment_list.end
        try:
            log = self._runtime.files.hold(self._segment_list.segments[-1].path)
        except OSError as error:
            self._try_again(due, error)
            return None
        self._synced_size = end.position
        waiting, self._waiting = self._waiting, []
        return _Begun(log, due, end, waiting)

    def _release(self, begun: "_Begun", error: BaseException | None) -> None:
        """
        A sync has ended: the next one may begin, unless this one has failed.
        """
        self._runtime.files.release(begun.log)
        if error is None:
            self._running = False
            if self._is_requested_again:
                self.request()

    def _report(self, begun: "_Begun", error: BaseException | None) -> None:
        if error is None:
            if self._runtime.health.failing:
                self._runtime.health.worked(self._what)
            self._synced(begun.end)
            for ended in begun.waiting:
                ended.callback(None)
            return
        self._waiting = begun.waiting + self._waiting
        if isinstance(error, NotTried) and not self._stopped:
            self._try_again(begun.due, error.error)
        else:
            self._failed(error)
            self._fire_waiting()

    def _fire_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for ended in waiting:
            ended.callback(None)

    def _try_again(self, due: SyncJob, error: OSError) -> None:
        """
        A file could not be opened, so no sync has failed.
        """
        self._due = due.merged_with(self._due)
        self._runtime.health.failed(self._what, error)
        self._retry_timer = self._runtime.clock.callLater(_AGAIN_S, self._begin_in_pool)

    @property
    def _what(self) -> str:
        return f"the sync of {self._segment_list.folder.name}"


class _Begun(NamedTuple):
    """
    A sync under way, the end of the log that it covers, and the Deferreds that wait for it.
    """

    log: File
    due: SyncJob
    end: LogEnd
    waiting: list[Deferred[None]]


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
        if self._count >= config.flush_messages or config.flush_ms < LONG_MAX:
            self._sync_in_time(config)
        segment = self._segment_list.segments[-1]
        if segment.size - segment.written_early >= EARLY_BYTES and not self._writing:
            self._write_early(segment)

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

    def _write_early(self, segment: Segment) -> None:
        self._writing = True
        part, file = segment.write_early_part(), self._runtime.files.hold(segment.path)

        def done(_: object) -> None:
            self._writing = False
            self._runtime.files.release(file)

        self._runtime.in_thread(lambda: file.write_early(*part)).addBoth(done)
