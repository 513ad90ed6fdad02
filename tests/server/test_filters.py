"""
Which requests a filter applies to.
"""

from typing import Any

import pytest

from kgateway.api import Around, around
from kgateway.cluster.view import NewTopic
from kgateway.context import Context
from kgateway.interfaces import Proceed
from kgateway.messages import add_partitions_to_txn
from kgateway.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kgateway.messages.create_partitions import CreatePartitionsRequest
from kgateway.messages.create_topics import CreateTopicsRequest
from kgateway.messages.delete_topics import DeleteTopicsRequest
from kgateway.messages.describe_configs import DescribeConfigsRequest
from kgateway.messages.elect_leaders import ElectLeadersRequest
from kgateway.messages.fetch import FetchRequest
from kgateway.messages.list_offsets import ListOffsetsRequest
from kgateway.messages.metadata import MetadataRequest
from kgateway.messages.offset_commit import OffsetCommitRequest
from kgateway.messages.offset_fetch import OffsetFetchRequest
from kgateway.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kgateway.messages.produce import ProduceRequest
from kgateway.server.filters import concerns, topics_of
from kgateway.wire.schema import Message
from kgateway.wire.uuids import ZERO, Uuid
from tests.serving import Serving

STRANGE = Uuid.random()
Asked = MetadataRequest.Topic


async def _pass_on(request: Message, context: Context, proceed: Proceed) -> Message | None:
    return await proceed(request)


def scoped(**scope: Any) -> Around:
    """
    A filter with this scope.
    """
    return around(MetadataRequest, **scope)(_pass_on)


class Asking(Serving):
    """
    A client of a gateway with one topic, orders.
    """

    def __init__(self) -> None:
        super().__init__()
        self.broker.create_topic(NewTopic("orders", 1))
        self.orders_id = self.broker.view().topics["orders"].id

    def fits(self, value: Around, *names: str, topic_id: Uuid = ZERO) -> bool:
        """
        Whether the filter applies to a Metadata request for these topics, or for the one of the id.
        """
        asked = [Asked(name=name) for name in names] or [Asked(name=None, topic_id=topic_id)]
        context = Context(self.parts, self.session, 12, "client")
        return concerns([value], MetadataRequest(topics=asked), context) == [value]


def test_a_filter_without_a_scope_applies_to_all_requests() -> None:
    """
    They need not name anything.
    """
    asking = Asking()
    assert asking.fits(scoped(), "orders")
    assert concerns([scoped()], MetadataRequest(topics=None), Context(asking.parts, asking.session, 12, "client"))


def test_topics_match_like_file_names() -> None:
    """
    Case matters; one topic of the request and one pattern of the filter suffice.
    """
    asking, audit = Asking(), scoped(topics=["audit-*", "log"])
    assert asking.fits(audit, "audit-orders")
    assert asking.fits(audit, "orders", "log")
    assert not asking.fits(audit, "orders", "logs", "Audit-orders", "my-audit-orders")


def test_topic_ids_match_by_name() -> None:
    """
    An unknown id matches nothing.
    """
    asking, orders = Asking(), scoped(topics=["ord*"])
    assert asking.fits(orders, topic_id=asking.orders_id)
    assert not asking.fits(orders, topic_id=STRANGE)
    assert not asking.fits(scoped(topics=["*"]), topic_id=STRANGE)


def test_a_request_for_all_topics_matches_no_pattern() -> None:
    asking = Asking()
    context = Context(asking.parts, asking.session, 12, "client")
    assert concerns([scoped(topics=["*"])], MetadataRequest(topics=None), context) == []


def test_listeners_match() -> None:
    """
    The listener is that of the connection.
    """
    asking = Asking()
    assert asking.fits(scoped(listeners=["internal", "plain*"]), "orders")
    assert not asking.fits(scoped(listeners=["internal"]), "orders")


def test_principals_match() -> None:
    """
    The current principal counts, whatever it was when the connection began.
    """
    asking, alice = Asking(), scoped(principals=["User:alice"])
    assert not asking.fits(alice, "orders")
    asking.session.principal = "User:alice"
    assert asking.fits(alice, "orders")


def test_all_parts_of_a_scope_must_match() -> None:
    """
    A matching topic through another listener is not enough.
    """
    asking = Asking()
    assert asking.fits(scoped(topics=["orders"], listeners=["plaintext"], principals=["User:*"]), "orders")
    for part in ({"topics": ["x"]}, {"listeners": ["x"]}, {"principals": ["x"]}):
        scope = {"topics": ["orders"], "listeners": ["plaintext"], "principals": ["User:*"]} | part
        assert not asking.fits(scoped(**scope), "orders"), part


def test_matching_filters_keep_their_order() -> None:
    """
    The outermost is the first.
    """
    first, second, third = scoped(), scoped(topics=["none"]), scoped(listeners=["plaintext"])
    asking = Asking()
    context = Context(asking.parts, asking.session, 12, "client")
    assert concerns([third, second, first], MetadataRequest(topics=[]), context) == [third, first]


BY_NAME: list[Message] = [
    CreatePartitionsRequest(
        topics=[CreatePartitionsRequest.Topic(name="orders", count=2, assignments=None)],
        timeout_ms=0,
        validate_only=True,
    ),
    CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.Topic(
                name="orders",
                num_partitions=1,
                replication_factor=1,
                assignments=[],
                configs=[CreateTopicsRequest.Topic.Config(name="cleanup.policy", value="compact")],
            )
        ],
        timeout_ms=0,
    ),
    DeleteTopicsRequest(topic_names=["orders"], timeout_ms=0),
    DeleteTopicsRequest(topics=[DeleteTopicsRequest.Topic(name="orders", topic_id=ZERO)], timeout_ms=0),
    FetchRequest(
        max_wait_ms=0, min_bytes=0, topics=[FetchRequest.Topic(topic="orders", partitions=[])], forgotten_topics_data=[]
    ),
    ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsRequest.Topic(name="orders", partitions=[])]),
    MetadataRequest(topics=[Asked(name="orders")]),
    OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequest.Topic(name="orders", partitions=[])]),
    OffsetForLeaderEpochRequest(topics=[OffsetForLeaderEpochRequest.Topic(topic="orders", partitions=[])]),
    ProduceRequest(acks=1, timeout_ms=0, topic_data=[ProduceRequest.TopicData(name="orders", partition_data=[])]),
    DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.Resource(resource_type=kind, resource_name=name, configuration_keys=["retention.ms"])
            for kind, name in ((2, "orders"), (4, "1"))
        ]
    ),
    OffsetFetchRequest(
        groups=[
            OffsetFetchRequest.Group(
                group_id="g", topics=[OffsetFetchRequest.Group.Topic(name="orders", partition_indexes=[0])]
            )
        ]
    ),
    ElectLeadersRequest(
        topic_partitions=[ElectLeadersRequest.TopicPartition(topic="orders", partitions=[0])], timeout_ms=0
    ),
    AddPartitionsToTxnRequest(v3_and_below_topics=[add_partitions_to_txn.Topic(name="orders", partitions=[0])]),
]


@pytest.mark.parametrize("request_", BY_NAME, ids=lambda request: type(request).__name__)
def test_topics_are_found_anywhere_in_a_request(request_: Message) -> None:
    """
    The table may name them differently, and nothing else is taken for a topic.
    """
    assert list(topics_of(request_, Asking().broker.view())) == ["orders"]


def test_topic_ids_are_found_in_produce_and_fetch() -> None:
    """
    Newer clients send them.
    """
    asking = Asking()
    data = ProduceRequest.TopicData(topic_id=asking.orders_id, partition_data=[])
    topic = FetchRequest.Topic(topic_id=asking.orders_id, partitions=[])
    for request in (
        ProduceRequest(acks=1, timeout_ms=0, topic_data=[data]),
        FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic], forgotten_topics_data=[]),
    ):
        assert list(topics_of(request, asking.broker.view())) == ["orders"]
