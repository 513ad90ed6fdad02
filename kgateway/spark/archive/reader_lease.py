"""
Keeps one state of an archive readable. Jobs that merge files remove the earlier ones, so a reader links the files of
its manifest into a folder of its own.

    _reading/3f2a.../_lock             locked while the reader lives
    _reading/3f2a.../12/*.parquet      the files of manifest 12

The folder of a killed reader is not locked any more. The next reader removes it, or the next job that archives.
"""

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.manifest import Manifest
from kgateway.spark.errors import Unreadable

READING = "_reading"
LOCK = "_lock"
_ATTEMPTS = 20  # to link files while another job merges them


@dataclass(frozen=True, slots=True)
class LeasedArchive:
    """
    A state of an archive, and the paths of its files.
    """

    manifest: Manifest
    paths: tuple[PurePath, ...]


@contextmanager
def leased(folder: Folder) -> Iterator[LeasedArchive]:
    """
    The newest state, which remains readable. Where links cannot be made, files are read where they are, and may vanish.
    """
    remove_stale_leases(folder)
    with ExitStack() as stack:
        yield _snapshot(folder, _own(Path(folder.path), stack) if folder.is_here else None)


def remove_stale_leases(folder: Folder) -> None:
    """
    Remove the folders of killed readers. In a filer there are none.
    """
    for path in Path(folder.path / READING).glob("*") if folder.is_here else ():
        with suppress(OSError):
            os.rmdir(path)  # a reader was killed before it made its lock
        with suppress(OSError):
            descriptor = os.open(path / LOCK, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
            finally:
                os.close(descriptor)


def _own(folder: Path, stack: ExitStack) -> Path | None:
    """
    A locked private folder, which is removed when the stack closes; None if it cannot be created.
    """
    for _ in range(_ATTEMPTS):
        path = folder / READING / uuid.uuid4().hex
        try:
            path.parent.mkdir(exist_ok=True)
            path.mkdir()
            descriptor = os.open(path / LOCK, os.O_RDWR | os.O_CREAT)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except FileNotFoundError:  # another process has taken the folder for a stale one
            continue
        except OSError:
            return None
        if (path / LOCK).exists():
            stack.callback(shutil.rmtree, path, ignore_errors=True)
            return path
    return None


def _snapshot(folder: Folder, own: Path | None) -> LeasedArchive:
    missing = ""
    for _ in range(_ATTEMPTS):
        manifest = folder.manifests.newest()
        if manifest is None:
            raise Unreadable(f"there is no archive in {folder.path}: no manifest")
        try:
            return LeasedArchive(manifest, _paths(folder, manifest, own))
        except FileNotFoundError as error:
            missing = str(error.filename or error)
    raise Unreadable(f"{missing} is part of the archive, but missing: run `kgateway spark verify` for details")


def _paths(folder: Folder, manifest: Manifest, own: Path | None) -> tuple[PurePath, ...]:
    """
    The paths of this state's files. FileNotFoundError where one is missing, as when it has just been replaced.
    """
    if own is not None:
        try:
            return _linked(folder, manifest, own / str(manifest.number))
        except FileNotFoundError:
            raise
        except OSError:  # this file system has no links
            pass
    return tuple(folder.find(file.name) for file in manifest.files)


def _linked(folder: Folder, manifest: Manifest, into: Path) -> tuple[PurePath, ...]:
    into.mkdir(exist_ok=True)
    for file in manifest.files:
        with suppress(FileExistsError):  # an earlier attempt has linked it
            os.link(folder.find(file.name), into / file.name)
    return (into,) if manifest.files else ()
