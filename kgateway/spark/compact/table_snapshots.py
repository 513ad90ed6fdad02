"""
Tables of latest values in a folder. The newest one counts.

    current -> _snapshots/00000000000000000003
    _snapshots/00000000000000000003/part-00000-....parquet
    _snapshots/00000000000000000003/_snapshot.json            what it was made from, and up to where
    _snapshots/.making-...                                    one that is being written

A table is written under a name of its own. When it is complete on the disk it gets the next number, which makes it the
newest at once, and `current` is pointed to it. A killed job leaves an unfinished table, which the next job removes, and
at worst an old `current`, which the next job repairs. The previous table is kept for those who still read it.
A job locks the folder `_snapshots`; the lock of a killed job vanishes with its process.
"""

import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kgateway.client.offsets import Extent
from kgateway.spark.archive.manifest import ArchiveTaken, Identity, ManifestDamaged, crc_of
from kgateway.spark.archive.store import LocalStore
from kgateway.spark.compact.table_sources import SourceState

CURRENT = "current"
FACTS = "_snapshot.json"
_FOLDER = "_snapshots"
_MAKING = ".making-"
_LINK = ".link-"
_DIGITS = 20
_KEPT = 2
_VERSION = 1
_sync_folder = LocalStore().sync


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """
    The source of a table, and the number of records of each partition.
    """

    number: int
    state: SourceState
    keep_tombstones: bool
    keep_keyless: bool
    counts: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Snapshots:
    path: Path

    def newest(self) -> Snapshot | None:
        numbers = self._numbers()
        return self._read(numbers[-1]) if numbers else None

    def files(self, snapshot: Snapshot) -> list[Path]:
        return sorted(self._place(snapshot.number).glob("*.parquet"))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """
        Lock the folder, because another job would remove unfinished files of this one; ArchiveTaken if it is locked.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def repair(self) -> None:
        """
        Remove what a killed job has left, and point `current` to the newest table.
        """
        for path in self._folder.glob(f"{_LINK}*"):
            path.unlink()
        for path in self._folder.glob(f"{_MAKING}*"):
            shutil.rmtree(
                path, ignore_errors=True
            )  # Spark may still be writing for a killed job; the next job removes that
        if numbers := self._numbers():
            self._turn(numbers[-1])

    def new_folder(self) -> Path:
        return self._folder / f"{_MAKING}{uuid.uuid4().hex}"

    def publish(self, snapshot: Snapshot, made: Path) -> None:
        """
        Make a table the newest; ArchiveTaken if another job has published this number.
        """
        body = _to_json(snapshot)
        (made / FACTS).write_text(json.dumps({"crc32c": crc_of(body), "snapshot": body}, indent=1))
        for path in made.iterdir():
            _sync(path)
        _sync_folder(made)
        place = self._place(snapshot.number)
        try:
            made.rename(place)
        except OSError as error:
            raise ArchiveTaken(
                f"another job has created {place} meanwhile: is one still running? {error.strerror}"
            ) from None
        _sync_folder(self._folder)
        if (newest := self._numbers()[-1]) != snapshot.number:  # a faster job has removed its table of this number
            shutil.rmtree(place)
            raise ArchiveTaken(f"another job has created {self._place(newest)} meanwhile: is one still running?")
        self._turn(snapshot.number)
        for number in self._numbers()[:-_KEPT]:
            shutil.rmtree(self._place(number))

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ArchiveTaken(f"another job is working on {self.path}: wait until it has ended") from None

    @property
    def _folder(self) -> Path:
        return self.path / _FOLDER

    def _place(self, number: int) -> Path:
        return self._folder / f"{number:0{_DIGITS}}"

    def _numbers(self) -> list[int]:
        names = os.listdir(self._folder) if self._folder.exists() else []
        return sorted(int(name) for name in names if name.isdecimal() and len(name) == _DIGITS)

    def _turn(self, number: int) -> None:
        aim, link = f"{_FOLDER}/{number:0{_DIGITS}}", self.path / CURRENT
        if link.is_symlink() and os.readlink(link) == aim:
            return
        part = self._folder / f"{_LINK}{uuid.uuid4().hex}"
        part.symlink_to(aim)
        os.replace(part, link)
        _sync_folder(self.path)

    def _read(self, number: int) -> Snapshot:
        path = self._place(number) / FACTS
        try:
            document = json.loads(path.read_bytes())
            body = document["snapshot"]
            is_whole = crc_of(body) == document["crc32c"] and body["version"] == _VERSION
        except (OSError, ValueError, TypeError, KeyError):
            is_whole = False
        if not is_whole:
            raise ManifestDamaged(
                f"{path} is damaged or missing: remove its folder, and the table is rebuilt from scratch"
            )
        return _of_json(body)


def _sync(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _to_json(snapshot: Snapshot) -> dict[str, Any]:
    state = snapshot.state
    return {
        "version": _VERSION,
        "number": snapshot.number,
        "made_of": state.kind,
        **asdict(state.identity),
        "changes": state.changes,
        "keep_tombstones": snapshot.keep_tombstones,
        "keep_keyless": snapshot.keep_keyless,
        "partitions": [
            {"partition": index, "start": extent.start, "end": extent.end, "records": snapshot.counts.get(index, 0)}
            for index, extent in state.extents.items()
        ],
    }


def _of_json(body: dict[str, Any]) -> Snapshot:
    names = ("topic", "topic_id", "cluster_id", "isolation")
    partitions = body["partitions"]
    state = SourceState(
        kind=body["made_of"],
        identity=Identity(**{name: body[name] for name in names}),
        extents={partition["partition"]: Extent(partition["start"], partition["end"]) for partition in partitions},
        changes=body["changes"],
    )
    return Snapshot(
        number=body["number"],
        state=state,
        keep_tombstones=body["keep_tombstones"],
        keep_keyless=body["keep_keyless"],
        counts={partition["partition"]: partition["records"] for partition in partitions},
    )
