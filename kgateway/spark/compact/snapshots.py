"""
Tables of latest values in a folder, one after the other, of which the newest counts.

    current -> _snapshots/00000000000000000003
    _snapshots/00000000000000000003/part-00000-....parquet
    _snapshots/00000000000000000003/_snapshot.json            what it is made of, and up to where
    _snapshots/.making-...                                    one that is being written

A table is written under a name of its own. When all of it is on the disk it gets the next number, which makes it the
newest at once, and `current` is turned to it. A job that is killed leaves what is begun, which the next one removes,
and at worst `current` as it was, which the next one mends. The one before stays, for those who read it just then.
The folder `_snapshots` is locked by the job that is at work; the lock of one that is killed goes with it.
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
from kgateway.spark.archive.manifest import Damaged, Identity, Taken, crc_of
from kgateway.spark.archive.store import LocalStore
from kgateway.spark.compact.sources import State

CURRENT = "current"
FACTS = "_snapshot.json"
_FOLDER = "_snapshots"
_MAKING = ".making-"
_LINK = ".link-"
_DIGITS = 20
_KEPT = 2
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """
    What a table is made of, and how many records of each partition it has.
    """

    number: int
    state: State
    keep_tombstones: bool
    keep_keyless: bool
    counts: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Snapshots:
    """
    The tables of one topic.
    """

    path: Path

    def newest(self) -> Snapshot | None:
        """
        The last one that was made; none where there is none yet.
        """
        numbers = self._numbers()
        return self._read(numbers[-1]) if numbers else None

    def files(self, snapshot: Snapshot) -> list[Path]:
        """
        Where its records are.
        """
        return sorted(self._place(snapshot.number).glob("*.parquet"))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """
        Keep other jobs away meanwhile: they would remove what this one has begun. Taken where one is at work already.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def put_in_order(self) -> None:
        """
        Remove what a job has left that was killed, and have `current` be the newest.
        """
        for path in self._folder.glob(f"{_LINK}*"):
            path.unlink()
        for path in self._folder.glob(f"{_MAKING}*"):
            shutil.rmtree(path, ignore_errors=True)  # what Spark still writes for a job that was killed goes next time
        if numbers := self._numbers():
            self._turn(numbers[-1])

    def making(self) -> Path:
        """
        Where the next one may be written.
        """
        return self._folder / f"{_MAKING}{uuid.uuid4().hex}"

    def publish(self, snapshot: Snapshot, made: Path) -> None:
        """
        Make it the newest. Taken where somebody else has made one of this number.
        """
        body = _to_json(snapshot)
        (made / FACTS).write_text(json.dumps({"crc32c": crc_of(body), "snapshot": body}, indent=1))
        for path in made.iterdir():
            _sync(path)
        _settle(made)
        place = self._place(snapshot.number)
        try:
            made.rename(place)
        except OSError as error:
            raise Taken(f"another job has made {place} meanwhile: is there one running? {error.strerror}") from None
        _settle(self._folder)
        if (newest := self._numbers()[-1]) != snapshot.number:  # the others have removed theirs of this number
            shutil.rmtree(place)
            raise Taken(f"another job has made {self._place(newest)} meanwhile: is there one running?")
        self._turn(snapshot.number)
        for number in self._numbers()[:-_KEPT]:
            shutil.rmtree(self._place(number))

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Taken(f"another job is at work on {self.path}: wait until it has ended") from None

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
        _settle(self.path)

    def _read(self, number: int) -> Snapshot:
        path = self._place(number) / FACTS
        try:
            told = json.loads(path.read_bytes())
            body = told["snapshot"]
            is_whole = crc_of(body) == told["crc32c"] and body["version"] == _VERSION
        except (OSError, ValueError, TypeError, KeyError):
            is_whole = False
        if not is_whole:
            raise Damaged(f"{path} is damaged, or not there: remove its folder, and the table is made from scratch")
        return _of_json(body)


_settle = LocalStore().settle


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
    state = State(
        kind=body["made_of"],
        identity=Identity(**{name: body[name] for name in names}),
        extents={one["partition"]: Extent(one["start"], one["end"]) for one in partitions},
        changes=body["changes"],
    )
    return Snapshot(
        number=body["number"],
        state=state,
        keep_tombstones=body["keep_tombstones"],
        keep_keyless=body["keep_keyless"],
        counts={one["partition"]: one["records"] for one in partitions},
    )
