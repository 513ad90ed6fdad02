"""
What SeaweedMQ does not store of a partition, in a folder of ours beside the generations of its topic:

    /topics/kafka/TOPIC/.kgateway/INDEX/leader-epoch-checkpoint     as Kafka writes it
    /topics/kafka/TOPIC/.kgateway/INDEX/log-start-offset            before which all records are deleted: its digits
    /topics/kafka/TOPIC/.kgateway/INDEX/shown-end-offset            where consumers were when a broker was lost that had
                                                                    messages in memory: this offset, and the time of
                                                                    the message before it in nanoseconds
    /topics/kafka/TOPIC/.kgateway/INDEX/OFFSET.snapshot             the producers before that offset, as Kafka writes it
    /topics/kafka/TOPIC/.kgateway/INDEX/ledger                      the ledger (ledger/snapshot.py)
"""

import re

from kgateway.broker.partition.leader_epochs import EPOCH_FILE, LeaderEpochs
from kgateway.broker.partition.producer_snapshot import SNAPSHOT, encode_snapshot, load_snapshot
from kgateway.broker.partition.producer_state import ProducerTable
from kgateway.broker.seaweed.calls.retries import FilerRefused, Precondition, no_precondition
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.filer.content import FileNotFound
from kgateway.broker.seaweedmq.files.offset_continuity import ShownEnd
from kgateway.broker.seaweedmq.ledger.snapshot import Snapshot, decode, encode
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.topic_partition import PartitionId

_LOG_START = "log-start-offset"
_SHOWN_END = "shown-end-offset"
_TWO_NUMBERS = re.compile(rb"[0-9]{1,19} [0-9]{1,19}\n")
_LEDGER = "ledger"
_LEDGER_BYTES_MAX = 1 << 40
_LEDGER_S = 10.0  # a partition is not open before its ledger was read, or is to be rebuilt
_OFFSET = re.compile(rb"[0-9]{1,19}\n")
_SNAPSHOT = re.compile("([0-9]{20})" + re.escape(SNAPSHOT))


class FilerSideFiles:
    def __init__(self, seaweed: SeaweedCluster, folder: str, check_lease: Precondition = no_precondition) -> None:
        self._seaweed = seaweed
        self._folder = folder
        self._check_lease = check_lease  # called before each attempt to write

    async def epochs(self) -> LeaderEpochs:
        epochs = LeaderEpochs()
        content = await (await self._seaweed.filer()).content(f"{self._folder}/{EPOCH_FILE}")
        if content is not None:
            epochs.read(content)
        return epochs

    async def store_epochs(self, epochs: LeaderEpochs) -> None:
        await self._write(EPOCH_FILE, epochs.encoded())

    async def log_start(self) -> int:
        """
        The offset before which all records are deleted; raises FilerRefused if the file is damaged.
        """
        path = f"{self._folder}/{_LOG_START}"
        content = await (await self._seaweed.filer()).content(path)
        if content is None:
            return EARLIEST_OFFSET
        if not _OFFSET.fullmatch(content):
            raise FilerRefused(
                path, "has no offset; write the offset with which the log begins, in digits, or remove the file"
            )
        return int(content)

    async def store_log_start(self, offset: int) -> None:
        await self._write(_LOG_START, b"%d\n" % offset)

    async def shown_end(self) -> ShownEnd | None:
        path = f"{self._folder}/{_SHOWN_END}"
        content = await (await self._seaweed.filer()).content(path)
        if content is None:
            return None
        if not _TWO_NUMBERS.fullmatch(content):
            raise FilerRefused(path, "has no offset and time; remove the file")
        offset, ts_ns = map(int, content.split())
        return ShownEnd(offset, ts_ns)

    async def store_shown_end(self, shown: ShownEnd) -> None:
        await self._write(_SHOWN_END, b"%d %d\n" % shown[:2])

    async def read_producers(self, producers: ProducerTable, end: int, now_ms: int) -> int:
        """
        Read the newest sound snapshot at or before `end`. Returns its offset, or EARLIEST_OFFSET if there is none.
        """
        filer = await self._seaweed.filer()
        for entry in reversed(await filer.all_entries(self._folder)):
            named = _SNAPSHOT.fullmatch(entry.name)
            if named and int(named[1]) <= end:
                data = await filer.content_of(f"{self._folder}/{entry.name}", entry)
                if load_snapshot(data, producers, now_ms):
                    return int(named[1])
        return EARLIEST_OFFSET

    async def store_producers(self, producers: ProducerTable, offset: int) -> None:
        """
        Write the producer state before the offset, and delete older snapshots.
        """
        filer = await self._seaweed.filer()
        name = f"{offset:020d}{SNAPSHOT}"
        await filer.files.put(f"{self._folder}/{name}", encode_snapshot(producers), self._check_lease)
        for entry in await filer.all_entries(self._folder):
            if _SNAPSHOT.fullmatch(entry.name) and entry.name < name:
                await filer.delete(f"{self._folder}/{entry.name}", precondition=self._check_lease)

    async def ledger(self, owner: PartitionId) -> Snapshot | None:
        """
        The saved ledger, if there is one; raises UnusableLedger if its file is not as it was written.
        """
        files, path = (await self._seaweed.filer()).files, f"{self._folder}/{_LEDGER}"
        try:
            # One request: a file that is replaced meanwhile is read as it was, or as it is.
            data = await files.read(path, 0, _LEDGER_BYTES_MAX, _LEDGER_S)
        except FileNotFound:
            return None
        return decode(data, owner)

    async def store_ledger(self, snapshot: Snapshot, owner: PartitionId) -> None:
        files = (await self._seaweed.filer()).files
        await files.put(f"{self._folder}/{_LEDGER}", encode(snapshot, owner), self._check_lease)

    async def _write(self, name: str, content: bytes) -> None:
        await (await self._seaweed.filer()).write(f"{self._folder}/{name}", content, self._check_lease)
