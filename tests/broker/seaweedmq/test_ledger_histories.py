"""
Whatever happens to a partition, each of Kafka's offsets stands for one record, and the ledger leads to its message.

A history is drawn: gateways and others publish, brokers flush, gateways and brokers are killed, ledgers are saved,
lost, damaged, or replaced by older ones, records are deleted, and the topic grows. Log files and ledgers are in memory;
everything that reads and writes them is the gateway's.
"""

from collections.abc import Coroutine
from itertools import pairwise
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kgateway.broker.partition.leader_epochs import LeaderEpochs
from kgateway.broker.seaweedmq.files.partition_files import FilesEnd, PartitionFiles
from kgateway.broker.seaweedmq.files.range_reader import RangeCache
from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.formats.registry import FORMATS
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.broker.seaweedmq.layout.topic_paths import SECOND_NS, RingRange, log_name
from kgateway.broker.seaweedmq.ledger.ledger import Ledger
from kgateway.broker.seaweedmq.partitions.partition_ledger import PartitionLedger, empty_ledger, follow
from kgateway.broker.seaweedmq.partitions.side_files import FilerSideFiles
from kgateway.broker.seaweedmq.publishing.in_flight import InFlight
from kgateway.records.batch import Batch, batches
from kgateway.records.record import Record, records
from kgateway.topic_partition import PartitionId
from kgateway.wire.uuids import Uuid
from tests.broker.seaweedmq.log_messages import NOW_NS, framed
from tests.broker.seaweedmq.memory_filer import MemoryFiler
from tests.records.values import batch_of

T = TypeVar("T")

OWNER = PartitionId(Uuid(range(16)), 0)
LEDGER = "/t/.kgateway/0/ledger"
INTERVAL_S = 10.0
_MS = 1_000_000


class Broker:
    """
    SeaweedMQ's, which has messages in memory until it flushes them.
    """

    def __init__(self, filer: MemoryFiler, folder: PartitionFolder) -> None:
        self.filer, self.folder = filer, folder
        self.next, self.now_ns = folder.first_message, NOW_NS
        self.memory: list[LoggedMessage] = []

    def publish(self, messages: list[Message]) -> None:
        for message in messages:
            self.now_ns += 1000
            self.memory.append(LoggedMessage(self.next, self.now_ns, message.key, bytes(message.value)))
            self.next += 1

    def flush(self) -> None:
        if self.memory:
            path = f"{self.folder.path}/{log_name(self.memory[0].ts_ns)}"
            self.filer.append(path, framed(self.memory))
            self.memory.clear()

    def begin(self, folder: PartitionFolder) -> None:
        self.folder, self.next = folder, folder.first_message


class World:
    """
    A partition, and what was promised of it.
    """

    def __init__(self, form: str) -> None:
        self.format = FORMATS[form]
        self.filer, self.clock = MemoryFiler(), Clock()
        self.folders = [folder(1, 0, 0)]
        self.broker = Broker(self.filer, self.folders[0])
        self.log_start = self.epoch = self.count = 0
        self.epochs = LeaderEpochs()
        self.saved: list[bytes] = []  # earlier contents of the ledger's file
        self.promised: dict[int, bytes] = {}  # the value of each record, by offset
        self.offsets: dict[bytes, int] = {}  # the same, by value
        self.timestamps: dict[bytes, int] = {}  # of our records
        self.begin()

    def done(self, work: Coroutine[Any, Any, T]) -> T:
        found: list[T] = []
        Deferred.fromCoroutine(work).addCallback(found.append)
        self.settle(found)
        return found[0]

    def settle(self, found: list[Any]) -> None:
        """
        Let everything happen that needs no time.
        """
        for _ in range(1000):
            self.clock.advance(0)
            if found and not any(call.getTime() <= self.clock.seconds() for call in self.clock.getDelayedCalls()):
                break

    def files(self) -> PartitionFiles:
        return PartitionFiles(self.filer, self.folders, self.format, RangeCache(1 << 20), self.clock)  # type: ignore[arg-type]

    def begin(self) -> None:
        """
        Open the partition as a gateway does that begins to lead. The broker has flushed what it had.
        """
        self.broker.flush()
        self.epoch += 1
        self.partition_files = self.files()
        side_files = FilerSideFiles(self.filer, "/t/.kgateway/0")  # type: ignore[arg-type]
        self.ledger = PartitionLedger(
            OWNER, "t-0", self.epoch, self.partition_files, self.format, side_files, self.clock, INTERVAL_S
        )
        self.done(self.ledger.load())
        end = self.count_from_files()
        self.epochs.assign(self.epoch, end.offset)
        self.ledger.open(self.log_start, end, self.epochs)
        self.held: list[Batch] = []

    def count_from_files(self) -> FilesEnd:
        """
        Continue where the files end.
        """
        self.done(self.partition_files.refresh())
        end = self.done(self.partition_files.end(self.log_start))
        gap = 0
        if end.next_message != self.broker.next:  # messages were lost
            gap = 0 if self.format.numbered else self.broker.next - end.next_message
            end = end._replace(offset=end.offset + gap, next_message=self.broker.next, gap=gap)
        if self.format.numbered:
            end = end._replace(offset=max(end.offset, self.log_start))
        self.log_end = end.offset
        self.in_flight = InFlight(end.offset, end.next_message, self.ledger.add_flushed)
        return end

    def publish(self, batch: Batch) -> None:
        messages = self.format.encode(batch, batch.header.base_offset, 0)
        self.broker.publish(messages)
        time_ms = self.broker.now_ns // _MS
        self.in_flight.sent(batch.header.base_offset, self.log_end, len(messages), time_ms, batch.header.max_timestamp)
        self.in_flight.answered(len(messages), self.broker.next - 1)

    def append(self, number: int, other: int) -> None:
        """
        The gateway publishes a batch; if others have published, it first reads what the log has.
        """
        if self.in_flight.next_message != self.broker.next:
            self.flush()
        found = []
        for place in range(number % 5 + 1):
            value, timestamp = self.value(b"ours"), 50 + (other + 7 * place) % 90
            self.timestamps[value] = timestamp
            found.append(Record(self.log_end + place, timestamp, b"k", value))
        batch = batch_of(found, base_offset=self.log_end)
        self.log_end += len(found)
        self.held.append(batch)
        self.publish(batch)

    def theirs(self, number: int, other: int) -> None:
        """
        Others publish.
        """
        self.broker.publish([Message(b"k", self.value(b"theirs")) for _ in range(number % 3 + 1)])

    def repeat(self, number: int, other: int) -> None:
        """
        A stream breaks, and what was sent by it is published once more, though it is in the log.
        """
        if self.held and self.format.numbered:
            for batch in self.held[number % len(self.held) :]:
                self.broker.publish(self.format.encode(batch, batch.header.base_offset, 0))

    def value(self, whose: bytes) -> bytes:
        self.count += 1
        return b"%s %d" % (whose, self.count)

    def time(self, number: int, other: int) -> None:
        """
        Time passes, in which files get other names.
        """
        self.broker.now_ns += number * SECOND_NS // 4

    def flush(self, number: int = 0, other: int = 0) -> None:
        """
        The broker flushes, and the gateway notices.
        """
        self.broker.flush()
        if self.in_flight.next_message == self.broker.next:
            self.in_flight.in_files(self.broker.next)
            self.ledger.grown()
        else:
            self.done(self.partition_files.refresh())
            self.in_flight.in_files_to(self.done(self.partition_files.end(self.log_start)).offset)
            self.count_from_files()
            self.ledger.catch_up()
        self.held.clear()
        self.settle([True])

    def save(self, number: int, other: int) -> None:
        """
        Time passes, in which the ledger is saved.
        """
        self.clock.advance(INTERVAL_S)
        self.settle([True])
        if LEDGER in self.filer.chunks:
            self.saved.append(self.filer.content(LEDGER))

    def kill_gateway(self, number: int, other: int) -> None:
        self.ledger.close()
        self.begin()

    def kill_broker(self, number: int, other: int) -> None:
        """
        What is in memory is lost; the gateway publishes its part again. The broker continues where files end, or
        leaves out the numbers of the lost messages.
        """
        lost = self.broker.memory[0].offset if self.broker.memory else self.broker.next
        self.broker.memory.clear()
        if number % 2 or self.held:
            self.broker.next = lost
        elif lost != self.broker.next:
            self.broker.now_ns += SECOND_NS  # the gateway waits, so that messages begin another file
        held, self.held = self.held, []
        log_end = self.log_end
        self.count_from_files()
        self.held = [batch for batch in held if batch.header.base_offset >= self.log_end]
        for batch in self.held:
            self.log_end = batch.header.last_offset + 1
            self.publish(batch)
        assert not self.held or self.log_end == log_end

    def kill_both(self, number: int, other: int) -> None:
        self.held.clear()
        self.kill_broker(number, other)
        self.kill_gateway(number, other)

    def lose_ledger(self, number: int, other: int) -> None:
        """
        The gateway is killed, and the saved ledger is lost, damaged, or an older one.
        """
        self.ledger.close()
        if number % 3 == 0:
            self.filer.delete(LEDGER)
        elif self.saved and number % 3 == 1:
            self.done(self.filer.put(LEDGER, self.saved[other % len(self.saved)]))
        elif self.saved:
            data = bytearray(self.saved[-1])
            data[other % len(data)] ^= 1 << number % 8
            self.done(self.filer.put(LEDGER, bytes(data)))
        self.begin()

    def delete_before(self, number: int, other: int) -> None:
        """
        Records are deleted, and then the files that only have those.
        """
        end = self.done(self.partition_files.end(self.log_start)).offset
        if end <= self.log_start:
            return
        self.log_start += number % (end - self.log_start + 1)
        self.ledger.begin_at(self.log_start)
        self.done(self.partition_files.refresh())
        listed = self.partition_files.listed
        for file, following in pairwise(listed):
            first = self.done(self.partition_files.first(following))
            if first is None or first > self.log_start:
                break
            self.filer.delete(file.path)
        self.done(self.partition_files.refresh())

    def grow(self, number: int, other: int) -> None:
        """
        The topic gets another partition, so that this one begins a folder.
        """
        self.flush()
        new = folder(len(self.folders) + 1, self.log_end, number % 2 * self.broker.next)
        self.folders.append(new)
        self.partition_files.folders = list(self.folders)
        self.broker.begin(new)
        self.ledger.partition_moved()
        self.count_from_files()

    def check(self) -> None:
        """
        What files have is where it was, and the ledger agrees.
        """
        self.settle([True])
        end = self.done(self.files_end())
        offset = self.log_start
        seen = dict[int, Record]()
        while offset < end:
            found = self.done(self.partition_files.read(offset, 1 << 20, True, end))
            came = [record for data in found for batch in batches(data) for record in records(batch)]
            seen |= {record.offset: record for record in came if offset <= record.offset < end}
            offset = max([offset, *(record.offset for record in came)]) + 1
        for offset, record in seen.items():
            value = record.value or b""
            assert self.promised.setdefault(offset, value) == value
            assert self.offsets.setdefault(value, offset) == offset
        for offset in self.promised:
            assert offset < self.log_start or offset in seen, f"offset {offset} is lost"
        self.check_ledger(self.ledger.ledger, seen)

    async def files_end(self) -> int:
        await self.partition_files.refresh()
        return (await self.partition_files.end(self.log_start)).offset

    def check_ledger(self, ledger: Ledger, seen: dict[int, Record]) -> None:
        """
        It leads from each offset to the message that has the record, and is the same as one made of files alone.
        """
        again = empty_ledger(self.partition_files, self.format)
        again.drop_before(self.log_start)
        self.done(follow(again, self.partition_files, self.format))
        there = self.messages()
        for offset, record in seen.items():
            place, other = ledger.at(offset), again.at(offset)
            assert place
            assert other
            assert place[:3] == other[:3]
            assert place.section[1:] == other.section[1:]
            assert place.offset == offset
            messages = there[place.section.unix_time_ns, place.message_offset]
            assert any((record.value or b"") in message.value for message in messages)
            assert place.ts_ns <= max(message.ts_ns for message in messages)
            row = next(row for row in ledger.rows if row.kafka <= offset < row.end)
            assert row.max_timestamp >= record.timestamp or not self.format.numbered
        assert (ledger.start, ledger.end) == (again.start, again.end) == (self.log_start, again.end)
        assert all(row.end > self.log_start for row in (*ledger.rows, *again.rows))

    def messages(self) -> dict[tuple[int, int], list[LoggedMessage]]:
        """
        All messages in files, by generation and number.
        """
        found: dict[tuple[int, int], list[LoggedMessage]] = {}

        async def read() -> None:
            async for each, piece in self.partition_files.messages(None):
                for entry in piece:
                    found.setdefault((each.unix_time_ns, entry.offset), []).append(entry)

        self.done(read())
        return found


def folder(generation: int, kafka_start: int, first_message: int) -> PartitionFolder:
    path = f"/t/v{generation}/0000-2520"
    return PartitionFolder(path, kafka_start - first_message, first_message, generation, RingRange(0, 2520))


STEPS = [
    *(["append"] * 4 + ["theirs", "flush", "flush", "time", "time", "save", "repeat"]),
    *("kill_gateway", "kill_broker", "kill_both", "lose_ledger", "delete_before", "grow"),
]


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=200)
@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 20), st.integers(0, 1000)), max_size=30))
def test_an_offset_stands_for_one_record(form: str, steps: list[tuple[str, int, int]]) -> None:
    """
    The ledger that a gateway has, whatever it was made from, is the one that files alone would give.
    """
    world = World(form)
    for name, number, other in [*steps, ("flush", 0, 0)]:
        getattr(world, name)(number, other)
        world.check()
