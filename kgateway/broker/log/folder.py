"""
The folder of a log: how it was left, how often it was opened, and that no other process uses it.

    meta.properties         whose it is (folder_meta.py)
    .lock                   who uses it now (folder_lock.py)
    kgateway.start          {"start_number": 7, "boot_id": "a3627ebf-..."}
    .kafka_cleanshutdown    {"version": 0, "brokerEpoch": 7}; there from when all is synced until the folder is opened
    NAME...tmp              a file that was not yet in its place when its process ended; removed

The start is counted, then the marker is taken away, and both are sure before anything else is written.

`boot_id` is the boot of this machine in which all that is here was written, or checked; the kernel then still has what
was not synced. It is null from a start that finds what another boot has left until all of that is checked: if only this
process dies meanwhile, the next one must not take it for whole.
"""

import json
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from errno import EACCES, EINVAL, ENOSYS, EOPNOTSUPP, EPERM, EROFS
from pathlib import Path
from typing import Protocol, Self

from kgateway.broker.log.disk import TEMPORARY, Disk
from kgateway.broker.log.folder_error import FolderError, refusing
from kgateway.broker.log.folder_lock import FolderLock
from kgateway.broker.log.folder_meta import EMPTY, META, START, Meta, read_meta
from kgateway.broker.log.start_file import LastEnd, Start, damaged_start, read_start
from kgateway.wire.uuids import Uuid

CLEAN = ".kafka_cleanshutdown"
_CLEAN_VERSION = 0
_NEVER_SYNCED = (EACCES, EPERM, EROFS, EINVAL, ENOSYS, EOPNOTSUPP)


class Held(Protocol):
    """
    A lock that is held.
    """

    def release(self) -> None:
        """
        Give it back.
        """


_NO_START = Start(0, None)


def this_boot() -> str | None:
    """
    What Linux calls the time from the last power-on to the next.
    """
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None


@dataclass(frozen=True, slots=True)
class DataFolder:
    """
    A folder that is this process's from when it is opened until it is closed.
    """

    path: Path
    meta: Meta
    was_clean: bool  # all that is here was synced, and closed
    same_boot: bool  # all that is here is as it was last seen, synced or not
    start_number: int  # no other start has it
    _boot_id: str | None
    _disk: Disk
    _lock: Held

    @classmethod
    def open(
        cls,
        path: Path,
        disk: Disk,
        node_id: int,
        *,
        boot_id: Callable[[], str | None] = this_boot,
        lock: Callable[[Path], Held] = FolderLock,
    ) -> Self:
        """
        Take the folder, and make it where there is none; a FolderError where that cannot be.
        """
        with refusing(path, "made"):
            disk.make_folder(path)
        with refusing(path), ExitStack() as undo:
            _meta(path, disk, node_id)  # what is not ours does not even get a lock
            held = lock(path)
            undo.callback(held.release)
            # Until now another process may have been at work here.
            meta = _meta(path, disk, node_id) or _fresh_meta(path, disk, node_id)
            opened = cls._started(path, meta, disk, boot_id(), held)
            undo.pop_all()
        return opened

    @classmethod
    def _started(cls, path: Path, meta: Meta, disk: Disk, boot_id: str | None, held: Held) -> Self:
        last, was_clean = _left(path, disk)
        same_boot = last.is_of(boot_id)
        whole = was_clean or same_boot or last == _NO_START
        number = last.number + 1
        disk.write(path / START, Start(number, boot_id if whole else None).written, sync=True)
        if was_clean:
            disk.remove(path / CLEAN)
            disk.sync_folder(path)
        return cls(path, meta, was_clean, same_boot, number, boot_id, disk, held)

    @property
    def cluster_id(self) -> str:
        """
        Of the cluster that this folder is of.
        """
        return self.meta.cluster_id

    @property
    def directory_id(self) -> Uuid:
        """
        Of this folder.
        """
        return self.meta.directory_id

    @property
    def node_id(self) -> int:
        """
        Of the node that it belongs to.
        """
        return self.meta.node_id

    @property
    def last_end(self) -> LastEnd:
        """
        How its last process ended.
        """
        if self.was_clean:
            return LastEnd.IN_ORDER
        return LastEnd.BY_ITSELF if self.same_boot else LastEnd.WITH_THE_MACHINE

    def mark_recovered(self) -> None:
        """
        All that the last process left is checked now: what is here is as it was last seen for as long as the machine
        runs.
        """
        self._disk.write(self.path / START, Start(self.start_number, self._boot_id).written, sync=True)

    def mark_clean(self) -> None:
        """
        All that is here is synced, and nothing more will be written.
        """
        written = {"version": _CLEAN_VERSION, "brokerEpoch": self.start_number}
        self._disk.write(self.path / CLEAN, json.dumps(written).encode(), sync=True)

    def close(self) -> None:
        """
        Let others have it.
        """
        self._lock.release()

    def give_back(self) -> None:
        """
        Let others have it as it was found: a start that fails has changed nothing, and the next one is to know as much.
        """
        try:
            if self.was_clean:
                with suppress(OSError):
                    self.mark_clean()
        finally:
            self.close()


def _meta(path: Path, disk: Disk, node_id: int) -> Meta | None:
    meta = read_meta(path, disk)
    if meta and meta.node_id != node_id:
        raise FolderError(
            f"{path} belongs to node {meta.node_id}, and this gateway is node {node_id}: "
            f"give it --node-id={meta.node_id}, or another folder"
        )
    return meta


def _fresh_meta(path: Path, disk: Disk, node_id: int) -> Meta:
    for folder in path.absolute().parents:
        try:
            disk.sync_folder(folder)  # the path to a folder that was just made is to outlast the machine too
        except OSError as error:
            if error.errno not in _NEVER_SYNCED:  # nobody made a name in these
                raise
    meta = Meta.fresh(node_id)
    disk.write(path / META, meta.written, sync=True)
    return meta


def _left(path: Path, disk: Disk) -> tuple[Start, bool]:
    """
    The last start, and whether the marker is there.
    """
    names = set(disk.names(path))
    halves = {name for name in names if name.endswith(TEMPORARY)}
    for name in halves:
        disk.remove(path / name)
    if START in names:
        return read_start(path / START, disk), CLEAN in names
    if names - halves - EMPTY - {META}:
        raise damaged_start(path / START, "is missing")
    return _NO_START, False
