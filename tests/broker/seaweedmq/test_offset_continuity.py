"""
Kafka's offsets of messages of others, from one log file to the next.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock, deferLater
from twisted.python.failure import Failure

from kgateway.broker.seaweedmq.files.offset_continuity import ShownEnd, ShownRun
from kgateway.broker.seaweedmq.files.partition_files import FilesEnd, PartitionFiles
from kgateway.broker.seaweedmq.files.range_reader import RangeCache
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.formats.registry import FORMATS
from kgateway.broker.seaweedmq.layout.offset_shifts import SHIFTS, read_shifts
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.broker.seaweedmq.layout.topic_paths import SECOND_NS, RingRange, log_name
from kgateway.broker.seaweedmq.ledger.ledger import Ledger
from kgateway.broker.seaweedmq.ledger.snapshot import Snapshot
from kgateway.broker.seaweedmq.partitions.lost_messages import end_after_loss
from kgateway.broker.seaweedmq.partitions.partition_ledger import PartitionLedger
from kgateway.broker.seaweedmq.partitions.side_files import FilerSideFiles
from kgateway.records.batch import batches
from kgateway.records.record import Record, records
from kgateway.topic_partition import PartitionId
from kgateway.wire.uuids import Uuid
from tests.broker.seaweedmq.log_messages import framed
from tests.broker.seaweedmq.memory_filer import MemoryFiler
from tests.records.values import batch_of

T = TypeVar("T")

_NOON_NS = 1_800_000_000 * SECOND_NS
_TURN_S = 0.001
_FOLDER = PartitionFolder("/t/v1/0000-2520", 100, 0, 0, RingRange(0, 2520))

Found = list[tuple[int, bytes]]


class World:
    """
    The log files of a partition, whose first message has Kafka's offset 100, and a gateway that leads.
    """

    def __init__(self, form: str = "plain") -> None:
        self.format = FORMATS[form]
        self.filer, self.clock = MemoryFiler(), Clock()
        self.shown: ShownEnd | None = None
        self.losses: list[int] = []
        self.files = self.another()
        self.files.lead(lambda: None, lambda: self.shown, self.losses.append)

    def another(self, *folders: PartitionFolder) -> PartitionFiles:
        """
        The files as a gateway sees them that does not lead, or not yet.
        """
        folders = folders or (_FOLDER,)
        return PartitionFiles(self.filer, folders, self.format, RangeCache(1 << 20), self.clock)  # type: ignore[arg-type]

    def take_time(self) -> None:
        """
        From now on, the filer answers a turn later, so that others come between.
        """
        for name in ("all_entries", "read", "put", "write"):
            setattr(self.filer, name, partial(self._later, getattr(self.filer, name)))

    async def _later(self, call: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        found = await call(*arguments)
        await deferLater(self.clock, _TURN_S)
        return found

    def reads(self) -> list[str]:
        """
        The paths of the files that are read from now on.
        """
        paths, read = list[str](), self.filer.read

        async def noting_read(path: str, start: int, stop: int, timeout_s: float = 0.0) -> bytes:
            paths.append(path)
            return await read(path, start, stop)

        self.filer.read = noting_read  # type: ignore[method-assign]
        return paths

    def next_leader(self) -> PartitionFiles:
        """
        The files as the next gateway sees them that leads, if it has no ledger.
        """
        files = self.another()
        files.lead(lambda: None, lambda: self.shown and self.shown._replace(runs=()), self.losses.append)
        return files

    def done(self, work: Any) -> Any:
        found: list[Any] = []
        Deferred.fromCoroutine(work).addBoth(found.append)
        while not found:
            self.clock.advance(0)
        if isinstance(found[0], Failure):
            found[0].raiseException()
        return found[0]

    def write(
        self,
        second: int,
        numbers: Iterable[int],
        values: Sequence[bytes] | None = None,
        folder: PartitionFolder = _FOLDER,
    ) -> None:
        """
        A file for a second after noon, or more of it, with messages of these numbers, which are their values, too.
        """
        time = _NOON_NS + second * SECOND_NS
        found = [
            LoggedMessage(number, time + place, b"k", values[place] if values else b"%d" % number)
            for place, number in enumerate(numbers)
        ]
        self.filer.append(f"{folder.path}/{log_name(time)}", framed(found))

    def ours(self, base_offset: int, count: int = 1, size: int = 1) -> list[bytes]:
        """
        Messages of ours.
        """
        found = [Record(base_offset + number, 0, b"k", bytes(size)) for number in range(count)]
        batch = batch_of(found, base_offset=base_offset)
        return [bytes(message.value) for message in self.format.encode(batch, base_offset, 0)]

    def end(self, files: PartitionFiles | None = None) -> FilesEnd:
        files = files or self.files
        self.done(files.refresh())
        found: FilesEnd = self.done(files.end(0))
        return found

    def read(self, files: PartitionFiles | None = None) -> Found:
        """
        All records with their offsets. They are the same for who reads all at once, or from any offset on.
        """
        files = files or self.files
        end = self.end(files).offset
        start = self.done(files.start())
        found = self._from(files, start, end)
        for offset, _ in found[:: max(len(found) // 7, 1)]:
            assert self._from(files, offset, end) == [each for each in found if each[0] >= offset]
        return found

    def _from(self, files: PartitionFiles, start: int, end: int) -> Found:
        found = Found()
        while start < end:
            data = self.done(files.read(start, 1 << 20, True, end))
            new = [
                (each.offset, each.value or b"") for one in data for batch in batches(one) for each in records(batch)
            ]
            found += [each for each in new if each[0] >= start]
            start = found[-1][0] + 1
        return found


def numbered(offset: int, numbers: Iterable[int]) -> Found:
    """
    The records of messages with these numbers, at consecutive offsets.
    """
    return [(offset + place, b"%d" % number) for place, number in enumerate(numbers)]


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("later", [1, 3, 40, 300])
@pytest.mark.parametrize("overtaken", [18, 20, 21, 22, 45])
def test_overtaken_messages_are_read_in_the_order_of_the_log(world: World, overtaken: int, later: int) -> None:
    """
    However many messages are before one that should be before them, and wherever a file ends. Their offsets do not
    change.
    """
    numbers = list(range(600))
    numbers.insert(overtaken + later, numbers.pop(overtaken))
    found = Found()
    for second, (start, stop) in enumerate([(0, 21), (21, 200), (200, 600)]):
        world.write(second, numbers[start:stop])
        before, found = found, world.read()
        assert found[: len(before)] == before
    assert [value for _, value in found] == [b"%d" % number for number in numbers]
    assert found == numbered(100, numbers) or later == 300  # which is in the third file, so that one may be left out
    assert world.read(world.another()) == found
    assert world.end().next_message == 600


def test_a_file_that_has_grown_keeps_its_offsets(world: World) -> None:
    """
    Nothing tells at first that a message is still to come.
    """
    world.write(0, range(21))
    world.write(5, [22])
    before = world.read()
    world.write(5, [21, *range(23, 100)])
    found = world.read()
    assert found[: len(before)] == before
    assert [value for _, value in found] == [b"%d" % number for number in (*range(21), 22, 21, *range(23, 100))]
    assert world.read(world.next_leader()) == found


def test_numbers_that_were_left_out_are_nobodys(world: World) -> None:
    world.write(0, range(10))
    world.write(5, range(16, 300))
    assert world.read() == numbered(100, range(10)) + numbered(116, range(16, 300))


@pytest.mark.parametrize("first", [0, 4, 9])
def test_numbers_that_a_broker_has_given_again_have_offsets_of_their_own(world: World, first: int) -> None:
    """
    Even if no gateway had seen either file. What the broker numbers then continues.
    """
    world.write(0, range(10))
    world.write(5, range(first, first + 200))
    world.write(9, range(first + 200, first + 300))
    expected = numbered(100, range(10)) + numbered(110, range(first, first + 300))
    assert world.read() == expected
    assert world.read(world.another()) == expected


def test_a_message_of_others_after_ours_has_no_offset_of_ours() -> None:
    """
    Ours say their offsets, which may be far from the numbers of the broker.
    """
    world = World("record")
    world.write(0, range(3), world.ours(500, 3))
    world.write(5, range(3, 6))
    assert world.read() == [*((500 + n, b"\0") for n in range(3)), *((500 + n, b"%d" % n) for n in range(3, 6))]


def test_messages_of_others_after_ours_in_a_large_file() -> None:
    """
    It is read in several ranges, in which messages are counted on.
    """
    world = World("record")
    numbers = [1, 0, *range(2, 133)]
    values = [bytes(600_000), bytes(600_000), *world.ours(700), *(b"%d" % number for number in range(3, 133))]
    world.write(0, numbers, values)
    assert world.end().offset == 831
    assert world.read()[-1] == (830, b"132")


def test_all_messages_of_a_large_file_are_counted(world: World) -> None:
    world.write(0, [1, 0, 2, 3], [bytes(300_000)] * 4)

    files = world.another()
    world.end(files)

    async def numbers() -> list[int]:
        return [entry.offset async for _, piece in files.messages(None) for entry in piece]

    assert world.done(numbers()) == [1, 2, 3, 4]


def test_a_file_is_counted_on_when_it_has_grown(world: World) -> None:
    world.write(0, [0, 1, 3])
    assert world.end().offset == 103
    world.write(0, [2, 4])
    assert world.end().offset == 105


def test_batches_say_their_offsets() -> None:
    """
    Nothing is stored of their files, whatever numbers their messages have.
    """
    world = World("batch")
    for second, base_offset in enumerate((0, 2, 4)):
        world.write(second, [0], world.ours(base_offset, 2))
    assert world.end().offset == 6
    assert f"{_FOLDER.path}/{SHIFTS}" not in world.filer.chunks


def test_a_folder_of_its_own_is_counted_from_its_first_message(world: World) -> None:
    """
    The topic has grown, and the brokers begin again. The first message was overtaken.
    """
    grown = _FOLDER._replace(path="/t/v2/0000-1260", shift=110)
    world.write(0, range(10))
    world.write(5, [1, 0, 2, 3, 4], folder=grown)
    files = world.another(_FOLDER, grown)
    files.lead(lambda: None, lambda: None, world.losses.append)
    assert world.read(files) == numbered(100, [*range(10), 1, 0, 2, 3, 4])


def test_what_consumers_have_got_keeps_its_offsets(world: World) -> None:
    """
    They got it right after what is in files, though the broker had left out numbers.
    """
    world.write(0, range(10))
    world.end()
    world.shown = ShownEnd(
        112, _NOON_NS + 5 * SECOND_NS + 1, [ShownRun(110, [_NOON_NS + 5 * SECOND_NS + n for n in (0, 1)])]
    )
    world.write(5, [13, 14])
    assert world.read() == numbered(100, [*range(10), 13, 14])
    assert world.losses == []


def test_a_shift_that_was_stored_for_a_coming_file_counts(world: World) -> None:
    """
    A gateway stores it before it shows messages whose numbers do not continue.
    """
    world.write(0, range(10))
    world.end()
    world.done(world.files.add_shift_at(_NOON_NS + 5 * SECOND_NS, 120, lambda: None))
    world.write(5, range(10, 12))
    assert world.read() == numbered(100, range(10)) + numbered(130, range(10, 12))


def test_a_loss_is_noted_once(world: World) -> None:
    """
    However many look at the files at the same time.
    """
    world.write(0, range(10))
    world.end()
    world.shown = ShownEnd(116, _NOON_NS + 2 * SECOND_NS)
    world.write(9, range(10, 12))
    world.take_time()
    both = [Deferred.fromCoroutine(world.files.refresh()) for _ in range(2)]
    world.clock.pump([_TURN_S] * 100)
    assert all(each.called for each in both)
    assert world.losses == [116]


def test_a_damaged_file_holds_up_none_after_it(world: World) -> None:
    world.write(0, range(10))
    world.filer.append(f"{_FOLDER.path}/{log_name(_NOON_NS + 3 * SECOND_NS)}", b"\0\0\0\x03abc")
    world.write(5, range(10, 15))
    assert world.end().offset == 115


def test_files_that_another_gateway_has_looked_at_are_not_read_again(world: World) -> None:
    """
    But for the last ten minutes, because the clocks of gateways and brokers may differ.
    """
    minutes = range(0, 50, 5)
    for minute in minutes:
        world.write(60 * minute, range(minute, minute + 5))
    world.end()
    ledger = Ledger(batched=False, unix_time_ns=0, part=_FOLDER.part)
    for minute in range(0, 45, 5):
        ledger.append(100 + minute, minute, _NOON_NS + 60 * minute * SECOND_NS, 5)
    next_leader = world.another()
    next_leader.ledger = ledger
    next_leader.lead(lambda: None, lambda: None, world.losses.append)
    paths = world.reads()
    world.done(next_leader.refresh())
    expected = [f"{_FOLDER.path}/{log_name(_NOON_NS + 60 * minute * SECOND_NS)}" for minute in range(25, 50, 5)]
    assert sorted(set(paths)) == expected
    paths.clear()
    next_leader.lead(lambda: None, lambda: None, world.losses.append)  # now that the partition is open
    world.done(next_leader.refresh())
    assert paths == []


def test_the_saved_ledger_says_which_files_were_looked_at(world: World) -> None:
    side_files = FilerSideFiles(world.filer, "/t/.kgateway/0")  # type: ignore[arg-type]
    owner = PartitionId(Uuid(range(16)), 0)
    saved = Ledger(batched=False, unix_time_ns=0, part=_FOLDER.part)
    saved.append(100, 0, _NOON_NS, 5)
    world.done(side_files.store_ledger(Snapshot(saved, 0), owner))
    ledger = PartitionLedger(owner, "t-0", 1, world.files, world.format, side_files, world.clock, 1.0)
    world.done(ledger.load())
    assert world.files.ledger
    assert world.files.ledger.end == 105


def test_messages_of_ours_are_not_read_to_find_out_whether_they_continue() -> None:
    """
    They say their offsets.
    """
    world = World("record")
    for second in range(3):
        world.write(second, [second], world.ours(second, size=100_000))
    read, sizes = world.filer.read, list[int]()

    async def noting_read(path: str, start: int, stop: int, timeout_s: float = 0.0) -> bytes:
        sizes.append(stop - start)
        return await read(path, start, stop)

    world.filer.read = noting_read  # type: ignore[method-assign]
    world.done(world.files.refresh())
    assert sum(sizes) < 3 * 110_000


@pytest.mark.parametrize("numbers", [[*range(10), *range(12, 50)], [*range(21), 22]])
def test_numbers_that_are_missing_within_a_file_are_nobodys_afterwards(world: World, numbers: list[int]) -> None:
    """
    A message that follows has the offset at which the file ends, which was promised to its producer.
    """
    world.write(0, numbers)
    end = world.end()
    assert end[:2] == (100 + len(numbers), numbers[-1] + 1)
    world.write(5, range(end.next_message, end.next_message + 3))
    assert world.read() == numbered(100, [*numbers, *range(end.next_message, end.next_message + 3)])


@pytest.mark.parametrize(("before", "numbers"), [([], [1, 0, 2, 3, 4]), ([*range(40)], [41, 40, 43])])
def test_the_next_leader_counts_as_the_one_before(world: World, before: list[int], numbers: list[int]) -> None:
    """
    Consumers have got the messages in the order of the log, and the gateway died before they were in files.
    """
    if before:
        world.write(0, before)
    world.write(5, numbers)
    assert world.read() == numbered(100, [*before, *numbers])


@pytest.mark.parametrize("damaged", [0, 1])
def test_numbers_are_given_again_after_a_damaged_file(world: World, damaged: int) -> None:
    world.write(0, range(10))
    if damaged:
        world.write(3, range(12, 20))  # and then damage
    world.filer.append(f"{_FOLDER.path}/{log_name(_NOON_NS + 3 * SECOND_NS)}", b"\0\0\0\x03abc")
    world.write(5, range(5))
    world.write(9, range(5, 8))
    assert world.end().offset == 118


def test_a_broker_whose_clock_was_set_back(world: World) -> None:
    """
    What it numbers again is told from what consumers have got by its time, even if that is earlier.
    """
    world.write(0, range(10))
    world.end()
    world.shown = ShownEnd(
        116, _NOON_NS + 9 * SECOND_NS, [ShownRun(110, [_NOON_NS + 9 * SECOND_NS + n for n in range(-5, 1)])]
    )
    world.write(5, range(10, 15))
    assert world.read() == numbered(100, range(10)) + numbered(116, range(10, 15))
    assert world.losses == [116]


def test_only_shifts_of_files_that_are_there_are_kept(world: World) -> None:
    for second in range(0, 50, 5):
        world.write(second, range(3))
        world.end()
    for path in sorted(world.filer.chunks)[:8]:
        world.filer.delete(path)
    world.end()
    world.write(60, range(2))
    expected = world.read()
    assert [offset for offset, _ in expected] == list(range(124, 132))
    assert len(read_shifts(world.filer.content(f"{_FOLDER.path}/{SHIFTS}"))) == 3
    assert world.read(world.another()) == expected


@pytest.mark.parametrize("turns", range(12))
def test_a_shift_that_is_added_during_a_listing_is_kept(world: World, turns: int) -> None:
    """
    Whatever the listing does just then.
    """
    world.write(0, range(3))
    world.write(5, range(3))
    world.take_time()
    listing = Deferred.fromCoroutine(world.files.refresh())
    world.clock.pump([_TURN_S] * turns)
    adding = Deferred.fromCoroutine(world.files.add_shift_at(_NOON_NS + 9 * SECOND_NS, 77, lambda: None))
    world.clock.pump([_TURN_S] * 100)
    assert listing.called
    assert adding.called
    shifts = read_shifts(world.filer.content(f"{_FOLDER.path}/{SHIFTS}"))
    assert [each.name[-2:] for each in shifts] == ["05", "09"]


def test_a_file_that_is_deleted_meanwhile(world: World) -> None:
    world.write(0, range(10))
    world.write(5, range(10, 20))
    read = world.filer.read

    async def deleting_read(path: str, start: int, stop: int, timeout_s: float = 0.0) -> bytes:
        world.filer.read = read  # type: ignore[method-assign]
        world.filer.delete(path)
        return await read(path, start, stop)

    world.filer.read = deleting_read  # type: ignore[method-assign]
    assert world.end().offset == 120


class TestAfterALoss:
    """
    A file with the messages 0 to 9, which are Kafka's offsets 100 to 109; consumers have got the records up to 115,
    and the broker was killed.
    """

    shown = ShownEnd(116, _NOON_NS + 2 * SECOND_NS)

    @pytest.fixture(autouse=True)
    def know(self, world: World) -> None:
        world.shown = self.shown
        world.write(0, range(10))

    def after(self, world: World, shown: ShownEnd | None = shown) -> FilesEnd:
        end = world.end()
        found: FilesEnd = world.done(end_after_loss(world.files, end, shown, lambda: None))
        return found

    @pytest.mark.parametrize("first", [0, 7, 10, 13])
    def test_numbers_that_are_given_again_get_later_offsets(self, world: World, first: int) -> None:
        """
        Whoever lists the files again finds the same offsets.
        """
        world.write(9, range(first, first + 5))
        expected = numbered(100, range(10)) + numbered(116, range(first, first + 5))
        assert world.end()[:2] == (121, first + 5)
        assert world.read() == expected
        assert world.losses == [116]
        assert world.read(world.another()) == expected
        assert world.files.shift_at(_NOON_NS) == 100
        assert world.files.shift_at(_NOON_NS + 9 * SECOND_NS) == 116 - first

    def test_numbers_that_continue_keep_their_offsets(self, world: World) -> None:
        world.write(9, range(18, 22))
        assert self.after(world)[:2] == (122, 22)
        assert world.losses == [116]
        assert world.files.shift_at(_NOON_NS + 9 * SECOND_NS) == 100

    def test_nothing_was_lost(self, world: World) -> None:
        world.write(1, range(10, 16))
        world.write(9, range(16, 18))
        assert self.after(world)[:2] == (118, 18)
        assert self.after(world, None)[:2] == (118, 18)
        assert world.losses == []

    def test_a_gateway_that_starts_before_new_messages_come(self, world: World) -> None:
        """
        They get the offsets after those that consumers know, as soon as there are some.
        """
        assert self.after(world)[:2] == (116, 10)
        assert self.after(world)[:2] == (116, 10)
        world.write(9, range(10, 12))
        assert self.after(world)[:2] == (118, 12)
        assert world.read() == numbered(100, range(10)) + numbered(116, range(10, 12))

    def test_all_files_are_lost(self, world: World) -> None:
        world.filer.chunks.clear()
        world.write(9, range(5))
        assert world.read() == numbered(116, range(5))


class Programs:
    """
    Other programs that publish at the same time through one broker, which flushes and is killed, and a consumer that
    follows by a gateway.
    """

    def __init__(self, seed: int) -> None:
        self.world, self.random = World(), Random(seed)
        self.next = self.second = 0
        self.memory: list[LoggedMessage] = []
        self.slow: list[tuple[int, bytes]] = []  # messages that have a number, and are not in the log yet
        self.log: list[bytes] = []  # what files have
        self.flushed_next = 0
        self.seen: Found = []  # by the consumer that follows
        self.log_end = 100
        self.position = self.ts_ns = 0  # of the message that comes next, as the broker counts; of the one before it
        self.begins: int | None = 100  # the offset of the first message in memory, if the gateway can show it
        self.runs: list[ShownRun] = []

    def publish(self) -> None:
        random = self.random
        for _ in range(random.choice([1, 3, 50, 300])):
            value = b"%d-%d" % (self.second, random.getrandbits(48))
            if len(self.slow) < 3 and random.random() < 0.05:
                self.slow.append((self.next, value))
            else:
                self.append(self.next, value)
            self.next += 1
            if self.slow and random.random() < random.choice([0.5, 0.05]):
                self.append(*self.slow.pop(random.randrange(len(self.slow))))

    def append(self, number: int, value: bytes) -> None:
        ts_ns = _NOON_NS + self.second * SECOND_NS + len(self.memory)
        self.memory.append(LoggedMessage(number, ts_ns, b"k", value))

    def follow(self) -> None:
        """
        The gateway shows what the broker has in memory.
        """
        if self.begins is None:
            return
        found = self.memory[self.log_end - self.begins :]
        if found:
            self.runs.append(ShownRun(self.log_end, [entry.ts_ns for entry in found]))
            self.seen += [(self.log_end + place, entry.value) for place, entry in enumerate(found)]
            self.log_end += len(found)
            self.position += len(found)
            self.ts_ns = found[-1].ts_ns
            self.know()

    def know(self) -> None:
        self.world.shown = ShownEnd(self.log_end, self.ts_ns, tuple(self.runs))

    def flush(self) -> None:
        if self.memory:
            name = log_name(self.memory[0].ts_ns)
            self.world.filer.append(f"{_FOLDER.path}/{name}", framed(self.memory))
            self.log += [entry.value for entry in self.memory]
            self.flushed_next = max(entry.offset for entry in self.memory) + 1
            self.memory.clear()
        self.second += self.random.randrange(1, 5)
        self.take_over()

    def take_over(self) -> None:
        """
        The gateway notices files.
        """
        end = self.world.end()
        if end.last_file and end.offset >= self.log_end:
            known = self.log_end
            self.seen += [each for each in self.world.read() if each[0] >= known]
            self.log_end = self.begins = end.offset
            self.position, self.ts_ns = end.next_message, end.ts_ns
            self.runs.clear()
            self.know()

    def kill_broker(self) -> None:
        """
        It loses what it has in memory, and continues with any number.
        """
        self.memory.clear()
        self.slow.clear()
        self.second += self.random.randrange(1, 5)
        self.next = self.random.choice(
            [self.next, self.flushed_next, self.random.randrange(self.flushed_next + 1), self.next + 500]
        )
        self.begins = self.log_end if self.next == self.position else None

    def check(self) -> None:
        self.flush()
        found = self.world.read() if self.log else []
        assert [value for _, value in found] == self.log
        offsets = [offset for offset, _ in self.seen]
        assert offsets == sorted(set(offsets))
        there = set(self.log)
        assert [each for each in self.seen if each[1] in there] == found
        for files in (self.world.another(), self.world.next_leader()):
            assert (self.world.read(files) if self.log else []) == found


@settings(max_examples=60)
@given(st.integers(0, 1 << 30), st.lists(st.sampled_from(["publish", "follow", "flush", "kill_broker"]), max_size=25))
def test_whoever_follows_gets_what_files_have(seed: int, steps: list[str]) -> None:
    """
    The consumer that follows gets each message of the log once, in its order, at the offset that files give it.
    """
    programs = Programs(seed)
    for step in steps:
        getattr(programs, step)()
    programs.check()
