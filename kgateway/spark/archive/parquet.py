"""
Parquet files of an archive: written completely or not at all, and read back.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import crc32c
import pyarrow as pa
import pyarrow.parquet as pq

from kgateway.spark.archive.checksums import Checksum
from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.manifest import File, Identity, Tile, file_name
from kgateway.spark.archive.store import NewFile, Store
from kgateway.spark.decoders.columns import TYPES, kafka_columns
from kgateway.spark.errors import Unreadable

COLUMNS = tuple(kafka_columns(with_headers=True))
SCHEMA = pa.schema([pa.field(name, TYPES[name]) for name in COLUMNS])
GROUP_BYTES = 16 << 20  # of records in a row group, which is what a task has in memory
_PREFIX = "kgateway."
_REPEATING = ["key", "topic", "partition", "timestampType"]
_BY_DIFFERENCE = {"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"}
_READ_BYTES = 8 << 20
_IN_FOOTER = {"first": "first_offset", "last": "last_offset"} | {
    name: name for name in ("partition", "count", "markers", "aborted", "removed", "raw_bytes", "checksum")
}
_SINCE_COMPACTION = {"removed": "0"}  # files from before compaction lack it


@dataclass(frozen=True, slots=True)
class Target:
    """
    Which archive is written, and how.
    """

    folder: Folder
    identity: Identity
    file_bytes: int
    codec: str


class ChecksumSink:
    """
    Computes the CRC32C of what is written.
    """

    def __init__(self, making: NewFile) -> None:
        self.making = making
        self.crc = 0
        self.bytes = 0
        self.closed = False

    def write(self, data: Any) -> int:
        self.crc = crc32c.crc32c(data, self.crc)
        size = self.making.write(data)
        self.bytes += size
        return size

    def flush(self) -> None:
        pass  # `finish` makes the whole file durable

    def close(self) -> None:
        self.closed = True


@dataclass
class OutputFile:
    target: Target
    partition: int
    first: int
    checksum: Checksum = field(default_factory=Checksum)
    _waiting: list[pa.RecordBatch] = field(default_factory=list)
    _waiting_bytes: int = 0

    def __post_init__(self) -> None:
        folder = self.target.folder
        self._sink = ChecksumSink(folder.store.make(folder.staged))
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self._sink, "w"),
            SCHEMA,
            compression=self.target.codec,
            use_dictionary=_REPEATING,
            column_encoding=_BY_DIFFERENCE,
            write_statistics=["partition", "offset", "timestamp"],
        )

    def add(self, rows: pa.RecordBatch) -> None:
        self.checksum.add(rows)
        self._waiting.append(rows)
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes >= GROUP_BYTES:
            self._write()

    def end(self, last: int, markers: int, aborted: int, removed: int = 0) -> File:
        """
        Complete the file under the name that describes its contents. A file that has this name already is used in its
        place.
        """
        self._write()
        count, checksum, topic = self.checksum.count, self.checksum.text, self.target.identity.topic
        tile = Tile(partition=self.partition, first=self.first, last=last)
        facts: dict[str, Any] = {"name": file_name(topic, tile, count, checksum), "count": count, "markers": markers}
        facts |= {"aborted": aborted, "removed": removed, "checksum": checksum, "raw_bytes": self.checksum.bytes}
        facts |= {name: getattr(tile, name) for name in ("partition", "first", "last")}
        self._writer.add_key_value_metadata(_footer(self.target.identity, facts))
        self._writer.close()
        return self._named(File(**facts, bytes=self._sink.bytes, crc=f"{self._sink.crc:08x}"))

    def discard(self) -> None:
        self._writer.is_open = False  # or closing would write a footer
        self._sink.making.discard()

    def _write(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, SCHEMA)
            self._waiting, self._waiting_bytes = [], 0
            self._writer.write_table(table, row_group_size=max(table.num_rows, 1))

    def _named(self, made: File) -> File:
        folder = self.target.folder
        try:
            self._sink.making.finish(made.name)
        except FileExistsError:  # a task that was tried twice, or a killed job, has written it
            return file_of(folder.store, folder.staged / made.name)
        return made


def _footer(identity: Identity, facts: Mapping[str, Any]) -> dict[str, str]:
    entries = {"topic": identity.topic, "topic_id": identity.topic_id, "isolation": identity.isolation}
    entries |= {_IN_FOOTER[name]: str(facts[name]) for name in _IN_FOOTER}
    return {f"{_PREFIX}{name}": value for name, value in entries.items()}


def file_of(store: Store, path: PurePath) -> File:
    """
    What a file's footer says, with the checksum of its bytes.
    """
    entries = _SINCE_COMPACTION | footer(store, path)
    try:
        facts = {name: entries[at] for name, at in _IN_FOOTER.items()}
        checksum = facts.pop("checksum")
        numbers = {name: int(value) for name, value in facts.items()}
    except (KeyError, ValueError) as error:
        raise Unreadable(f"its footer does not describe its content: {error}") from None
    return File(name=path.name, checksum=checksum, bytes=size_of(store, path), crc=crc_of(store, path), **numbers)


def footer(store: Store, path: PurePath) -> dict[str, str]:
    try:
        with store.open(path) as file:
            metadata = pq.read_metadata(file).metadata or {}
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise Unreadable(f"it is not a Parquet file, or its footer is damaged: {first_line(error)}") from None
    pairs = {key.decode(errors="replace"): value.decode(errors="replace") for key, value in metadata.items()}
    return {name.removeprefix(_PREFIX): value for name, value in pairs.items() if name.startswith(_PREFIX)}


def size_of(store: Store, path: PurePath) -> int:
    with store.open(path) as file:
        return int(file.size())


def crc_of(store: Store, path: PurePath) -> str:
    crc = 0
    with store.open(path) as file:
        while data := file.read(_READ_BYTES):
            crc = crc32c.crc32c(data, crc)
    return f"{crc:08x}"


def rows_of(store: Store, path: PurePath, columns: Sequence[str] = COLUMNS) -> Iterator[pa.RecordBatch]:
    """
    The records of a file, a row group at a time. Other columns are not read.
    """
    wanted = pa.schema([SCHEMA.field(name) for name in columns])
    try:
        with store.open(path) as bytes_of, pq.ParquetFile(bytes_of) as file:
            for number in range(file.num_row_groups):
                table = file.read_row_group(number, columns=list(columns), use_threads=False)
                yield from table.select(columns).cast(wanted).combine_chunks().to_batches()
    except (pa.ArrowException, OSError, KeyError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise Unreadable(f"it cannot be read: {first_line(error)}") from None


def first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
