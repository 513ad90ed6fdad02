"""
Makes what a partition has written outlast the machine: in a thread, one sync at a time.

What is written while one runs is synced with the next, however many batches that are; so the more producers wait, the
more of them one sync serves. A sync that fails is not tried again: the system has forgotten by then what it could not
write, and a second try would succeed without having written it.
"""

from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.broker.log.disk import Disk, File
from kgateway.broker.log.epochs import EPOCH_FILE
from kgateway.broker.log.partition_log import End, PartitionLog
from kgateway.broker.log.parts import LogParts
from kgateway.broker.log.producer_snapshots import SNAPSHOT
from kgateway.broker.log.segment import INDEX, TIME_INDEX, file_name

T = TypeVar("T")


def files_beside(log: Path, next_offset: int) -> list[Path]:
    """
    What tells of a segment and of all before it.
    """
    indexes = [log.with_suffix(INDEX), log.with_suffix(TIME_INDEX)]
    return [*indexes, log.with_name(file_name(next_offset, SNAPSHOT)), log.with_name(EPOCH_FILE)]


class Doubtful(NamedTuple):
    """
    A part of a file that may be seen, and synced in vain, because an earlier sync has failed.
    """

    path: Path
    position: int
    size: int


class Syncing:
    """
    The syncs of one partition.
    """

    __slots__ = (
        "_again",
        "_beside",
        "_doubtful",
        "_failed",
        "_folders",
        "_log",
        "_parts",
        "_running",
        "_sealed",
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
        self._waiting: list[Deferred[None]] = []
        self._sealed: list[Path] = []  # logs that are full and were not synced since
        self._doubtful = doubtful
        self._beside: list[Path] = []  # small files that belong to them
        self._folders = [log.folder, log.folder.parent]  # whose names are new
        names = parts.files.disk.names(log.folder)
        for segment, following in pairwise(log.segments):
            if segment.next_offset > begin:  # it was full, and its process died before it was synced
                beside = files_beside(segment.path, following.base_offset)
                self.note(segment.path, *[path for path in beside if path.name in names])

    def note(self, log: Path, *beside: Path) -> None:
        """
        A segment is full, and there is a new one.
        """
        self._sealed.append(log)
        self._beside += beside
        if self._log.folder not in self._folders:
            self._folders.append(self._log.folder)

    def finish(self, beside: list[Path]) -> Deferred[None]:
        """
        Sync all that is written by now, these files too, and fire when that has ended, well or not.
        """
        ended: Deferred[None] = Deferred()
        self._beside += beside
        if self._log.folder not in self._folders:
            self._folders.append(self._log.folder)
        self._waiting.append(ended)
        self.request()
        return ended

    def stop(self) -> None:
        """
        Touch no file any more: there may soon be others of their names.
        """
        self._stopped = True

    def request(self) -> None:
        """
        Sync all that is written by now.
        """
        if self._stopped:
            self._end()
            return
        if self._running:
            self._again = True
            return
        self._again, self._running = False, True
        end, files = self._log.end, self._parts.files
        logs = [*self._sealed, self._log.segments[-1].path]
        doubtful, beside, folders = self._doubtful, self._beside, self._folders
        self._doubtful, self._sealed, self._beside, self._folders = [], [], [], []
        held = list[File]()
        try:
            for path in logs:
                held.append(files.hold(path))
        except OSError as error:
            self._let_go(None, held)
            self._failed(error)
            self._end()
            return
        syncing = self._parts.syncs.do(partial(sync_all, files.disk, doubtful, held, beside, folders))
        syncing.addBoth(self._let_go, held).addCallback(self._done, end).addErrback(self._broken)

    def _let_go(self, result: T, held: list[File]) -> T:
        for file in held:
            self._parts.files.let_go(file)
        return result

    def _done(self, _: object, end: End) -> None:
        self._running = False
        self._synced(end)
        if self._again:
            self.request()
        else:
            self._end()

    def _end(self) -> None:
        waiting, self._waiting = self._waiting, []
        for ended in waiting:
            ended.callback(None)

    def _broken(self, failure: Failure) -> None:
        assert failure.value
        self._failed(failure.value)
        self._end()


def sync_all(disk: Disk, doubtful: list[Doubtful], logs: list[File], beside: list[Path], folders: list[Path]) -> None:
    """
    Write again what is doubtful, sync open files, others that are there, and then the names of all.
    """
    for part in doubtful:
        with closing(disk.open(part.path)) as file:
            file.write_again(part.position, part.size)
    for log in logs:
        log.sync()
    for path in beside:
        with suppress(FileNotFoundError), closing(disk.open(path)) as file:
            file.sync()
    for folder in folders:
        disk.sync_folder(folder)
