"""
Imports the ledgers that earlier versions have stored as messages of a topic: `offset-mappings` in the namespace
`kafka-system`. The topic is read once, and never written to.

    /topics/kafka-system/offset-mappings/.kgateway/imported     the topic was read

A message has a part of a ledger. The key says whose, by topic id and the first of 32 slots for each partition:

    byte  size
       0    16  topic id
      16     4  first slot, 32 times the partition's index
      20     4  last slot

The value has rows of one section, in big-endian numbers:

    byte  size
       0     1  version                1
       1     1  whether a message of the topic is a batch
       2     4  epoch of the leader
       6     8  Kafka's offset before which nothing counts any more
      14     8  nanoseconds of the generation
      22     8  range that the cluster gave the partition: its start, and its stop
      30     8  number of the first row
      38     4  how many rows there are
      42        the columns of the rows, one after the other
             4  CRC-32C of all before

The rows of a later message replace those with their numbers, and all after them. What does not fit together is left
out: a partition compares its ledger with its log files, and reads from them what is missing.
"""

import sys
from array import array
from collections.abc import Iterable, Mapping
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c
from twisted.logger import Logger

from kgateway.broker.seaweed.calls.retries import Precondition
from kgateway.broker.seaweedmq.files.partition_files import PartitionFiles
from kgateway.broker.seaweedmq.files.range_reader import RangeCache
from kgateway.broker.seaweedmq.gateway_runtime import GatewayRuntime
from kgateway.broker.seaweedmq.layout.topic_file import folders_of
from kgateway.broker.seaweedmq.layout.topic_paths import RingRange, side_folder
from kgateway.broker.seaweedmq.ledger.ledger import COLUMN_TYPES, Columns, Ledger
from kgateway.broker.seaweedmq.ledger.snapshot import Snapshot
from kgateway.broker.seaweedmq.partitions.side_files import FilerSideFiles
from kgateway.broker.seaweedmq.topics.catalog import StoredTopic, TopicCatalog
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.log_messages import LEDGERS_IMPORTED
from kgateway.plurals import counted
from kgateway.topic_partition import PartitionId
from kgateway.wire.uuids import Uuid

TOPIC = "offset-mappings"
_VERSION = 1
_SLOTS = 32
_KEY = Struct(">16sii")
_HEAD = Struct(">BBiqqiiqi")
_CRC = Struct(">I")


class LedgerPart(NamedTuple):
    batched: bool
    epoch: int
    start: int
    unix_time_ns: int
    part: RingRange
    first_row: int
    columns: Columns

    @property
    def stop(self) -> int:
        return self.first_row + len(self.columns[0])

    def cut(self, stop: int) -> "LedgerPart":
        return self._replace(columns=tuple(column[: stop - self.first_row] for column in self.columns))


def read_part(data: bytes) -> LedgerPart | None:
    """
    The part of a ledger in the value of a message; `None` if it cannot be read.
    """
    body = data[: -_CRC.size]
    if len(body) < _HEAD.size or _CRC.pack(crc32c(body)) != data[-_CRC.size :]:
        return None
    version, batched, epoch, start, unix_time_ns, *part, first_row, count = _HEAD.unpack_from(body)
    if version != _VERSION:
        return None
    columns, pos = [], _HEAD.size
    for letter in COLUMN_TYPES:
        column = array(letter)
        column.frombytes(body[pos : pos + count * column.itemsize])
        if sys.byteorder == "little":
            column.byteswap()
        columns.append(column)
        pos += count * column.itemsize
    return LedgerPart(bool(batched), epoch, start, unix_time_ns, RingRange(*part), first_row, tuple(columns))


def read_ledgers(messages: Iterable[tuple[bytes, bytes]]) -> dict[PartitionId, Snapshot]:
    """
    The ledgers that these keys and values describe.
    """
    parts: dict[PartitionId, list[LedgerPart]] = {}
    for key, value in messages:
        part = read_part(value)
        if part and len(key) == _KEY.size:
            topic_id, first_slot, _ = _KEY.unpack(key)
            _add(parts.setdefault(PartitionId(Uuid(topic_id), first_slot // _SLOTS), []), part)
    return {owner: _joined(found) for owner, found in parts.items()}


def _add(parts: list[LedgerPart], part: LedgerPart) -> None:
    if parts and part.epoch < parts[-1].epoch:
        return  # of a gateway that did not lead any more
    while parts and parts[-1].first_row >= part.first_row:
        parts.pop()
    if parts and parts[-1].stop < part.first_row:
        parts.clear()  # rows between them are missing
    if parts:
        parts[-1] = parts[-1].cut(part.first_row)
    parts.append(part)


def _joined(parts: list[LedgerPart]) -> Snapshot:
    first, last = parts[0], parts[-1]
    ledger = Ledger(first.batched, first.unix_time_ns, first.part)
    for part in parts:
        ledger.begin(part.unix_time_ns, part.part)
        ledger.rows.extend(part.columns)
    ledger.drop_before(last.start)
    return Snapshot(ledger, last.epoch)


class LedgerImport:
    _log = Logger()

    def __init__(self, gateway: GatewayRuntime, check_lease: Precondition) -> None:
        self._gateway = gateway
        self._topics = TopicCatalog(gateway.seaweed, f"{gateway.namespace}-system")
        self._check_lease = check_lease

    async def import_all(self, topics: Iterable[StoredTopic]) -> None:
        """
        Save the ledgers of these topics that are in the topic of ledgers and not saved yet, unless it was read before.
        """
        filer, folder = await self._gateway.seaweed.filer(), self._topics.folder(TOPIC)
        marker = f"{folder}/.kgateway/imported"
        if not await self._topics.is_there(TOPIC) or await filer.entry(marker):
            return
        found = await self._read()
        for stored in topics:
            for index in range(stored.file.partition_count):
                owner = PartitionId(stored.file.id, index)
                if owner in found:
                    await self._save(stored.name, owner, found[owner])
        await filer.write(marker, b"", self._check_lease)
        self._log.warn(LEDGERS_IMPORTED, ledgers=counted(len(found), "ledger"), folder=folder)

    async def _read(self) -> Mapping[PartitionId, Snapshot]:
        seen = await self._topics.read(TOPIC)
        if seen is None:
            return {}
        gateway, file = self._gateway, seen.stored.file
        folders = folders_of(file, TOPIC, 0, self._topics.namespace)
        files = PartitionFiles(gateway.seaweed, folders, file.format, RangeCache(0), gateway.reactor)
        await files.refresh()
        messages: list[tuple[bytes, bytes]] = []
        async for _, piece in files.messages(EARLIEST_OFFSET, lambda *_: None):
            messages += [(entry.key, entry.value) for entry in piece]
        return read_ledgers(messages)

    async def _save(self, topic: str, owner: PartitionId, snapshot: Snapshot) -> None:
        folder = side_folder(topic, owner.index, self._gateway.namespace)
        filer = await self._gateway.seaweed.filer()
        if await filer.entry(f"{folder}/ledger") is None:
            await FilerSideFiles(self._gateway.seaweed, folder, self._check_lease).store_ledger(snapshot, owner)
