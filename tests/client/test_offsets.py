"""
Committed offsets, and offsets in logs.
"""

import pytest

from kgateway.client.cluster import partitions_of
from kgateway.client.group_offsets import OffsetAndMetadata, commit_offsets, committed_offsets
from kgateway.client.offsets import EARLIEST, LATEST, Extent, OffsetAndTimestamp, extents, offsets_at
from kgateway.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from kgateway.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kgateway.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.client.scripted import Pair

PlaceTopic, StoredTopic, TopicAnswer = ListOffsetsResponse.Topic, OffsetCommitResponse.Topic, MetadataResponse.Topic
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


def place(index: int, offset: int, timestamp: int = -1, code: int = 0) -> ListOffsetsResponse:
    """
    A ListOffsets response about one partition of orders.
    """
    told = PlaceTopic.Partition(partition_index=index, error_code=code, timestamp=timestamp, offset=offset)
    return ListOffsetsResponse(topics=[PlaceTopic(name="orders", partitions=[told])])


def stored(*codes: ErrorCode) -> OffsetCommitResponse:
    """
    An OffsetCommit response about partitions of orders.
    """
    told = [StoredTopic.Partition(partition_index=index, error_code=code) for index, code in enumerate(codes)]
    return OffsetCommitResponse(topics=[StoredTopic(name="orders", partitions=told)])


@pytest.mark.parametrize("newest", [7, 10])
def test_committed_offsets(pair: Pair, newest: int) -> None:
    """
    All offsets are fetched by topic name in old and new versions; -1 is no offset.
    """
    key = OffsetFetchRequest.__spec__.key or 0
    pair.second.offered[key] = (1, newest)
    offsets = [(0, 5, "note"), (1, -1, None), (2, 0, None)]
    old = OffsetFetchResponse.Topic(
        name="orders",
        partitions=[
            OffsetFetchResponse.Topic.Partition(partition_index=n, committed_offset=at, metadata=text, error_code=0)
            for n, at, text in offsets
        ],
    )
    new = OffsetFetchResponse.Group.Topic(
        name="orders",
        partitions=[
            OffsetFetchResponse.Group.Topic.Partition(
                partition_index=n, committed_offset=at, metadata=text, error_code=0
            )
            for n, at, text in offsets
        ],
    )
    pair.second.will(
        OffsetFetchResponse(topics=[old], groups=[OffsetFetchResponse.Group(group_id="billing", topics=[new])])
    )
    assert committed_offsets(pair.cluster, "billing") == {
        FIRST: OffsetAndMetadata(5, "note"),
        TopicPartition("orders", 2): OffsetAndMetadata(0, ""),
    }
    request, version = pair.second.asked[-1]
    [asked] = request.groups or [request]
    assert (version, asked.group_id, asked.topics) == (min(newest, 9), "billing", None)


@pytest.mark.parametrize("newest", [7, 10])
def test_a_refusal_to_fetch_offsets(pair: Pair, newest: int) -> None:
    """
    A refusal is an error, not an empty result.
    """
    pair.second.offered[OffsetFetchRequest.__spec__.key or 0] = (1, newest)
    code = ErrorCode.NOT_COORDINATOR
    group = OffsetFetchResponse.Group(group_id="billing", topics=[], error_code=code)
    pair.second.will(OffsetFetchResponse(topics=[], error_code=code, groups=[group]))
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        committed_offsets(pair.cluster, "billing")


def test_a_commit_without_a_member(pair: Pair) -> None:
    """
    The request is sent to the coordinator, by topic name.
    """
    pair.second.will(stored(ErrorCode.NONE, ErrorCode.NONE))
    commit_offsets(pair.cluster, "billing", {FIRST: 5, SECOND: 6})
    request, version = pair.second.asked[-1]
    assert isinstance(request, OffsetCommitRequest)
    assert (version, request.group_id, request.generation_id_or_member_epoch, request.member_id) == (
        9,
        "billing",
        -1,
        "",
    )
    [topic] = request.topics
    assert topic.name == "orders"
    assert [(one.partition_index, one.committed_offset) for one in topic.partitions] == [(0, 5), (1, 6)]


def test_a_refused_commit(pair: Pair) -> None:
    """
    The error of any partition is raised.
    """
    pair.second.will(stored(ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID))
    with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
        commit_offsets(pair.cluster, "billing", {FIRST: 5, SECOND: 6})


@pytest.mark.parametrize("when", [EARLIEST, LATEST, 1_700_000_000_000])
def test_leaders_list_offsets(pair: Pair, when: int) -> None:
    """
    Each leader is asked for its own partitions; missing ones are left out.
    """
    pair.first.will(place(0, 5, 1_700_000_000_001))
    pair.second.will(place(1, -1))
    wanted = [SECOND, FIRST, TopicPartition("orders", 2)]
    assert offsets_at(pair.cluster, wanted, when) == {
        FIRST: OffsetAndTimestamp(5, 1_700_000_000_001),
        SECOND: OffsetAndTimestamp(None, None),
    }
    for index, server in enumerate([pair.first, pair.second]):
        request, _ = server.asked[-1]
        assert isinstance(request, ListOffsetsRequest)
        [topic] = request.topics
        [asked] = topic.partitions
        assert (topic.name, asked.partition_index, asked.timestamp) == ("orders", index, when)


def test_the_offsets_of_logs(pair: Pair) -> None:
    """
    Missing partitions are left out.
    """
    pair.first.will(place(0, 5), place(0, 9))
    pair.second.will(place(1, 0))
    wanted = [FIRST, SECOND, TopicPartition("orders", 2)]
    assert extents(pair.cluster, wanted) == {FIRST: Extent(5, 9), SECOND: Extent(0, 0)}


def test_no_partitions_send_no_request(pair: Pair) -> None:
    """
    An empty list would mean all topics to old servers.
    """
    assert offsets_at(pair.cluster, [], LATEST) == {}
    assert not [request for request, _ in pair.first.asked if isinstance(request, MetadataRequest)]


def test_a_refusing_leader(pair: Pair) -> None:
    """
    A retriable refusal is an error that callers retry.
    """
    pair.first.will(place(0, -1, code=ErrorCode.NOT_LEADER_OR_FOLLOWER), place(0, 5))
    with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
        offsets_at(pair.cluster, [FIRST], LATEST)
    assert offsets_at(pair.cluster, [FIRST], LATEST) == {FIRST: OffsetAndTimestamp(5, None)}


def test_partitions_of_topics(pair: Pair) -> None:
    """
    Missing topics are left out.
    """
    assert partitions_of(pair.cluster, ["orders"]) == {"orders": [FIRST, SECOND]}
    gone = MetadataResponse.Topic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name="gone", partitions=[])
    pair.first.answers.pop(MetadataRequest.__spec__.key or 0)
    pair.first.will(MetadataResponse(brokers=[], topics=[gone]))
    assert partitions_of(pair.cluster, ["gone"]) == {}


def test_topics_without_permission_or_leader(pair: Pair) -> None:
    """
    Both are errors.
    """
    secret = TopicAnswer(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name="secret", partitions=[])
    alone = TopicAnswer.Partition(error_code=5, partition_index=0, leader_id=-1, replica_nodes=[], isr_nodes=[])
    for topic, code in (
        (secret, "TOPIC_AUTHORIZATION_FAILED"),
        (TopicAnswer(error_code=0, name="alone", partitions=[alone]), "LEADER_NOT_AVAILABLE: alone-0 has no leader"),
    ):
        pair.first.answers.pop(MetadataRequest.__spec__.key or 0)
        pair.first.will(MetadataResponse(brokers=[], topics=[topic]))
        with pytest.raises(KafkaError, match=code):
            partitions_of(pair.cluster, [topic.name or ""])
