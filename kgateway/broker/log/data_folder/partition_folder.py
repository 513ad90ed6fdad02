"""
The folders of partitions, `TOPIC-INDEX`, and the file in each that names the topic:

    partition.metadata      version: 0
                            topic_id: 7Zr8m0aXSZOGT2wGJMVfJg

The folders of a deleted topic become `TOPIC-INDEX.ID-delete`, and are removed when there is time. Folders that belong
to no topic are kept as `TOPIC-INDEX.N-stray`.

The sizes of partitions are summed up in a thread, when an administrator asks, and not counted while records are
written.
"""

import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path

from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.segments.file_names import LOG, numbered
from kgateway.cluster.partition import UNKNOWN_BYTES, DiskUsage
from kgateway.cluster.view import Topic
from kgateway.topic_partition import PartitionId
from kgateway.wire.uuids import Uuid

METADATA = "partition.metadata"
DELETED = "-delete"
STRAY = "-stray"
_TOPIC_ID = re.compile(r"version: 0\ntopic_id: (\S{22})\n")
_PARTITION = re.compile(r"[A-Za-z0-9._-]+-[0-9]+")
_NAME_MAX = 255
_STRAY_MAX = 240


def folder_of(data: Path, topic: Topic, index: int) -> Path:
    return data / f"{topic.name}-{index}"


def prepare_folder(disk: Disk, data: Path, topic: Topic, index: int) -> Path:
    """
    Make the folder of a partition, if there is none. A folder of an older topic of the same name is renamed before.
    """
    folder = folder_of(data, topic, index)
    disk.make_folder(folder)
    if METADATA in disk.names(folder):
        found = topic_id_of(disk.read(folder / METADATA))
        if found == topic.id:
            return folder
        if found is not None:
            mark_deleted(disk, folder, found)
            disk.make_folder(folder)
    disk.write(folder / METADATA, f"version: 0\ntopic_id: {topic.id}\n".encode(), sync=False)
    return folder


def mark_deleted(disk: Disk, folder: Path, topic_id: Uuid) -> None:
    """
    Rename a folder, so that it will be removed.
    """
    topic, _, index = folder.name.rpartition("-")
    mark = f"-{index}.{topic_id}{DELETED}"
    disk.rename(folder, folder.with_name(topic[: _NAME_MAX - len(mark)] + mark))


def rename_strays(disk: Disk, data: Path, topics: Iterable[Topic]) -> list[str]:
    """
    Rename folders that belong to no topic, so that they are in no new topic's way: a crash in the middle of a deletion
    leaves some. Returns their new names.
    """
    known = {folder_of(data, topic, index).name for topic in topics for index in range(len(topic.partitions))}
    names = disk.names(data)
    moved = list[str]()
    for name in names:
        if _PARTITION.fullmatch(name) and name not in known:
            aside = next(aside for n in count() if (aside := f"{name[:_STRAY_MAX]}.{n}{STRAY}") not in names)
            disk.rename(data / name, data / aside)
            moved.append(aside)
    if moved:
        disk.sync_folder(data)
    return moved


def remove_deleted(disk: Disk, data: Path) -> None:
    """
    Remove the folders of deleted topics. Those that cannot be removed now are tried again at the next deletion or
    start.
    """
    for name in disk.names(data):
        if name.endswith(DELETED):
            with suppress(OSError):
                for inside in disk.names(data / name):
                    disk.remove(data / name / inside)
                disk.remove(data / name)


def topic_id_of(data: bytes) -> Uuid | None:
    """
    The topic id in the file; `None` if a crash has left it unfinished.
    """
    match = _TOPIC_ID.fullmatch(data.decode("ascii", "replace"))
    with suppress(ValueError):
        return Uuid.parse(match[1]) if match else None
    return None


def disk_usage(path: Path, disk: Disk, partitions: Iterable[tuple[Topic, int]]) -> DiskUsage:
    """
    Sum up the segments of these partitions. One without a folder has had no records yet.
    """
    sizes = {PartitionId(topic.id, index): _size(folder_of(path, topic, index), disk) for topic, index in partitions}
    return DiskUsage(sizes, *_disk_total_and_free(path))


def _size(folder: Path, disk: Disk) -> int:
    try:
        files = disk.names(folder)
    except FileNotFoundError:
        return 0
    return sum(size for name, size in files.items() if (found := numbered(name)) and found[1] == LOG)


def _disk_total_and_free(path: Path) -> tuple[int, int]:
    try:
        room = shutil.disk_usage(path)
    except OSError:
        return UNKNOWN_BYTES, UNKNOWN_BYTES
    return room.total, room.free
