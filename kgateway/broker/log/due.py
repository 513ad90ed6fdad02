"""
What of a partition is to be synced, and how that is done.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kgateway.broker.aborted import ABORTED_INDEX
from kgateway.broker.epochs import EPOCH_FILE
from kgateway.broker.log.disk import Disk, File, NotOpened
from kgateway.broker.log.segment import file_name
from kgateway.broker.log.segment_indexes import INDEX, TIME_INDEX
from kgateway.broker.producer_snapshots import SNAPSHOT


class NotTried(Exception):
    """
    A file or folder could not be opened, as where a process has too many: nothing was synced in vain, and it can be
    tried again.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class Doubtful(NamedTuple):
    """
    A part of a file that may be seen, and synced in vain, because an earlier sync has failed.
    """

    path: Path
    position: int
    size: int


@dataclass(slots=True)
class Due:
    """
    Files, as far as they are still there, and folders; and what is to be written again before.
    """

    doubtful: list[Doubtful] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)  # whose names are new

    def add_folder(self, folder: Path) -> None:
        """
        There are names in it that are not synced.
        """
        if folder not in self.folders:
            self.folders.append(folder)

    def and_then(self, more: "Due") -> "Due":
        """
        This, and what has become due since.
        """
        both = Due(self.doubtful + more.doubtful, self.files + more.files, [*self.folders])
        for folder in more.folders:
            both.add_folder(folder)
        return both

    def sync(self, disk: Disk, logs: list[File], synced: set[Path], go_on: Callable[[], None] = lambda: None) -> None:
        """
        Write again what is doubtful, sync open files and others, and then the names of all; but not the names of
        folders that were synced already. Before each of these `go_on` may raise what it likes to end it.
        """
        for step in self._steps(disk, logs, synced):
            go_on()
            step()

    def _steps(self, disk: Disk, logs: list[File], synced: set[Path]) -> Iterator[Callable[[], None]]:
        for part in self.doubtful:
            yield partial(_write_again, disk, part)
        for log in logs:
            yield log.sync
        for path in self.files:
            yield partial(_sync, disk, path)
        for folder in self.folders:
            if folder not in synced:
                yield partial(_sync_folder, disk, folder)
                synced.add(folder)  # now that it is done


def files_beside(log: Path, next_offset: int) -> list[Path]:
    """
    What tells of a segment and of all before it.
    """
    indexes = [log.with_suffix(suffix) for suffix in (INDEX, TIME_INDEX, ABORTED_INDEX)]
    return [*indexes, log.with_name(file_name(next_offset, SNAPSHOT)), log.with_name(EPOCH_FILE)]


def _write_again(disk: Disk, part: Doubtful) -> None:
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
