"""
Messages of other programs, which consumers get out of the memory of a broker, and the offsets that files give them.
"""

from collections.abc import Iterator, Sequence

import pytest

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.protos.filer_pb2 import LogEntry
from kgateway.broker.seaweed.protos.schema_pb2 import RecordType
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.broker.seaweedmq.files.partition_files import FilesEnd, PartitionFiles
from kgateway.broker.seaweedmq.files.range_reader import RangeCache
from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.formats.record import RecordFormat
from kgateway.broker.seaweedmq.formats.registry import FORMATS
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.broker.seaweedmq.layout.topic_paths import SECOND_NS, RingRange, log_name
from kgateway.broker.seaweedmq.partitions.lost_messages import ShownEnd, count_after_loss, end_after_loss
from kgateway.broker.seaweedmq.partitions.partition import SeaweedMQPartition
from kgateway.cluster.partition import Isolation, Read
from kgateway.interfaces import IPartition
from kgateway.records.batch import batches
from kgateway.records.record import records
from tests.broker.behaviour import appended, batch, result
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.real_reactor import reactor, until, wait
from tests.broker.seaweedmq.foreign_topic import ForeignTopic
from tests.broker.seaweedmq.gateways import Start, ledger_end, running

_NOON_NS = 1_800_000_000 * SECOND_NS


def opened(broker: SeaweedMQBroker, name: str) -> SeaweedMQPartition:
    """
    The only partition of a topic that others have made, once it is open.
    """
    topic = until(lambda: broker.view().topics.get(name))
    until(lambda: (topic.id, 0) in broker._election.role.topics.registry.open)  # type: ignore[union-attr]
    found = broker.partition(topic.id, 0)
    assert isinstance(found, SeaweedMQPartition)
    return found


def come(partition: IPartition, end: int) -> None:
    """
    Wait as a consumer does until there are records before this offset.
    """
    cancel = partition.watch(lambda: None)
    try:
        until(lambda: _values(partition, partition.high_watermark) is not None and partition.high_watermark >= end)
    finally:
        cancel()


def _values(partition: IPartition, offset: int) -> list[tuple[int, bytes | None]]:
    read: Read = result(partition.read(offset, 1 << 20, Isolation.READ_UNCOMMITTED, True))
    found = [record for data in read.batches for each in batches(data) for record in records(each)]
    return [(record.offset, record.value) for record in found if record.offset >= offset]


def all_values(partition: IPartition) -> list[tuple[int, bytes | None]]:
    """
    All records with their offsets.
    """
    found: list[tuple[int, bytes | None]] = []
    while (offset := found[-1][0] + 1 if found else 0) < partition.high_watermark:
        found += _values(partition, offset)
    return found


@pytest.fixture(params=[None, RecordFormat().record_type()], ids=["plain", "record"])
def theirs(request: pytest.FixtureRequest, cluster: DevCluster, namespace: str) -> ForeignTopic:
    columns: RecordType | None = request.param
    return ForeignTopic(cluster, columns, "theirs", namespace)


def test_they_have_the_same_offsets_in_files(theirs: ForeignTopic, start: Start) -> None:
    """
    They come between records of ours. Another gateway, which gets them out of files, has the same records.
    """
    first, second = ([Message(b"k", b"%s %d" % (name, number)) for number in range(3)] for name in (b"a", b"b"))
    with running(start) as broker:
        partition = opened(broker, "theirs")
        with theirs.publisher(first):
            come(partition, 3)
            assert _values(partition, 0) == [(number, message.value) for number, message in enumerate(first)]
            until(lambda: partition.unflushed_count == 0)
            answer = appended(partition, batch(2, timestamp=-1))
            assert answer.base_offset == 3
            assert answer.stored is None or result(answer.stored) is None
            with theirs.publisher(second):
                come(partition, 8)
        until(lambda: partition.unflushed_count == 0)
        seen = all_values(partition)
        assert [offset for offset, _ in seen] == list(range(8))
        assert [value for _, value in seen[5:]] == [message.value for message in second]
        until(lambda: ledger_end(partition) == 8)
        assert partition._ledger
        mappings = [partition._ledger.ledger.at(offset) for offset in range(8)]
        assert [each and each.message_offset for each in mappings] == list(range(8))
    with running(start) as broker:
        again = opened(broker, "theirs")
        assert all_values(again) == seen


def test_ours_can_follow_them_before_they_are_in_files(theirs: ForeignTopic, start: Start) -> None:
    """
    The gateway knows which number its next message gets.
    """
    with running(start) as broker:
        partition = opened(broker, "theirs")
        assert result(appended(partition, batch(1)).committed) is None
        with theirs.publisher([Message(b"k", b"v")]):
            come(partition, 2)
            answer = appended(partition, batch(1))
            assert answer.base_offset == 2
            assert answer.committed
            result(answer.committed)
            assert partition.lost is None


@pytest.fixture
def files(seaweed: SeaweedCluster, folder: str) -> PartitionFiles:
    part = PartitionFolder(folder, 100, 0, 0, RingRange(0, 2520))
    return PartitionFiles(seaweed, [part], FORMATS["plain"], RangeCache(1 << 20), reactor)


@pytest.fixture
def write(filer: Filer, folder: str) -> Iterator[object]:
    """
    A function that writes a file for a second after noon, with messages of these numbers.
    """

    def written(second: int, numbers: Sequence[int]) -> None:
        time = _NOON_NS + second * SECOND_NS
        found = [
            LogEntry(ts_ns=time + place, data=b"%d" % number, offset=number).SerializeToString()
            for place, number in enumerate(numbers)
        ]
        data = b"".join(len(each).to_bytes(4, "big") + each for each in found)
        wait(filer.files.put(f"{folder}/{log_name(time)}", data))

    return written  # type: ignore[return-value]


def read_all(files: PartitionFiles, start: int, stop: int) -> list[tuple[int, bytes | None]]:
    """
    The records from one offset to another, with their offsets.
    """
    found = list[tuple[int, bytes | None]]()
    while start < stop:
        data = done(files.read(start, 1 << 20, True, stop))
        new = [(each.offset, each.value) for buffer in data for one in batches(buffer) for each in records(one)]
        found += [each for each in new if each[0] >= start]
        start = found[-1][0] + 1
    return found


def test_messages_that_have_changed_places_are_read_in_the_order_of_the_log(files, write) -> None:  # type: ignore[no-untyped-def]
    """
    One was overtaken by the last message of a file.
    """
    numbers = [*range(20), 21, 20, *range(22, 50), 51, 50, *range(52, 100)]
    write(0, numbers[:51])
    write(5, numbers[51:])
    done(files.refresh())
    assert read_all(files, 100, 200) == [(100 + place, b"%d" % number) for place, number in enumerate(numbers)]
    assert done(files.end(0))[:2] == (200, 100)
    assert [done(files.first(file)) for file in files.listed] == [100, 151]


class TestAfterALoss:
    """
    A file with the messages 0 to 9, which are Kafka's offsets 100 to 109; consumers have got the records up to 115,
    and the broker was killed.
    """

    shown = ShownEnd(116, _NOON_NS + 2 * SECOND_NS)

    def end(self, files: PartitionFiles, shown: ShownEnd | None) -> FilesEnd:
        done(files.refresh())
        return done(end_after_loss(files, done(files.end(0)), shown, lambda: None))

    @pytest.mark.parametrize("first", [10, 13])
    def test_numbers_that_are_given_again_get_later_offsets(self, files, write, seaweed, first) -> None:  # type: ignore[no-untyped-def]
        """
        Whoever lists the files again finds the same offsets.
        """
        write(0, range(10))
        write(9, range(first, first + 5))
        done(files.refresh())
        assert done(count_after_loss(files, self.shown, lambda: None))
        expected = [(116 + n, b"%d" % (first + n)) for n in range(5)]
        assert done(files.end(0))[:2] == (121, first + 5)
        assert read_all(files, 110, 121) == expected
        assert not done(count_after_loss(files, self.shown, lambda: None))
        again = PartitionFiles(seaweed, files.folders, FORMATS["plain"], RangeCache(1 << 20), reactor)
        done(again.refresh())
        assert read_all(again, 100, 121) == [(100 + n, b"%d" % n) for n in range(10)] + expected
        assert again.shift_at(_NOON_NS) == 100
        assert again.shift_at(_NOON_NS + 9 * SECOND_NS) == 116 - first

    def test_numbers_that_continue_keep_their_offsets(self, files, write) -> None:  # type: ignore[no-untyped-def]
        write(0, range(10))
        write(9, range(16, 20))
        assert self.end(files, self.shown)[:2] == (120, 20)
        assert files.shift_at(_NOON_NS + 9 * SECOND_NS) == 100

    def test_nothing_was_lost(self, files, write) -> None:  # type: ignore[no-untyped-def]
        write(0, range(16))
        assert self.end(files, self.shown)[:2] == (116, 16)
        assert self.end(files, None)[:2] == (116, 16)

    def test_a_gateway_that_starts_before_new_messages_come(self, files, write) -> None:  # type: ignore[no-untyped-def]
        """
        They get the offsets after those that consumers know, as soon as there are some.
        """
        write(0, range(10))
        assert self.end(files, self.shown)[:2] == (116, 10)
        assert self.end(files, self.shown)[:2] == (116, 10)
        write(9, range(10, 12))
        assert self.end(files, self.shown)[:2] == (118, 12)
        assert read_all(files, 110, 118) == [(116, b"10"), (117, b"11")]
