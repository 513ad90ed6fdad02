"""
Calls fsync: which files and folders one sync covers, and the few threads that all syncs share. Jobs that arrive while
the threads are busy are done together by the one that is free first; a thread for each would cost more than its sync.

After a crash, parts after the recovery point are written a second time before they are synced: unsynced_parts.py finds
them, and docs/decisions/0004-log.md, "A failed sync", says why.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.broker.log.files.disk import Disk, File, NotOpened
from kgateway.broker.log.segments.file_names import file_name
from kgateway.broker.log.segments.index import INDEX, TIME_INDEX
from kgateway.broker.partition.leader_epochs import EPOCH_FILE
from kgateway.broker.partition.producer_snapshot import SNAPSHOT
from kgateway.broker.partition.transactions import ABORTED_INDEX

_TOGETHER_MAX = 64  # jobs

CheckRunning = Callable[[], None]
# Takes the folders that were synced since the thread began, and adds its own; calls CheckRunning before each step.
Work = Callable[[set[Path], CheckRunning], None]


class NotTried(Exception):
    """
    A file or folder could not be opened, as when a process has too many: no sync has failed, and it can be tried again.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class UnsyncedPart(NamedTuple):
    """
    A part of a file that an earlier process may have tried to sync in vain.
    """

    path: Path
    position: int
    size: int


@dataclass(slots=True)
class SyncJob:
    """
    What one sync covers: parts to write again first, files as far as they still exist, and folders.
    """

    unsynced: list[UnsyncedPart] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)  # whose names are new

    @property
    def is_empty(self) -> bool:
        return not (self.unsynced or self.files or self.folders)

    def add_folder(self, folder: Path) -> None:
        if folder not in self.folders:
            self.folders.append(folder)

    def merged_with(self, more: "SyncJob") -> "SyncJob":
        both = SyncJob(self.unsynced + more.unsynced, self.files + more.files, [*self.folders])
        for folder in more.folders:
            both.add_folder(folder)
        return both

    def sync(self, disk: Disk, logs: list[File], synced: set[Path], check_running: CheckRunning = lambda: None) -> None:
        """
        Write unsynced parts again, sync open files and others, then the folders that are not yet in `synced`.
        `check_running` is called before each step and may raise to end the job.
        """
        for step in self._steps(disk, logs, synced):
            check_running()
            step()

    def _steps(self, disk: Disk, logs: list[File], synced: set[Path]) -> Iterator[Callable[[], None]]:
        for part in self.unsynced:
            yield partial(_write_again, disk, part)
        for log in logs:
            yield log.sync
        for path in self.files:
            yield partial(_sync, disk, path)
        for folder in self.folders:
            if folder not in synced:
                yield partial(_sync_folder, disk, folder)
                synced.add(folder)  # now that it is done


def side_files_of(log: Path, next_offset: int) -> list[Path]:
    """
    The side files of a segment, which cover everything before `next_offset`.
    """
    indexes = [log.with_suffix(suffix) for suffix in (INDEX, TIME_INDEX, ABORTED_INDEX)]
    return [*indexes, log.with_name(file_name(next_offset, SNAPSHOT)), log.with_name(EPOCH_FILE)]


def _write_again(disk: Disk, part: UnsyncedPart) -> None:
    with suppress(FileNotFoundError), _opened(disk, part.path) as file:
        file.write_again(part.position, part.size)


def _sync(disk: Disk, path: Path) -> None:
    with suppress(FileNotFoundError), _opened(disk, path) as file:
        file.sync()


def _sync_folder(disk: Disk, folder: Path) -> None:
    try:
        disk.sync_folder(folder)
    except NotOpened as error:
        raise NotTried(error) from None


@contextmanager
def _opened(disk: Disk, path: Path) -> Iterator[File]:
    try:
        file = disk.open(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise NotTried(error) from None
    with closing(file):
        yield file


class _Stopped(Exception):
    pass


class SyncPool:
    """
    Jobs that wait for one of a few threads.
    """

    def __init__(self, in_thread: Callable[[Callable[[], Any]], Deferred[Any]], threads: int = 2) -> None:
        self._in_thread = in_thread
        self._free = threads
        self._waiting: list[tuple[Work, Deferred[None]]] = []
        self._is_stopped = False

    def run(self, work: Work) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        self._waiting.append((work, done))
        self._start()
        return done

    def stop(self) -> None:
        """
        Begin no more jobs. A job under way ends after its present step; nothing fires for those that were not finished.
        """
        self._is_stopped = True
        self._waiting.clear()

    def _start(self) -> None:
        if not self._free or not self._waiting or self._is_stopped:
            return
        self._free -= 1
        taken, self._waiting = self._waiting[:_TOGETHER_MAX], self._waiting[_TOGETHER_MAX:]
        works = [work for work, _ in taken]
        self._in_thread(partial(_outcomes, works, self._check_not_stopped)).addBoth(
            self._ended, [done for _, done in taken]
        )

    def _ended(self, outcomes: list[Failure | None] | Failure, waiting: list[Deferred[None]]) -> None:
        self._free += 1
        self._start()
        for number, done in enumerate(waiting):
            outcome = outcomes if isinstance(outcomes, Failure) else outcomes[number]
            if outcome is None:
                done.callback(None)
            elif not outcome.check(_Stopped):
                done.errback(outcome)

    def _check_not_stopped(self) -> None:
        if self._is_stopped:
            raise _Stopped


def _outcomes(works: list[Work], check_running: CheckRunning) -> list[Failure | None]:
    synced = set[Path]()
    return [_outcome(work, synced, check_running) for work in works]


def _outcome(work: Work, synced: set[Path], check_running: CheckRunning) -> Failure | None:
    try:
        work(synced, check_running)
    except Exception:
        return Failure()
    return None
