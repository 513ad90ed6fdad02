"""
A partition's log files, written into a filer by a test.
"""

from collections.abc import Sequence
from struct import pack

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.protos.filer_pb2 import LogEntry
from kgateway.broker.seaweedmq.files.partition_files import PartitionFiles
from kgateway.broker.seaweedmq.files.range_reader import RangeCache
from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.formats.registry import FORMATS
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.broker.seaweedmq.layout.topic_paths import SECOND_NS, RingRange, log_name
from kgateway.broker.seaweedmq.ledger.ledger import Ledger
from kgateway.records.batch import Batch, placed, read_batch
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.real_reactor import reactor, wait

NOON_S = 1_800_000_000
PART = RingRange(0, 2520)


class LogFiles:
    """
    A file for every fifth second, each with these batches, which get their offsets here.
    """

    def __init__(
        self, seaweed: SeaweedCluster, filer: Filer, folder: str, form: str, files: Sequence[Sequence[Batch]]
    ) -> None:
        self.format = FORMATS[form]
        self.end = self._next_message = 0
        for number, found in enumerate(files):
            second = NOON_S + 5 * number
            data = b"".join(self._entry(each, second * SECOND_NS) for batch in found for each in self._messages(batch))
            wait(filer.files.put(f"{folder}/{log_name(second * SECOND_NS)}", data))
        self.folder = PartitionFolder(folder, 0, 0, 0, PART)
        self.firsts: list[str] = []  # files of which the first message was looked at
        self.reads: list[str] = []  # files that were read
        self.history = self._history(seaweed)
        done(self.history.refresh())

    def _messages(self, batch: Batch) -> list[Message]:
        base_offset = self.end
        whole = read_batch(b"".join(placed(batch, base_offset, 0)))
        self.end = whole.header.last_offset + 1
        return self.format.encode(whole, base_offset, 0)

    def _entry(self, message: Message, ts_ns: int) -> bytes:
        number, self._next_message = self._next_message, self._next_message + 1
        time = ts_ns + number % 1000
        data = LogEntry(ts_ns=time, key=message.key, data=bytes(message.value), offset=number).SerializeToString()
        return pack(">I", len(data)) + data

    def _history(self, seaweed: SeaweedCluster) -> PartitionFiles:
        history = PartitionFiles(seaweed, [self.folder], self.format, RangeCache(1 << 20), reactor)
        first, read = history._files._first_entries, history._files.range_at

        def noting_first(file):  # type: ignore[no-untyped-def]
            self.firsts.append(file.path)
            return first(file)

        def noting_read(file, start):  # type: ignore[no-untyped-def]
            self.reads.append(file.path)
            return read(file, start)

        history._files._first_entries = noting_first  # type: ignore[method-assign]
        history._files.range_at = noting_read  # type: ignore[method-assign]
        return history

    def ledger(self, late_s: int = 0) -> Ledger:
        """
        A ledger that agrees with the files, by a clock that is late.
        """
        ledger = Ledger(self.format.batched, self.folder.unix_time_ns, PART)

        async def extend() -> None:
            async for _, piece in self.history.messages(0):
                late = [entry._replace(ts_ns=entry.ts_ns + late_s * SECOND_NS) for entry in piece]
                ledger.extend(self.format.walk(late, end=ledger.end))

        done(extend())
        self.forget()
        return ledger

    def forget(self) -> None:
        """
        Forget everything about the files, except that they exist.
        """
        paths = [file.path for file in self.history.listed]
        self.history._files._forget(paths)
        self.history._ranges.forget(paths)
        self.firsts.clear()
        self.reads.clear()
