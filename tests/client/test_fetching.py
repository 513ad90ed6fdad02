"""
What is read of logs, before a server that says what a test has it say.
"""

from collections.abc import Iterator

import pytest

from kgateway.client.cluster import Cluster
from kgateway.client.fetching import Fetching
from kgateway.client.offsets import Partition
from kgateway.messages.fetch import FetchRequest, FetchResponse
from kgateway.messages.list_offsets import ListOffsetsResponse
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from kgateway.records.builder import BatchBuilder
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.client.scripted import Scripted, scripted

ONE, TWO = Partition("orders", 0), Partition("orders", 1)
Part = FetchResponse.Response.Partition


@pytest.fixture
def server() -> Iterator[Scripted]:
    """
    It leads topic `orders` of two partitions.
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
def cluster(server: Scripted) -> Iterator[Cluster]:
    """
    Which has no other server.
    """
    with Cluster([server.address], 5.0) as cluster:
        yield cluster


def batch(base_offset: int, count: int = 2, is_control: bool = False) -> bytes:
    """
    Records of a log.
    """
    builder = BatchBuilder(base_offset=base_offset, is_control=is_control)
    for number in range(count):
        builder.append(None, b"%d" % (base_offset + number), timestamp=0)
    return builder.build()


def told(data: bytes = b"", code: ErrorCode = ErrorCode.NONE, index: int = 0) -> FetchResponse:
    """
    What there is of a partition.
    """
    part = Part(
        partition_index=index, error_code=code, high_watermark=9, aborted_transactions=None, records=memoryview(data)
    )
    return FetchResponse(responses=[FetchResponse.Response(topic="orders", partitions=[part])])


def read(fetching: Fetching) -> list[int]:
    """
    The offsets of the next records.
    """
    return [
        record.offset for fetched in fetching.poll(0) for records in fetching.records_of(fetched) for record in records
    ]


def test_reading_goes_on_behind_what_was_read(server: Scripted, cluster: Cluster) -> None:
    """
    From the position on, though a batch begins before it; a batch that is cut off is read the next time.
    """
    server.will(told(batch(3, 3) + batch(6) + batch(8)[:-1]), told())
    fetching = Fetching(cluster, {ONE: 4})
    assert read(fetching) == [4, 5, 6, 7]
    assert fetching.positions == {ONE: 8}
    assert read(fetching) == []
    asked = [request.topics[0].partitions[0] for request, _ in server.asked if isinstance(request, FetchRequest)]
    assert [part.fetch_offset for part in asked] == [4, 8]


def test_a_batch_that_was_read_is_not_read_again(server: Scripted, cluster: Cluster) -> None:
    """
    Nor does it lead back.
    """
    server.will(told(batch(1)))
    fetching = Fetching(cluster, {ONE: 4})
    assert read(fetching) == []
    assert fetching.positions == {ONE: 4}


def test_what_servers_note_is_no_record(server: Scripted, cluster: Cluster) -> None:
    """
    Nor is what compaction has left of a batch; reading goes on behind both.
    """
    server.will(told(batch(0, 1, is_control=True) + batch(5, 0)))
    fetching = Fetching(cluster, {ONE: 0})
    assert read(fetching) == []
    assert fetching.positions == {ONE: 6}


def test_a_leader_that_has_moved_is_looked_for(server: Scripted, cluster: Cluster) -> None:
    """
    And nothing is missed or read twice.
    """
    server.will(told(code=ErrorCode.NOT_LEADER_OR_FOLLOWER), told(batch(0)))
    fetching = Fetching(cluster, {ONE: 0})
    assert read(fetching) == [0, 1]
    assert sum(isinstance(request, MetadataRequest) for request, _ in server.asked) == 2


def test_what_is_gone_is_skipped(server: Scripted, cluster: Cluster) -> None:
    """
    Reading goes on with the first record that there is.
    """
    kind = ListOffsetsResponse.Topic
    start = kind.Partition(partition_index=0, error_code=0, timestamp=-1, offset=7)
    server.will(ListOffsetsResponse(topics=[kind(name="orders", partitions=[start])]))
    server.will(told(code=ErrorCode.OFFSET_OUT_OF_RANGE), told(batch(7)))
    fetching = Fetching(cluster, {ONE: 3})
    assert read(fetching) == []
    assert read(fetching) == [7, 8]


def test_what_is_not_yet_there_is_an_error(server: Scripted, cluster: Cluster) -> None:
    """
    A log that has become shorter is no log to wait for.
    """
    kind = ListOffsetsResponse.Topic
    start = kind.Partition(partition_index=0, error_code=0, timestamp=-1, offset=0)
    server.will(ListOffsetsResponse(topics=[kind(name="orders", partitions=[start])]))
    server.will(told(code=ErrorCode.OFFSET_OUT_OF_RANGE))
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE: orders-0 has no offset 99"):
        read(Fetching(cluster, {ONE: 99}))


def test_an_error_names_the_partition(server: Scripted, cluster: Cluster) -> None:
    """
    For there may be many.
    """
    server.will(told(code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED: orders-0: the client may not"):
        read(Fetching(cluster, {ONE: 0}))


def test_each_comes_first_in_turn(server: Scripted, cluster: Cluster) -> None:
    """
    An answer that is full with the first is not always full with the same.
    """
    server.will(told())
    fetching = Fetching(cluster, {ONE: 0, TWO: 0})
    for _ in range(3):
        read(fetching)
    asked = [
        request.topics[0].partitions[0].partition for request, _ in server.asked if isinstance(request, FetchRequest)
    ]
    assert asked == [0, 1, 0]


def test_a_partition_that_is_not_there_is_an_error(cluster: Cluster) -> None:
    """
    When there is no hope for it any more.
    """
    cluster._patience_s = 0
    with pytest.raises(KafkaError, match="orders-7 is not there"):
        read(Fetching(cluster, {Partition("orders", 7): 0}))
