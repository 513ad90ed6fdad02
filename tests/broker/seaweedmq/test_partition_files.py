"""
Files of a partition grow, vanish, or are replaced, in a real filer.
"""

import time
from dataclasses import dataclass

import pytest
from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import LogLevel, capturedLogs, formatEvent

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.filer.content import FileNotFound
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweedmq.files import log_files, range_reader
from kgateway.broker.seaweedmq.files.deadline_reads import DeadlineReads
from kgateway.broker.seaweedmq.files.partition_files import PartitionFiles
from kgateway.broker.seaweedmq.files.range_reader import RangeCache
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.formats.registry import FORMATS
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.broker.seaweedmq.layout.topic_paths import SECOND_NS, RingRange, log_name
from kgateway.records.batch import batches, read_batch
from kgateway.records.record import Record, records
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.real_reactor import pause, reactor, wait
from tests.broker.seaweedmq.log_messages import NOW_NS, framed
from tests.broker.seaweedmq.memory_filer import MemoryFiler
from tests.records.values import batch_of

_RANGE = 5_000


@pytest.fixture
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Files of many ranges, without many bytes.
    """
    monkeypatch.setattr(log_files, "_BATCHES_BYTES", _RANGE)
    monkeypatch.setattr(log_files, "_RECORDS_BYTES", _RANGE)
    monkeypatch.setattr(log_files, "_LAST_BYTES", _RANGE)
    monkeypatch.setattr(range_reader, "_PIECE_BYTES", 1_000)


@dataclass
class Partition:
    """
    A partition's files, which a test writes as a broker does, and a reader of them.
    """

    filer: Filer
    history: PartitionFiles
    folder: str
    form: str = "batch"
    end: int = 0
    others: int = 0

    def messages(self, count: int, size: int = 900) -> bytes:
        """
        Batches of one record, which follow the last ones.
        """
        found = []
        for offset in range(self.end, self.end + count):
            batch = batch_of([Record(offset, 5, b"k", b"%d:" % offset + bytes(size))], base_offset=offset)
            (message,) = FORMATS[self.form].encode(batch, offset, 0)
            found.append(LoggedMessage(offset + self.others, NOW_NS + offset, message.key, bytes(message.value)))
        self.end += count
        return framed(found)

    def of_others(self, count: int, value: bytes = b"theirs") -> bytes:
        """
        Messages that others have published.
        """
        first = self.end + self.others
        self.others += count
        return framed(LoggedMessage(first + number, NOW_NS + self.end, b"key", value) for number in range(count))

    def write(self, number: int, *chunks: bytes) -> str:
        """
        Write a file of these chunks, or append them to an existing one.
        """
        path = f"{self.folder}/{log_name((1_800_000_000 + number) * SECOND_NS)}"
        entry = wait(self.filer.entry(path)) or self.filer.small_file(b"")
        for data in chunks:
            chunk = wait(self.filer.volumes.upload(path, data)).chunk
            chunk.offset = entry.attributes.file_size
            entry.chunks.append(chunk)
            entry.attributes.file_size += len(data)
        wait(self.filer.create(path, entry, only_if_absent=False))
        return path

    def read_all(self, offset: int, max_bytes: int = 2_000) -> list[int]:
        """
        The offsets of all records from one on, read one fetch after another.
        """
        found: list[int] = []
        while offset < self.end:
            data = done(self.history.read(offset, max_bytes, True, self.end))
            came = [record for piece in data for batch in batches(piece) for record in records(batch)]
            assert came
            assert all((record.value or b"").startswith(b"%d:" % record.offset) for record in came)
            found += [record.offset for record in came if record.offset >= offset]
            offset = found[-1] + 1
        return found

    def noted(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
        """
        Record which bytes are read from now on.
        """
        found: list[tuple[int, int]] = []
        read = self.history._files._read

        def noting(file, start, stop):  # type: ignore[no-untyped-def]
            found.append((start, stop))
            return read(file, start, stop)

        monkeypatch.setattr(self.history._files, "_read", noting)
        return found


@pytest.fixture(params=["batch", "record"])
def partition(
    request: pytest.FixtureRequest, small_ranges: None, seaweed: SeaweedCluster, filer: Filer, folder: str
) -> Partition:
    return partition_of(request.param, seaweed, filer, folder)


@pytest.fixture
def batched(small_ranges: None, seaweed: SeaweedCluster, filer: Filer, folder: str) -> Partition:
    return partition_of("batch", seaweed, filer, folder)


def partition_of(form: str, seaweed: SeaweedCluster, filer: Filer, folder: str) -> Partition:
    place = PartitionFolder(folder, 0, 0, 0, RingRange(0, 2520))
    return Partition(filer, PartitionFiles(seaweed, [place], FORMATS[form], RangeCache(30_000), reactor), folder, form)


def test_files_of_many_ranges_are_read_from_any_offset(partition: Partition) -> None:
    """
    Each record is read once, also by several readers at a time.
    """
    for number in range(3):
        partition.write(number, partition.messages(20), partition.messages(9, 9_000), partition.messages(1, 0))
    for offset in (0, 17, 25, 29, 30, 58, 89, 0):
        assert partition.read_all(offset) == list(range(offset, 90)), offset
    reads = [partition.history.read(offset, 1, True, 90) for offset in range(90)]
    found = done(_all(reads))
    assert [_holds(data, offset) for offset, data in enumerate(found)] == [True] * 90


async def _all(reads):  # type: ignore[no-untyped-def]
    return await gatherResults([Deferred.fromCoroutine(read) for read in reads])


def _holds(data, offset):  # type: ignore[no-untyped-def]
    header = read_batch(data[0]).header
    return header.base_offset <= offset <= header.last_offset


def test_the_end_is_found_in_the_last_chunk(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    If messages are batches; other messages are counted, and read for that once. Later only added bytes are read, and
    none if there are none.
    """
    chunks = [partition.messages(20), partition.messages(7), partition.messages(4, 9_000)]
    path = partition.write(1, *chunks)
    done(partition.history.refresh())
    reads = partition.noted(monkeypatch)
    end = done(partition.history.end(0))
    assert end[:4] == (31, 31, (path, 0), 0)
    last = len(chunks[0] + chunks[1])
    if partition.history._format.batched:
        assert all(start >= last or start == 0 for start, _ in reads)  # at 0 is the first message
    reads.clear()
    assert done(partition.history.end(0)) == end
    assert reads == []
    more = partition.messages(2)
    partition.write(1, more)
    done(partition.history.refresh())
    end = done(partition.history.end(0))
    assert end[:4] == (33, 33, (path, 0), 0)
    assert reads == [(last + len(chunks[2]), last + len(chunks[2] + more))]


def test_the_end_is_found_where_chunks_begin_anywhere(partition: Partition) -> None:
    """
    Chunks of a copied file do.
    """
    data = partition.messages(30, 2_000)
    partition.write(1, *(data[start : start + 7_001] for start in range(0, len(data), 7_001)))
    done(partition.history.refresh())
    assert done(partition.history.end(0)).offset == 30


def test_a_file_that_grows_is_read_on(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The bytes read before are not read again.
    """
    partition.write(1, partition.messages(10))
    assert partition.read_all(0) == list(range(10))
    data = partition.messages(3)
    partition.write(1, data)
    reads = partition.noted(monkeypatch)
    assert partition.read_all(10) == [10, 11, 12]
    assert {stop - start for start, stop in reads} == {len(data)}


def test_a_file_that_was_replaced_is_read_again(partition: Partition) -> None:
    """
    It may have any size.
    """
    path = partition.write(1, partition.messages(12))
    assert partition.read_all(0) == list(range(12))
    for count, size in ((12, 900), (30, 900), (3, 10)):
        wait(partition.filer.delete(path))
        first = partition.end
        partition.write(1, partition.messages(count, size))
        done(partition.history.refresh())
        assert done(partition.history.start()) == first
        assert done(partition.history.end(0)).offset == first + count
        assert partition.read_all(first) == list(range(first, first + count))


def test_what_vanishes_is_found_missing(partition: Partition) -> None:
    """
    A deleted offset is refused, all later ones are read, and the start of the log is known.
    """
    paths = [partition.write(number, partition.messages(30)) for number in range(3)]
    done(partition.history.refresh())
    wait(partition.filer.delete(paths[0]))
    with pytest.raises(KafkaError) as failure:
        done(partition.history.read(4, 2_000, True, partition.end))
    assert failure.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert partition.read_all(30) == list(range(30, 90))
    assert done(partition.history.start()) == 30
    wait(partition.filer.delete(paths[1]))
    done(partition.history.refresh())
    assert done(partition.history.start()) == 60
    wait(partition.filer.delete(paths[2]))
    assert done(partition.history.end(77)).offset == 77
    assert done(partition.history.start()) is None


def test_the_first_file_may_vanish_before_it_is_looked_at(partition: Partition) -> None:
    path, _ = [partition.write(number, partition.messages(30)) for number in range(2)]
    done(partition.history.refresh())
    wait(partition.filer.delete(path))
    assert done(partition.history.start()) == 30


def test_messages_go_on_behind_a_file_that_vanishes(partition: Partition) -> None:
    paths = [partition.write(number, partition.messages(30)) for number in range(3)]

    async def offsets() -> list[int]:
        found: list[int] = []
        async for _, piece in partition.history.messages(0):
            if not found:
                await partition.filer.delete(paths[1])
            found += [entry.offset for entry in piece]
        return found

    done(partition.history.refresh())
    assert done(offsets()) == [*range(30), *range(60, 90)]


def test_files_that_are_deleted_are_forgotten(partition: Partition) -> None:
    """
    Their names, sizes, times and first offsets were known before.
    """
    data = [partition.messages(count) for count in (30, 30, 40)]
    paths = [partition.write(number, each) for number, each in enumerate(data)]
    done(partition.history.refresh())
    history, sizes = partition.history, list(map(len, data))
    assert [file.path for file in history.listed] == paths
    assert [done(history.first(file)) for file in history.listed] == [0, 30, 60]
    assert all(abs(time.time() - file.changed_s) < 60 for file in history.listed)
    assert history.sizes == sizes
    partition.read_all(0)
    wait(partition.filer.delete(paths[0]))
    done(history.refresh())
    assert [file.path for file in history.listed] == paths[1:]
    assert done(history.start()) == 30
    assert set(history._ranges._marks) == set(paths[1:])


def test_a_file_that_is_shorter_than_it_was_listed_is_not_there(partition: Partition) -> None:
    path = partition.write(1, partition.messages(12))
    done(partition.history.refresh())
    (file,) = partition.history.listed
    wait(partition.filer.files.put(path, b"12345"))
    with pytest.raises(FileNotFound, match="was listed with"):
        done(partition.history._files.range_at(file, 0))


def test_what_is_whole_before_damage_is_read(partition: Partition) -> None:
    """
    Ranges before the damage are read, and its own is not.
    """
    partition.write(1, partition.messages(20), b"\0\0\0\7abc")
    partition.end = 21
    with pytest.raises(Malformed):
        partition.read_all(0)
    assert done(partition.history.read(0, 2_000, True, 21))


def test_what_comes_next_is_on_its_way_before_it_is_asked_for(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The next range of the file, or the first of the next file, is prefetched, unless the reader stops within this one.
    """
    first = partition.messages(12)
    partition.write(1, first)
    partition.write(2, partition.messages(12))
    done(partition.history.refresh())
    reads = partition.noted(monkeypatch)
    done(partition.history.read(0, 100_000, True, 3))
    pause(0.2)
    assert [start for start, _ in reads if start] == []
    reads.clear()
    done(partition.history.read(0, 100_000, True, partition.end))
    pause(0.2)
    ((start, _),) = reads
    assert 0 < start < len(first)
    before = len(reads)
    end = read_batch(done(partition.history.read(10, 100_000, True, partition.end))[-1]).header.last_offset
    assert end < 12
    while end < 11:
        end = read_batch(done(partition.history.read(end + 1, 100_000, True, partition.end))[-1]).header.last_offset
    pause(0.2)
    assert (0, _RANGE) in reads[before:]


@pytest.mark.parametrize(("count", "again"), [(10, 4), (3, 1)])
def test_what_is_repeated_is_left_out(partition: Partition, count: int, again: int) -> None:
    """
    It is repeated in the same range or in the next one.
    """
    data = partition.messages(count)
    partition.end = again
    partition.write(1, data, partition.messages(9))
    end = partition.end
    offset, found = 0, list[int]()
    while offset < end:
        pieces = done(partition.history.read(offset, 100_000, True, end))
        headers = [each.header for data in pieces for each in batches(data)]
        found += [number for each in headers for number in range(each.base_offset, each.last_offset + 1)]
        offset = found[-1] + 1
    assert found == list(range(end))


def test_a_file_that_was_read_need_not_be_read_from_its_beginning(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition.write(1, partition.messages(60))
    partition.read_all(0)
    reads = partition.noted(monkeypatch)
    assert _holds(done(partition.history.read(30, 1, True, 31)), 30)
    assert len(reads) == 1


def test_offsets_of_others_go_on_in_another_range(
    seaweed: SeaweedCluster, filer: Filer, folder: str, small_ranges: None
) -> None:
    """
    They count on from the last message of ours, wherever that was.
    """
    history = PartitionFiles(
        seaweed, [PartitionFolder(folder, 0, 0, 0, RingRange(0, 2520))], FORMATS["record"], RangeCache(30_000), reactor
    )
    (ours,) = FORMATS["record"].encode(batch_of([Record(100, 5, b"k", b"v")], base_offset=100), 100, 0)
    others = [LoggedMessage(number, NOW_NS + number, b"", b"x" * 900) for number in range(1, 20)]
    data = framed([LoggedMessage(0, NOW_NS, ours.key, bytes(ours.value)), *others])
    Partition(filer, history, folder, "record").write(1, data)
    offset = 100
    while offset < 120:
        found = [each.header for data in done(history.read(offset, 1, True, 120)) for each in batches(data)]
        assert found[0].base_offset == offset or found[0].base_offset < offset <= found[0].last_offset
        offset = found[-1].last_offset + 1
    assert offset == 120

    async def shifts() -> set[int]:
        return {folder.shift async for folder, piece in history.messages(0) if piece[0].offset}

    assert done(shifts()) == {100}


def test_what_others_write_among_batches_is_passed_over(batched: Partition) -> None:
    """
    It may be after batches, before them, alone in files, or larger than a range. Each batch is read once.
    """
    large = b"x" * 2 * _RANGE
    batched.write(1, batched.of_others(2))
    batched.write(2, batched.messages(3), batched.of_others(1), batched.messages(20), batched.of_others(1, large))
    batched.write(3, batched.of_others(3), batched.of_others(2, large))
    batched.write(4, batched.of_others(30, b"y" * 900), batched.messages(9))
    batched.write(5, batched.of_others(1))
    history, end = batched.history, batched.end
    for offset in range(0, end, 5):
        assert batched.read_all(offset) == list(range(offset, end)), offset
    assert done(history.start()) == 0
    assert [done(history.first(file)) for file in history.listed] == [0, 0, 23, 23, None]
    paths = [file.path for file in history.listed]
    before = history.listed
    batched.write(5, batched.of_others(1))
    done(history.refresh())
    assert [done(history.first(file)) for file in before] == [0, 0, 23, 23, None]  # one of which has grown
    assert [done(history.path_of(offset)) for offset in (0, 22, 23, 31)] == [paths[1], paths[1], paths[3], paths[3]]
    (last,) = history.listed[-1:]
    assert done(history.end(0))[:4] == (end, end + batched.others, (last.path, end + batched.others - 2), 0)


def test_the_end_is_found_behind_what_others_write(batched: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Kafka's end is that of the last batch, and SeaweedMQ's counts messages of others. Bytes are read once.
    """
    assert done(batched.history.end(77))[:4] == (77, 0, None, 0)
    path = batched.write(1, batched.of_others(2))
    done(batched.history.refresh())
    assert done(batched.history.end(77))[:4] == (77, 2, (path, 0), 0)
    assert done(batched.history.start()) is None
    data = batched.messages(8), batched.of_others(1), batched.of_others(2)
    batched.write(1, *data)
    done(batched.history.refresh())
    assert done(batched.history.end(0))[:4] == (8, 13, (path, 0), 0)
    assert done(batched.history.start()) == 0
    for write, others in ((1, 14), (2, 15), (2, 16)):
        before = sum(batched.history.sizes) if write == 1 else 0
        batched.write(write, batched.of_others(1))
        done(batched.history.refresh())
        reads = batched.noted(monkeypatch)
        end = done(batched.history.end(0))
        assert (end.offset, end.next_message) == (8, others)
        assert all(start >= before for start, _ in reads)
        assert sum(stop - start for start, stop in reads) < len(data[0])


def test_a_file_in_which_others_have_written_all_is_looked_through_once(
    batched: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Only added bytes are read, or all of them if the file is another one.
    """

    def first() -> int | None:
        done(batched.history.refresh())
        return done(batched.history.first(batched.history.listed[0]))

    data = batched.of_others(50)
    path = batched.write(1, data)
    assert first() is None
    reads = batched.noted(monkeypatch)
    assert first() is None
    assert reads == []
    batched.write(1, batched.of_others(1))
    assert first() is None
    assert {start for start, _ in reads} == {len(data)}
    wait(batched.filer.delete(path))
    batched.write(1, batched.messages(1, 10))
    assert first() == 0


def test_producers_are_found_among_what_others_write(batched: Partition) -> None:
    one = batch_of([Record(0, 5, b"k", b"v")], base_offset=0, producer_id=7, producer_epoch=0, base_sequence=0)
    ours = framed([LoggedMessage(1, NOW_NS, b"", bytes(one.data))])
    batched.write(1, batched.of_others(1), ours, batched.of_others(1))
    done(batched.history.refresh())
    assert [header.producer_id for header in done(batched.history.producers(0, 1))] == [7]


def test_what_others_write_is_told_once(batched: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A message is logged by its number and folder, whoever reads it first; the number of log lines is bounded.
    """
    monkeypatch.setattr(log_files, "_REPORTED_MAX", 3)
    with capturedLogs() as logs:
        batched.write(1, batched.messages(3), batched.of_others(1), batched.messages(3), batched.of_others(1))
        for _ in range(2):
            done(batched.history.refresh())
            assert done(batched.history.end(0)).offset == 6
            assert batched.read_all(0) == list(range(6))
            batched.history._ranges.forget([file.path for file in batched.history.listed])
            batched.history._files._forget([file.path for file in batched.history.listed])
        told = [formatEvent(event) for event in logs if event["log_level"] is LogLevel.warn]
        assert len(told) == 2
        for number in (3, 7):
            reason = "the value is not a Kafka record batch"
            start = f"skipped message {number} of another program in {batched.folder}: {reason}"
            assert len([line for line in told if line.startswith(start)]) == 1
        batched.write(2, batched.of_others(3), batched.messages(1))
        assert batched.read_all(0) == list(range(7))
    told = [formatEvent(event) for event in logs if event["log_level"] is LogLevel.warn]
    assert ["no more are logged" in line for line in told] == [False, False, True]


def test_a_damaged_batch_is_not_passed_over(batched: Partition) -> None:
    """
    Neither readers nor the search for the end skip it, because a new batch would get its offsets.
    """
    batched.write(1, batched.messages(3).replace(b"2:", b"3:"))
    done(batched.history.refresh())
    history = batched.history
    for ask in (lambda: history.read(0, 2_000, True, 3), lambda: history.end(0), lambda: history.producers(0, 3)):
        with pytest.raises(Malformed, match="the CRC is not that of the bytes"):
            done(ask())


@pytest.mark.parametrize("place", [0, 1, 2])
def test_files_beside_a_damaged_one_are_read(partition: Partition, place: int) -> None:
    """
    Any offset may be read first, in any file; only readers that reach the damage get an error.
    """
    damaged = (b"\0\0\0\7nothing" + bytes(40))[place:]
    for number in range(6):
        whole = partition.messages(20)
        partition.write(number, damaged + whole if number in (2, 3) else whole)
    done(partition.history.refresh())
    partition_end, partition.end = partition.end, 40
    for offset in range(0, 40, 3):
        assert partition.read_all(offset) == list(range(offset, 40)), offset
    partition.end = partition_end
    for offset in range(80, 120, 3):
        assert partition.read_all(offset) == list(range(offset, 120)), offset
    for offset in range(40, 80, 3):
        with pytest.raises(Malformed):
            done(partition.history.read(offset, 2_000, True, partition_end))


def test_a_file_begins_with_its_first_message_whatever_comes_behind_it(partition: Partition) -> None:
    """
    Damage after it is not read.
    """
    for number in range(4):
        first, rest = partition.messages(1), partition.messages(19)
        partition.write(number, first + b"\xff" + rest[1:] if number in (1, 2) else first + rest)
    done(partition.history.refresh())
    assert [done(partition.history.first(file)) for file in partition.history.listed] == [0, 20, 40, 60]
    for offset in (0, 20, 40):
        assert _holds(done(partition.history.read(offset, 2_000, True, partition.end)), offset)
        if offset:
            with pytest.raises(Malformed, match="a message cannot have"):
                done(partition.history.read(offset + 1, 2_000, True, partition.end))


def test_what_takes_longer_than_anybody_waits_is_read(partition: Partition) -> None:
    """
    A reader that asks again gets it, also if it is larger than the memory for ranges.
    """
    partition.write(1, partition.messages(3), partition.messages(1, 40_000), partition.messages(2))
    done(partition.history.refresh())
    arrived = Deferred[None]()
    reads = DeadlineReads(partition.history.read, reactor, lambda: arrived.callback(None))
    for offset in range(partition.end):
        found = reads.read(offset, 1, True, partition.end, 0.0)
        if isinstance(found, Deferred) and not (found := wait(found)):
            wait(arrived)
            arrived = Deferred()
            found = reads.read(offset, 1, True, partition.end, 0.0)
        assert isinstance(found, list)
        assert _holds(found, offset)


def test_offsets_of_lost_messages_are_not_given_again_when_a_topic_has_grown() -> None:
    """
    The log ends where the newest folder begins, even if earlier files end before.
    """
    filer = MemoryFiler()
    folders = [PartitionFolder(f"/t/v{n}/0000-2520", 7 * n, 0, n, RingRange(0, 2520)) for n in range(2)]
    files = PartitionFiles(filer, folders, FORMATS["plain"], RangeCache(0), reactor)  # type: ignore[arg-type]
    done(files.refresh())
    assert done(files.end(0))[:3] == (7, 0, None)
    entry = LoggedMessage(0, NOW_NS, b"key", b"value")
    filer.append(f"{folders[0].path}/{log_name(NOW_NS)}", framed([entry]))
    done(files.refresh())
    assert done(files.end(0))[:3] == (7, 0, None)
    filer.append(f"{folders[1].path}/{log_name(NOW_NS)}", framed([entry]))
    done(files.refresh())
    assert done(files.end(0))[:2] == (8, 1)
