"""
An archive as it is at one moment, for who reads it for a while. Jobs that put files together remove the earlier ones,
so a reader links those of its manifest to where nobody does.

    _reading/3f2a.../_lock             locked as long as somebody reads
    _reading/3f2a.../12/*.parquet      the files of manifest 12

What a reader has left that was killed is not locked any more, and goes when the next one comes, or a job that archives.
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
from kgateway.spark.failures import Unreadable

READING = "_reading"
LOCK = "_lock"
_ATTEMPTS = 20  # to link files while another job puts them together


@dataclass(frozen=True, slots=True)
class Held:
    """
    A state of an archive, and where its files are.
    """

    manifest: Manifest
    paths: tuple[PurePath, ...]


@contextmanager
def held(folder: Folder) -> Iterator[Held]:
    """
    The newest state, which stays readable. Where nothing can be written or linked its files are read where they are,
    and may go meanwhile.
    """
    forget_the_killed(folder)
    with ExitStack() as stack:
        yield _snapshot(folder, _own(Path(folder.path), stack) if folder.is_here else None)


def forget_the_killed(folder: Folder) -> None:
    """
    Remove what readers have left that were killed. In a filer they leave nothing.
    """
    for path in Path(folder.path / READING).glob("*") if folder.is_here else ():
        with suppress(OSError):
            os.rmdir(path)  # one that never came to its lock
        with suppress(OSError):
            descriptor = os.open(path / LOCK, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
            finally:
                os.close(descriptor)


def _own(folder: Path, stack: ExitStack) -> Path | None:
    """
    A place that nobody else touches, until the stack ends.
    """
    for _ in range(_ATTEMPTS):
        path = folder / READING / uuid.uuid4().hex
        try:
            path.parent.mkdir(exist_ok=True)
            path.mkdir()
            descriptor = os.open(path / LOCK, os.O_RDWR | os.O_CREAT)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except FileNotFoundError:  # somebody has taken it for one that was left
            continue
        except OSError:
            return None
        if (path / LOCK).exists():
            stack.callback(shutil.rmtree, path, ignore_errors=True)
            return path
    return None


def _snapshot(folder: Folder, own: Path | None) -> Held:
    missing = ""
    for _ in range(_ATTEMPTS):
        manifest = folder.manifests.newest()
        if manifest is None:
            raise Unreadable(f"there is no archive in {folder.path}: no manifest")
        try:
            return Held(manifest, _paths(folder, manifest, own))
        except FileNotFoundError as error:
            missing = str(error.filename or error)
    raise Unreadable(f"{missing} is part of the archive, and not there: `kgateway spark verify` says more")


def _paths(folder: Folder, manifest: Manifest, own: Path | None) -> tuple[PurePath, ...]:
    """
    Where to read the files of this state. FileNotFoundError where one is not there, as when it was just taken away.
    """
    if own is not None:
        try:
            return _linked(folder, manifest, own / str(manifest.number))
        except FileNotFoundError:
            raise
        except OSError:  # no links here
            pass
    return tuple(folder.place(file.name) for file in manifest.files)


def _linked(folder: Folder, manifest: Manifest, into: Path) -> tuple[PurePath, ...]:
    into.mkdir(exist_ok=True)
    for file in manifest.files:
        with suppress(FileExistsError):  # of an attempt before
            os.link(folder.place(file.name), into / file.name)
    return (into,) if manifest.files else ()
