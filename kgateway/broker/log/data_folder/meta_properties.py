"""
Whose a folder is: Kafka's file `meta.properties`, lines KEY=VALUE.

    kgateway.format=1                       ours alone: the form of everything in the folder
    version=1                               Kafka's form of this file
    cluster.id=MkU3OEVBNTcwNTJENDM2Qg
    directory.id=2aVnXVTvT1q0kVBXWFl3bA
    node.id=1

It is put in its place whole, and before any other file of the folder but the lock: a folder without it is either new,
or somebody else's: then nothing in it is touched.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kgateway.broker.log.data_folder.folder_error import OTHER, FolderError
from kgateway.broker.log.data_folder.folder_lock import LOCK
from kgateway.broker.log.data_folder.start_file import START
from kgateway.broker.log.files.disk import TEMPORARY, Disk
from kgateway.wire.uuids import Uuid

META = "meta.properties"
FORMAT = 1
EMPTY = {LOCK, "lost+found"}  # what a folder may have that counts as empty
_FORMAT_KEY, _VERSION_KEY, _VERSION = "kgateway.format", "version", "1"
_NEWER = re.compile("[0-9]{1,9}")
_KAFKA_LOG = "__cluster_metadata-0"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Meta:
    cluster_id: str
    directory_id: Uuid
    node_id: int

    @classmethod
    def fresh(cls, node_id: int) -> Self:
        return cls(str(Uuid.random()), Uuid.random(), node_id)

    def encoded(self) -> bytes:
        lines = {
            _FORMAT_KEY: FORMAT,
            _VERSION_KEY: _VERSION,
            "cluster.id": self.cluster_id,
            "directory.id": self.directory_id,
            "node.id": self.node_id,
        }
        return "".join(f"{key}={value}\n" for key, value in lines.items()).encode()


def read_meta(path: Path, disk: Disk) -> Meta | None:
    """
    Read whose the folder is; `None` if it has nothing but what an interrupted first start leaves. Raises FolderError if
    it is not a gateway's, or cannot be understood.
    """
    names = disk.names(path)
    lines = _lines(disk.read(path / META)) if META in names else {}
    if _FORMAT_KEY in lines:
        return _understood(path, lines)
    if _KAFKA_LOG in names or _VERSION_KEY in lines:
        raise FolderError(f"{path} is the data directory of an Apache Kafka broker; {OTHER}")
    if META in names:
        raise _damaged(path, f"has no line {_FORMAT_KEY}")
    if START in names:
        raise _damaged(path, "is missing")
    _check_empty(path, names)
    return None


def _lines(data: bytes) -> dict[str, str]:
    pairs = [line.partition("=") for line in data.decode("latin-1").splitlines() if not line.startswith(("#", "!"))]
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}


def _understood(path: Path, lines: Mapping[str, str]) -> Meta:
    form = lines[_FORMAT_KEY]
    if _NEWER.fullmatch(form) and int(form) > FORMAT:
        raise FolderError(
            f"{path} was written by a newer kgateway; format {form}, this one reads {FORMAT}: start the newer one"
        )
    for key, wanted in ((_FORMAT_KEY, str(FORMAT)), (_VERSION_KEY, _VERSION)):
        if lines.get(key) != wanted:
            raise _damaged(path, f"does not have the line {key}={wanted}")
    try:
        cluster_id, directory_id = Uuid.parse(lines["cluster.id"]), Uuid.parse(lines["directory.id"])
        return Meta(str(cluster_id), directory_id, int(lines["node.id"]))
    except KeyError as missing:
        raise _damaged(path, f"has no line {missing.args[0]}") from None
    except ValueError as wrong:
        raise _damaged(path, f"has an invalid value: {wrong}") from None


def _check_empty(path: Path, names: Collection[str]) -> None:
    halves = {name for name in names if name.startswith(f"{META}.") and name.endswith(TEMPORARY)}
    others = sorted({*names} - halves - EMPTY)
    if others:
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        raise FolderError(f"{path} holds files that are not kgateway's: {', '.join(others[:_SHOWN])}{more}; {OTHER}")


def _damaged(path: Path, how: str) -> FolderError:
    keys = f"{_FORMAT_KEY}={FORMAT}, {_VERSION_KEY}={_VERSION}, cluster.id, directory.id and node.id"
    return FolderError(f"{path / META} {how}; restore it from a copy, or write these lines into it: {keys}")
