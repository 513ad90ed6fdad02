"""
Messages of other programs, which consumers get out of the memory of a broker, and the offsets that files give them.
"""

import pytest

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.protos.schema_pb2 import RecordType
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.formats.record import RecordFormat
from kgateway.broker.seaweedmq.layout.topic_paths import SECOND_NS
from kgateway.broker.seaweedmq.partitions.partition import SeaweedMQPartition
from kgateway.cluster.partition import Isolation, Read
from kgateway.cluster.view import NewTopic
from kgateway.interfaces import IPartition
from kgateway.records.batch import batches
from kgateway.records.record import records
from tests.broker.behaviour import appended, batch, result
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.real_reactor import until
from tests.broker.seaweedmq.foreign_topic import ForeignTopic
from tests.broker.seaweedmq.gateways import Start, ledger_end, running
from tests.broker.seaweedmq.test_external_changes import PLAIN

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
            assert partition._others.end.offset == 2  # which counts if the broker is killed now
            assert answer.committed
            result(answer.committed)
            assert partition.lost is None


def test_ours_are_not_taken_for_theirs(start: Start) -> None:
    """
    The broker was asked before a message of ours was published, and answers with that message.
    """
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("ours", 1, config=PLAIN)))
        partition = broker.partition(topic.id, 0)
        assert isinstance(partition, SeaweedMQPartition)
        answer = appended(partition, batch(1))
        done(partition._show_others([LoggedMessage(0, _NOON_NS, b"k", b"v")]))
        assert partition._context.files.shift_at(_NOON_NS) == 0
        assert answer.committed
        result(answer.committed)
        assert partition.log_end == 1
