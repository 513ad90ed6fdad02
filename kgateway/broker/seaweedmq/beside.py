"""
What SeaweedMQ does not keep of a partition, in a folder of ours beside the generations of its topic:

    /topics/kafka/TOPIC/.kgateway/INDEX/leader-epoch-checkpoint     as Kafka writes it
    /topics/kafka/TOPIC/.kgateway/INDEX/log-start-offset            before which all records are deleted: its digits
    /topics/kafka/TOPIC/.kgateway/INDEX/OFFSET.snapshot             the producers before that offset, as Kafka writes it
"""

import re

from kgateway.broker import producer_snapshots
from kgateway.broker.epochs import EPOCH_FILE, Epochs
from kgateway.broker.producers import ProducerTable
from kgateway.broker.seaweed.refused import FilerRefused
from kgateway.broker.seaweed.retrying import Demand, demand_nothing
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.cluster.partition import EARLIEST_OFFSET

_LOG_START = "log-start-offset"
_OFFSET = re.compile(rb"[0-9]{1,19}\n")
_SNAPSHOT = re.compile("([0-9]{20})" + re.escape(producer_snapshots.SNAPSHOT))


class Beside:
    """
    Of one partition.
    """

    def __init__(self, seaweed: Seaweed, folder: str, demand_ownership: Demand = demand_nothing) -> None:
        self._seaweed = seaweed
        self._folder = folder
        self._demand_ownership = demand_ownership  # called before each attempt to write

    async def epochs(self) -> Epochs:
        """
        Under which epochs it was written.
        """
        epochs = Epochs()
        content = await (await self._seaweed.filer()).content(f"{self._folder}/{EPOCH_FILE}")
        if content is not None:
            epochs.read(content)
        return epochs

    async def keep_epochs(self, epochs: Epochs) -> None:
        """
        Let these be the ones.
        """
        await self._write(EPOCH_FILE, epochs.written())

    async def log_start(self) -> int:
        """
        Before which offset all records are deleted; a FilerRefused where nobody can tell.
        """
        path = f"{self._folder}/{_LOG_START}"
        content = await (await self._seaweed.filer()).content(path)
        if content is None:
            return EARLIEST_OFFSET
        if not _OFFSET.fullmatch(content):
            raise FilerRefused(path, "has no offset; write the one with which the log begins, in digits, or remove it")
        return int(content)

    async def keep_log_start(self, offset: int) -> None:
        """
        Let all records before the offset be deleted.
        """
        await self._write(_LOG_START, b"%d\n" % offset)

    async def read_producers(self, producers: ProducerTable, end: int, now_ms: int) -> int:
        """
        Take over who has written what, as it was kept last for an offset up to the end; that offset.
        """
        filer = await self._seaweed.filer()
        for entry in reversed(await filer.all_entries(self._folder)):
            named = _SNAPSHOT.fullmatch(entry.name)
            if named and int(named[1]) <= end:
                data = await filer.content_of(f"{self._folder}/{entry.name}", entry)
                if producer_snapshots.read(data, producers, now_ms):
                    return int(named[1])
        return EARLIEST_OFFSET

    async def keep_producers(self, producers: ProducerTable, offset: int) -> None:
        """
        Keep who has written what before the offset, in the place of what was kept before.
        """
        filer = await self._seaweed.filer()
        name = f"{offset:020d}{producer_snapshots.SNAPSHOT}"
        await filer.files.put(f"{self._folder}/{name}", producer_snapshots.written(producers), self._demand_ownership)
        for entry in await filer.all_entries(self._folder):
            if _SNAPSHOT.fullmatch(entry.name) and entry.name < name:
                await filer.delete(f"{self._folder}/{entry.name}", demand=self._demand_ownership)

    async def _write(self, name: str, content: bytes) -> None:
        await (await self._seaweed.filer()).write(f"{self._folder}/{name}", content, self._demand_ownership)
