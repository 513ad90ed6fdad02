"""
The folders of partitions, `TOPIC-INDEX`, and the file in each that says which topic of that name it is of:

    partition.metadata      version: 0
                            topic_id: 7Zr8m0aXSZOGT2wGJMVfJg

A topic that is deleted leaves its folders as `TOPIC-INDEX.ID-delete`, and they are removed when there is time. Folders
that belong to no topic are kept as `TOPIC-INDEX.N-stray`.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path

from kgateway.broker.log.disk import Disk
from kgateway.cluster.view import Topic
from kgateway.wire.uuids import Uuid

METADATA = "partition.metadata"
DELETED = "-delete"
STRAY = "-stray"
_TOPIC_ID = re.compile(r"version: 0\ntopic_id: (\S{22})\n")
_PARTITION = re.compile(r"[A-Za-z0-9._-]+-[0-9]+")
_NAME_MAX = 255
_STRAY_MAX = 240


def folder_of(data: Path, topic: Topic, index: int) -> Path:
    """
    Where a partition is.
    """
    return data / f"{topic.name}-{index}"


def prepare(disk: Disk, data: Path, topic: Topic, index: int) -> Path:
    """
    The folder of a partition, made where it is not there. One that an older topic of the same name has left is put
    out of the way.
    """
    folder = folder_of(data, topic, index)
    disk.make_folder(folder)
    if METADATA in disk.names(folder):
        found = topic_id_of(disk.read(folder / METADATA))
        if found == topic.id:
            return folder
        if found is not None:
            put_away(disk, folder, found)
            disk.make_folder(folder)
    disk.write(folder / METADATA, f"version: 0\ntopic_id: {topic.id}\n".encode(), sync=False)
    return folder


def put_away(disk: Disk, folder: Path, topic_id: Uuid) -> None:
    """
    Give a folder the name under which it will be removed.
    """
    topic, _, index = folder.name.rpartition("-")
    mark = f"-{index}.{topic_id}{DELETED}"
    disk.rename(folder, folder.with_name(topic[: _NAME_MAX - len(mark)] + mark))


def put_strays_aside(disk: Disk, data: Path, topics: Iterable[Topic]) -> list[str]:
    """
    Folders that belong to no topic get out of the way of topics to come: a crash in the middle of a deletion leaves
    some. What is in them stays. Their new names.
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
    Remove what deleted topics have left. What cannot be removed now stays for another time.
    """
    for name in disk.names(data):
        if name.endswith(DELETED):
            with suppress(OSError):
                for inside in disk.names(data / name):
                    disk.remove(data / name / inside)
                disk.remove(data / name)


def topic_id_of(data: bytes) -> Uuid | None:
    """
    Which topic the file names; `None` where a crash has left it unfinished.
    """
    match = _TOPIC_ID.fullmatch(data.decode("ascii", "replace"))
    with suppress(ValueError):
        return Uuid.parse(match[1]) if match else None
    return None
