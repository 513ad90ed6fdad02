"""
What an archive of a topic has: the manifest.

    _manifest/00000000000000000012.json    {"crc32c": "a1b2c3d4", "manifest": {...}}

Each change is a new file with the next number and all that there is; it is made whole under another name, and linked to
its own only if nobody else has made one of that number. So who reads the newest has a state that was, and a job that
finds its number taken knows that another job works on the archive, and ends. Only some of the newest are kept; so a job
whose number is there no more is known by those above it.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePath
from typing import Any

import crc32c

from kgateway.spark.archive.store import Store, read, remove_all
from kgateway.spark.archive.tiles import File, Gap, of_json, to_json
from kgateway.spark.failures import Unreadable, Unwritten

FOLDER = "_manifest"
_VERSION = 2
_VERSIONS = (1, _VERSION)  # the first one does not know compaction
_KEPT = 10
_DIGITS = 20


class Taken(Unwritten):
    """
    Another job writes to the archive.
    """


class Damaged(Unreadable):
    """
    A manifest is not what was written.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """
    Which topic it is, and how it is read. Ids are empty where the place that is read has none.
    """

    topic: str
    topic_id: str = ""
    cluster_id: str = ""
    isolation: str = "read_committed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Removals:
    """
    What compaction has removed from the archive: how often it did, and the times before which it was allowed to, the
    latest of each.
    """

    count: int = 0
    before_ms: int | None = None  # any records
    tombstones_before_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """
    One state of an archive.
    """

    identity: Identity
    number: int = 0
    tiles: tuple[File | Gap, ...] = ()  # in order of partition and offset
    planned: tuple[tuple[int, int, int], ...] = ()  # partition, start and end of what is being written
    leaving: tuple[str, ...] = ()  # files that others have taken the place of
    removals: Removals = field(default_factory=Removals)

    @property
    def files(self) -> list[File]:
        """
        All files.
        """
        return [tile for tile in self.tiles if isinstance(tile, File)]

    @property
    def ends(self) -> dict[int, int]:
        """
        The offset behind the last one of each partition.
        """
        return {tile.partition: tile.last + 1 for tile in self.tiles}

    def of(self, partition: int) -> list[File | Gap]:
        """
        The tiles of a partition.
        """
        return [tile for tile in self.tiles if tile.partition == partition]

    def with_tiles(self, new: Sequence[File | Gap], without: Sequence[File] = ()) -> "Manifest":
        """
        More of them, and some of them no more.
        """
        gone = {file.name for file in without}
        kept = [tile for tile in self.tiles if not (isinstance(tile, File) and tile.name in gone)]
        tiles = sorted([*kept, *new], key=lambda tile: (tile.partition, tile.first))
        return replace(self, tiles=tuple(tiles), planned=(), leaving=tuple(sorted(gone)))


@dataclass(frozen=True, slots=True)
class Manifests:
    """
    Those of one archive.
    """

    folder: PurePath
    store: Store

    def newest(self) -> Manifest | None:
        """
        The state of the archive; none where there is no archive yet.
        """
        while numbers := self._numbers():
            try:
                return self.read(numbers[-1])
            except FileNotFoundError:
                continue  # it was one of the oldest meanwhile
        return None

    def read(self, number: int) -> Manifest:
        """
        One of them. FileNotFoundError where it is not there.
        """
        path = self._path(number)
        try:
            told = json.loads(read(self.store, path))
            body = told["manifest"]
            is_whole = crc_of(body) == told["crc32c"]
        except (ValueError, TypeError, KeyError):
            is_whole = False
        if not is_whole:
            raise Damaged(f"{path} is damaged: it is not what was written")
        if body["version"] not in _VERSIONS:
            raise Damaged(f"{path} is of version {body['version']}; this program knows up to version {_VERSION}")
        return _of_json(body)

    def commit(self, manifest: Manifest) -> Manifest:
        """
        The next state. Taken where somebody else has made that.
        """
        made = replace(manifest, number=manifest.number + 1)
        self._check_newest(manifest.number)
        self._make(made)
        try:
            self._check_newest(made.number)
        except Taken:
            remove_all(self.store, self.folder, [self._path(made.number).name])
            raise
        remove_all(self.store, self.folder, [self._path(number).name for number in self._numbers()[:-_KEPT]])
        return made

    def _make(self, made: Manifest) -> None:
        body, path, making = _to_json(made), self._path(made.number), self.store.make(self.folder)
        try:
            making.write(json.dumps({"crc32c": crc_of(body), "manifest": body}, indent=1).encode())
            making.name(path.name)
        except FileExistsError:
            raise self._taken(made.number) from None
        finally:
            making.give_up()

    def _check_newest(self, number: int) -> None:
        """
        Taken where others are further than this. The next number may be free, though they have been there: they have
        removed it.
        """
        if above := [one for one in self._numbers() if one > number]:
            raise self._taken(above[-1])

    def _taken(self, number: int) -> Taken:
        path = self._path(number)
        return Taken(f"another job has written {path} meanwhile: is there one running on this archive?")

    def _numbers(self) -> list[int]:
        names = self.store.names(self.folder)
        stems = [name.removesuffix(".json") for name in names if name.endswith(".json")]
        return sorted(int(stem) for stem in stems if stem.isdecimal() and len(stem) == _DIGITS)

    def _path(self, number: int) -> PurePath:
        return self.folder / f"{number:0{_DIGITS}}.json"


def crc_of(body: Any) -> str:
    """
    The checksum that stands beside a body of JSON.
    """
    return f"{crc32c.crc32c(json.dumps(body, sort_keys=True).encode()):08x}"


def _to_json(manifest: Manifest) -> dict[str, Any]:
    identity = manifest.identity
    return {
        "version": _VERSION,
        "number": manifest.number,
        "topic": identity.topic,
        "topic_id": identity.topic_id,
        "cluster_id": identity.cluster_id,
        "isolation": identity.isolation,
        "tiles": [to_json(tile) for tile in manifest.tiles],
        "planned": [list(one) for one in manifest.planned],
        "leaving": list(manifest.leaving),
        "removals": asdict(manifest.removals),
    }


def _of_json(body: dict[str, Any]) -> Manifest:
    names = ("topic", "topic_id", "cluster_id", "isolation")
    return Manifest(
        identity=Identity(**{name: body[name] for name in names}),
        number=body["number"],
        tiles=tuple(of_json(tile) for tile in body["tiles"]),
        planned=tuple((partition, start, end) for partition, start, end in body["planned"]),
        leaving=tuple(body["leaving"]),
        removals=Removals(**body.get("removals", {})),
    )
