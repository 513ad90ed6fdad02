"""
The manifest of an archive: its tiles, in order of partition and offset.

    _manifest/00000000000000000012.json    {"crc32c": "a1b2c3d4", "manifest": {...}}

Each change is a new file with the next number and the whole state. It is written under another name, and linked to its
own only if no other job has made one of that number. So a reader of the newest manifest has a state that existed, and a
job that finds its number taken knows that another job works on the archive, and ends. Only some of the newest are kept,
so a job whose number has been removed is detected by the higher numbers.

The tiles of a partition follow one another without a hole. A tile is a file, or a gap of offsets that the log had lost
before they could be archived.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import PurePath
from typing import Any

import crc32c

from kgateway.spark.archive.store import Store, read_file, remove_all
from kgateway.spark.errors import Unreadable, Unwritten

SUFFIX = ".parquet"
_TOPIC_MAX = 120  # characters of the topic in a file's name, which must fit into 255 bytes
_NAME = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)-(?P<first>\d{20})-(?P<last>\d{20})-\d+-[0-9a-f]{8}\.parquet")
FOLDER = "_manifest"
_VERSION = 2
_VERSIONS = (1, _VERSION)  # version 1 is from before compaction
_KEPT = 10
_DIGITS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """
    The offsets of a partition from the first to the last, inclusive.
    """

    partition: int
    first: int
    last: int

    @property
    def range(self) -> str:
        return f"offset {self.first}" if self.first == self.last else f"offsets {self.first} to {self.last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap(Tile):
    """
    Offsets that the log had lost when they were to be archived, as by retention or DeleteRecords.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class File(Tile):
    """
    A file, and what it must contain.
    """

    name: str
    count: int  # records
    markers: int  # offsets of control records of transactions
    aborted: int  # offsets of records that were aborted
    checksum: str  # of the records
    raw_bytes: int  # of keys, values and headers
    bytes: int  # of the file
    crc: str  # of the file
    removed: int = 0  # records that compaction of the archive has removed

    @property
    def compacted(self) -> int:
        """
        Offsets that compaction had removed from the log before they were archived.
        """
        return self.last - self.first + 1 - self.count - self.markers - self.aborted - self.removed


def file_name(topic: str, tile: Tile, count: int, checksum: str) -> str:
    return f"{topic[:_TOPIC_MAX]}-{tile.partition}-{tile.first:020}-{tile.last:020}-{count}-{checksum}{SUFFIX}"


def tile_of_name(topic: str, name: str) -> Tile | None:
    """
    The offsets in a file's name; None where the name is no such name, or of another topic.
    """
    match = _NAME.fullmatch(name)
    if match is None or match["topic"] != topic[:_TOPIC_MAX]:
        return None
    return Tile(partition=int(match["partition"]), first=int(match["first"]), last=int(match["last"]))


def to_json(tile: File | Gap) -> dict[str, Any]:
    return asdict(tile)


def of_json(document: dict[str, Any]) -> File | Gap:
    return File(**document) if "name" in document else Gap(**document)


def holes(tiles: list[Tile]) -> list[tuple[Tile, Tile]]:
    """
    Neighbours with a hole between them, or that overlap.
    """
    return [(one, other) for one, other in pairwise(tiles) if one.last + 1 != other.first]


class ArchiveTaken(Unwritten):
    """
    Another job works on the archive.
    """


class ManifestDamaged(Unreadable):
    """
    A manifest has changed since it was written.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """
    Which topic is archived, and how it is read. Ids are empty where the source has none.
    """

    topic: str
    topic_id: str = ""
    cluster_id: str = ""
    isolation: str = "read_committed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Removals:
    """
    How often compaction has removed records from the archive, and the latest times before which it was allowed to.
    """

    count: int = 0
    before_ms: int | None = None  # any records
    tombstones_before_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    identity: Identity
    number: int = 0
    tiles: tuple[File | Gap, ...] = ()  # in order of partition and offset
    planned: tuple[tuple[int, int, int], ...] = ()  # partition, start and end of what is being written
    leaving: tuple[str, ...] = ()  # files that have been replaced
    removals: Removals = field(default_factory=Removals)

    @property
    def files(self) -> list[File]:
        return [tile for tile in self.tiles if isinstance(tile, File)]

    @property
    def ends(self) -> dict[int, int]:
        return {tile.partition: tile.last + 1 for tile in self.tiles}

    def of(self, partition: int) -> list[File | Gap]:
        return [tile for tile in self.tiles if tile.partition == partition]

    def with_tiles(self, new: Sequence[File | Gap], without: Sequence[File] = ()) -> "Manifest":
        """
        The state with these tiles added, and others removed.
        """
        gone = {file.name for file in without}
        kept = [tile for tile in self.tiles if not (isinstance(tile, File) and tile.name in gone)]
        tiles = sorted([*kept, *new], key=lambda tile: (tile.partition, tile.first))
        return replace(self, tiles=tuple(tiles), planned=(), leaving=tuple(sorted(gone)))


@dataclass(frozen=True, slots=True)
class Manifests:
    folder: PurePath
    store: Store

    def newest(self) -> Manifest | None:
        while numbers := self._numbers():
            try:
                return self.read(numbers[-1])
            except FileNotFoundError:
                continue  # it has just been removed as one of the oldest
        return None

    def read(self, number: int) -> Manifest:
        """
        Read one state; FileNotFoundError if it does not exist.
        """
        path = self._path(number)
        try:
            document = json.loads(read_file(self.store, path))
            body = document["manifest"]
            is_whole = crc_of(body) == document["crc32c"]
        except (ValueError, TypeError, KeyError):
            is_whole = False
        if not is_whole:
            raise ManifestDamaged(f"{path} is damaged: its content is not what was written")
        if body["version"] not in _VERSIONS:
            raise ManifestDamaged(
                f"{path} is of version {body['version']}; this program knows up to version {_VERSION}"
            )
        return _of_json(body)

    def commit(self, manifest: Manifest) -> Manifest:
        """
        Write the next state; ArchiveTaken if another job has written one.
        """
        made = replace(manifest, number=manifest.number + 1)
        self._check_newest(manifest.number)
        self._make(made)
        try:
            self._check_newest(made.number)
        except ArchiveTaken:
            remove_all(self.store, self.folder, [self._path(made.number).name])
            raise
        remove_all(self.store, self.folder, [self._path(number).name for number in self._numbers()[:-_KEPT]])
        return made

    def _make(self, made: Manifest) -> None:
        body, path, making = _to_json(made), self._path(made.number), self.store.make(self.folder)
        try:
            making.write(json.dumps({"crc32c": crc_of(body), "manifest": body}, indent=1).encode())
            making.finish(path.name)
        except FileExistsError:
            raise self._taken(made.number) from None
        finally:
            making.discard()

    def _check_newest(self, number: int) -> None:
        """
        Raise ArchiveTaken where there are higher numbers. The next number may be free all the same: the other job may
        have removed its manifest already.
        """
        if above := [one for one in self._numbers() if one > number]:
            raise self._taken(above[-1])

    def _taken(self, number: int) -> ArchiveTaken:
        path = self._path(number)
        return ArchiveTaken(f"another job has written {path} meanwhile: is one still running on this archive?")

    def _numbers(self) -> list[int]:
        names = self.store.names(self.folder)
        stems = [name.removesuffix(".json") for name in names if name.endswith(".json")]
        return sorted(int(stem) for stem in stems if stem.isdecimal() and len(stem) == _DIGITS)

    def _path(self, number: int) -> PurePath:
        return self.folder / f"{number:0{_DIGITS}}.json"


def crc_of(body: Any) -> str:
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
