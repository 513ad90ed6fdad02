"""
One process's use of a data folder: how the last one left it, the number of this start, and the lock.

    meta.properties         whose it is (meta_properties.py)
    .lock                   the process that uses it (folder_lock.py)
    kgateway.start          {"start_number": 7, "boot_id": "a3627ebf-..."}
    .kafka_cleanshutdown    {"version": 0, "brokerEpoch": 7}; there from when everything is synced until the next start
    NAME...tmp              a file that was not yet in its place when its process ended; removed

The start is counted, then the clean marker is removed, and both are synced before anything else is written.

`boot_id` names the boot of the machine since which the checkpoints are true: while the machine has not restarted, the
kernel still has what was not synced. After a crash of the machine it is null until the new process has saved
checkpoints of its own: if that crashes earlier, its successor must not trust the old ones.
"""

import json
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from errno import EACCES, EINVAL, ENOSYS, EOPNOTSUPP, EPERM, EROFS
from pathlib import Path
from typing import Protocol, Self

from kgateway.broker.log.data_folder.checkpoints import CLEANED_OFFSETS, LOG_STARTS, SETTLED, SYNCED
from kgateway.broker.log.data_folder.config_file import CONFIGS
from kgateway.broker.log.data_folder.folder_error import ANOTHER, FolderError, refusing
from kgateway.broker.log.data_folder.folder_lock import LOCK, FolderLock
from kgateway.broker.log.data_folder.meta_properties import EMPTY, META, Meta, read_meta
from kgateway.broker.log.data_folder.producer_ids import PRODUCER_IDS
from kgateway.broker.log.data_folder.start_file import START, LastEnd, Start, damaged_start, read_start
from kgateway.broker.log.data_folder.topic_journal import TOPICS
from kgateway.broker.log.files.disk import TEMPORARY, Disk
from kgateway.wire.uuids import Uuid

CLEAN = ".kafka_cleanshutdown"
OWN_FILES = {LOCK, META, START, CLEAN, TOPICS, CONFIGS, PRODUCER_IDS, SYNCED, SETTLED, LOG_STARTS, CLEANED_OFFSETS}
_CLEAN_VERSION = 0
_NEVER_SYNCED = (EACCES, EPERM, EROFS, EINVAL, ENOSYS, EOPNOTSUPP)


class HeldLock(Protocol):
    """
    A lock that this process holds.
    """

    def release(self) -> None: ...


_NO_START = Start(0, None)


def this_boot() -> str | None:
    """
    The boot id: Linux draws one each time the machine starts.
    """
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None


@dataclass(frozen=True, slots=True)
class FolderSession:
    """
    One process's use of a folder, from when it is opened until it is closed.
    """

    path: Path
    meta: Meta
    was_clean: bool  # everything here was synced, and closed
    same_boot: bool  # everything here is as it was written, synced or not
    start_number: int  # no other start has it
    is_new: bool  # this session has made the folder
    _boot_id: str | None
    _disk: Disk
    _lock: HeldLock

    @classmethod
    def open(
        cls,
        path: Path,
        disk: Disk,
        node_id: int,
        *,
        boot_id: Callable[[], str | None] = this_boot,
        lock: Callable[[Path], HeldLock] = FolderLock,
    ) -> Self:
        """
        Take the folder, which is made if it does not exist. Raises FolderError if it cannot be used.
        """
        with refusing(path, "made"):
            is_new = not _exists(path, disk)
            disk.make_folder(path)
        with refusing(path), ExitStack() as undo:
            _meta(path, disk, node_id)  # a folder that is not ours does not even get a lock
            folder_lock = lock(path)
            undo.callback(folder_lock.release)
            # Until now another process may have been at work here.
            meta = _meta(path, disk, node_id) or _fresh_meta(path, disk, node_id)
            opened = cls._started(path, meta, disk, boot_id(), folder_lock, is_new)
            undo.pop_all()
        return opened

    @classmethod
    def _started(
        cls, path: Path, meta: Meta, disk: Disk, boot_id: str | None, folder_lock: HeldLock, is_new: bool
    ) -> Self:
        last, was_clean = _last_start(path, disk)
        same_boot = last.is_of(boot_id)
        may_record_boot = was_clean or same_boot or last == _NO_START
        number = last.number + 1
        disk.write(path / START, Start(number, boot_id if may_record_boot else None).encoded(), sync=True)
        if was_clean:
            disk.remove(path / CLEAN)
            disk.sync_folder(path)
        return cls(path, meta, was_clean, same_boot, number, is_new, boot_id, disk, folder_lock)

    @property
    def cluster_id(self) -> str:
        return self.meta.cluster_id

    @property
    def directory_id(self) -> Uuid:
        return self.meta.directory_id

    @property
    def node_id(self) -> int:
        return self.meta.node_id

    @property
    def last_end(self) -> LastEnd:
        if self.was_clean:
            return LastEnd.CLEAN_STOP
        return LastEnd.PROCESS_CRASHED if self.same_boot else LastEnd.MACHINE_CRASHED

    def record_boot(self) -> None:
        """
        Record the boot id: from now on the checkpoints claim nothing that this boot of the machine has not seen.
        """
        self._disk.write(self.path / START, Start(self.start_number, self._boot_id).encoded(), sync=True)

    def mark_clean(self) -> None:
        """
        Note that everything is synced, and nothing more will be written.
        """
        written = {"version": _CLEAN_VERSION, "brokerEpoch": self.start_number}
        self._disk.write(self.path / CLEAN, json.dumps(written).encode(), sync=True)

    def close(self) -> None:
        self._lock.release()

    def give_back(self) -> None:
        """
        Undo a start that failed before there were topics, so that the next one finds the folder as this one did, or
        finds none. Files of others in a new folder stay, and the folder with them.
        """
        try:
            with suppress(OSError):
                if self.is_new:
                    self._remove()
                elif self.was_clean:
                    self.mark_clean()
        finally:
            self.close()

    def _remove(self) -> None:
        for name in self._disk.names(self.path):
            if name in OWN_FILES or name.endswith(TEMPORARY):
                self._disk.remove(self.path / name)
        self._disk.remove(self.path)


def _exists(folder: Path, disk: Disk) -> bool:
    try:
        disk.names(folder)
    except FileNotFoundError:
        return False
    except OSError:
        pass  # something is there, though nobody can look into it
    return True


def _meta(path: Path, disk: Disk, node_id: int) -> Meta | None:
    meta = read_meta(path, disk)
    if meta and meta.node_id != node_id:
        raise FolderError(
            f"{path} belongs to node {meta.node_id}, but this gateway is node {node_id}: start it with "
            f"--node-id={meta.node_id}, or {ANOTHER}"
        )
    return meta


def _fresh_meta(path: Path, disk: Disk, node_id: int) -> Meta:
    for folder in path.absolute().parents:
        try:
            disk.sync_folder(folder)  # the path to a new folder is to be synced, too
        except OSError as error:
            if error.errno not in _NEVER_SYNCED:  # this process has made no name in these
                raise
    meta = Meta.fresh(node_id)
    disk.write(path / META, meta.encoded(), sync=True)
    return meta


def _last_start(path: Path, disk: Disk) -> tuple[Start, bool]:
    names = set(disk.names(path))
    halves = {name for name in names if name.endswith(TEMPORARY)}
    for name in halves:
        disk.remove(path / name)
    if START in names:
        return read_start(path / START, disk), CLEAN in names
    if names - halves - EMPTY - {META}:
        raise damaged_start(path / START, "is missing")
    return _NO_START, False
