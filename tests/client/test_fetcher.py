"""
Fetching from a scripted server.
"""

from collections.abc import Iterator

import pytest

from kgateway.client.cluster import Cluster
from kgateway.client.fetcher import Fetcher
from kgateway.messages.fetch import FetchRequest, FetchResponse
from kgateway.messages.list_offsets import ListOffsetsResponse
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from kgateway.records.builder import BatchBuilder
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.client.scripted import ScriptedServer, scripted

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)
Part = FetchResponse.Response.Partition


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """
    The leader of topic `orders` with two partitions.
    """
    with scripted(Metadata=(0, 13), Fetch=(4, 18), ListOffsets=(1, 10)) as server:
        broker = MetadataResponse.Broker(node_id=1, host=server.address.host, port=server.address.port)
        kind = MetadataResponse.Topic
        parts = [
            kind.Partition(error_code=0, partition_index=index, leader_id=1, replica_nodes=[1], isr_nodes=[1])
            for index in range(2)
        ]
        server.will(MetadataResponse(brokers=[broker], topics=[kind(error_code=0, name="orders", partitions=parts)]))
        yield server


@pytest.fixture
def cluster(server: ScriptedServer) -> Iterator[Cluster]:
    with Cluster([server.address], 5.0) as cluster:
        yield cluster


def batch(base_offset: int, count: int = 2, is_control: bool = False) -> bytes:
    builder = BatchBuilder(base_offset=base_offset, is_control=is_control)
    for number in range(count):
        builder.append(None, b"%d" % (base_offset + number), timestamp=0)
    return builder.build()


def fetch_response(data: bytes = b"", code: ErrorCode = ErrorCode.NONE, index: int = 0) -> FetchResponse:
    """
    A Fetch response for one partition.
    """
    part = Part(
        partition_index=index, error_code=code, high_watermark=9, aborted_transactions=None, records=memoryview(data)
    )
    return FetchResponse(responses=[FetchResponse.Response(topic="orders", partitions=[part])])


def read(fetcher: Fetcher) -> list[int]:
    """
    The offsets of the next records.
    """
    return [
        record.offset for fetched in fetcher.poll(0) for records in fetcher.records_of(fetched) for record in records
    ]


def test_reading_continues_at_the_position(server: ScriptedServer, cluster: Cluster) -> None:
    """
    Records before the position are skipped; a batch that is cut off is fetched again.
    """
    server.will(fetch_response(batch(3, 3) + batch(6) + batch(8)[:-1]), fetch_response())
    fetcher = Fetcher(cluster, {ONE: 4})
    assert read(fetcher) == [4, 5, 6, 7]
    assert fetcher.positions == {ONE: 8}
    assert read(fetcher) == []
    asked = [request.topics[0].partitions[0] for request, _ in server.asked if isinstance(request, FetchRequest)]
    assert [part.fetch_offset for part in asked] == [4, 8]


def test_an_earlier_batch_is_skipped(server: ScriptedServer, cluster: Cluster) -> None:
    """
    An earlier batch does not move the position back.
    """
    server.will(fetch_response(batch(1)))
    fetcher = Fetcher(cluster, {ONE: 4})
    assert read(fetcher) == []
    assert fetcher.positions == {ONE: 4}


def test_damaged_records(server: ScriptedServer, cluster: Cluster) -> None:
    """
    They are not fetched again and again: `poll` hands the damage out beside what it has read, and `fetch` raises it.
    """
    damaged = fetch_response(code=ErrorCode.CORRUPT_MESSAGE)
    damaged.responses[0].partitions.append(fetch_response(batch(0), index=1).responses[0].partitions[0])
    server.will(damaged, damaged)
    fetcher = Fetcher(cluster, {ONE: 7, TWO: 0})
    one, two = fetcher.poll(0)
    assert str(one.damage) == (
        "CORRUPT_MESSAGE: orders-0: the records at offset 7 are damaged on the server; reading can continue at a later "
        "offset"
    )
    assert (one.batches, two.damage, len(two.batches)) == ([], None, 1)
    with pytest.raises(KafkaError, match="orders-0: the records at offset 7 are damaged"):
        fetcher.fetch(0)
    assert fetcher.positions == {ONE: 7, TWO: 0}


def test_control_batches_have_no_records(server: ScriptedServer, cluster: Cluster) -> None:
    """
    The position moves behind them, and behind batches emptied by compaction.
    """
    server.will(fetch_response(batch(0, 1, is_control=True) + batch(5, 0)))
    fetcher = Fetcher(cluster, {ONE: 0})
    assert read(fetcher) == []
    assert fetcher.positions == {ONE: 6}


def test_a_moved_leader_is_looked_up(server: ScriptedServer, cluster: Cluster) -> None:
    """
    Nothing is missed or read twice after a change of leader.
    """
    server.will(fetch_response(code=ErrorCode.NOT_LEADER_OR_FOLLOWER), fetch_response(batch(0)))
    fetcher = Fetcher(cluster, {ONE: 0})
    assert read(fetcher) == [0, 1]
    assert sum(isinstance(request, MetadataRequest) for request, _ in server.asked) == 2


def test_deleted_records_are_skipped(server: ScriptedServer, cluster: Cluster) -> None:
    """
    Reading continues with the first record that exists.
    """
    kind = ListOffsetsResponse.Topic
    start = kind.Partition(partition_index=0, error_code=0, timestamp=-1, offset=7)
    server.will(ListOffsetsResponse(topics=[kind(name="orders", partitions=[start])]))
    server.will(fetch_response(code=ErrorCode.OFFSET_OUT_OF_RANGE), fetch_response(batch(7)))
    fetcher = Fetcher(cluster, {ONE: 3})
    assert read(fetcher) == []
    assert read(fetcher) == [7, 8]


def test_a_shorter_log_is_an_error(server: ScriptedServer, cluster: Cluster) -> None:
    """
    A log that has become shorter is not waited for.
    """
    kind = ListOffsetsResponse.Topic
    start = kind.Partition(partition_index=0, error_code=0, timestamp=-1, offset=0)
    server.will(ListOffsetsResponse(topics=[kind(name="orders", partitions=[start])]))
    server.will(fetch_response(code=ErrorCode.OFFSET_OUT_OF_RANGE))
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE: orders-0 has no offset 99"):
        read(Fetcher(cluster, {ONE: 99}))


def test_an_error_names_the_partition(server: ScriptedServer, cluster: Cluster) -> None:
    """
    Only one of several partitions is named.
    """
    server.will(fetch_response(code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED: orders-0: the client may not"):
        read(Fetcher(cluster, {ONE: 0}))


def test_partitions_rotate(server: ScriptedServer, cluster: Cluster) -> None:
    """
    A response may have room for the first partition only.
    """
    server.will(fetch_response())
    fetcher = Fetcher(cluster, {ONE: 0, TWO: 0})
    for _ in range(3):
        read(fetcher)
    asked = [
        request.topics[0].partitions[0].partition for request, _ in server.asked if isinstance(request, FetchRequest)
    ]
    assert asked == [0, 1, 0]


def test_a_missing_partition_is_an_error(cluster: Cluster) -> None:
    """
    The error is raised when patience ends.
    """
    cluster._patience_s = 0
    with pytest.raises(KafkaError, match="there is no orders-7"):
        read(Fetcher(cluster, {TopicPartition("orders", 7): 0}))
