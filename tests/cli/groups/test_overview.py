"""
Descriptions of groups for people.
"""

from kgateway.cli.groups.overview import group_text
from kgateway.client.cluster import Node
from kgateway.client.connection import Address
from kgateway.client.group_offsets import OffsetAndMetadata, PartitionLag
from kgateway.client.groups import Assigned, GroupDescription, MemberDescription
from kgateway.topic_partition import TopicPartition

NODE = Node(3, Address("kafka", 9092))


def member(
    assigned: Assigned | None, target: Assigned | None = None, instance_id: str | None = None
) -> MemberDescription:
    """
    A member of one client.
    """
    return MemberDescription("m-1", instance_id, "app", "10.0.0.7", "consumer", assigned, target)


def group(*members: MemberDescription, protocol_type: str = "consumer", assignor: str = "uniform") -> GroupDescription:
    """
    A group with these members.
    """
    return GroupDescription("billing", "consumer", "Stable", protocol_type, assignor, NODE, list(members))


def reading(index: int, committed: int | None, end: int | None) -> PartitionLag:
    """
    The group's offsets in a partition of orders.
    """
    return PartitionLag(
        TopicPartition("orders", index), None if committed is None else OffsetAndMetadata(committed, ""), end, None
    )


def test_an_empty_group_takes_two_lines() -> None:
    assert list(group_text(group(assignor=""), [])) == [
        "billing: Stable, consumer group, coordinator 3 at kafka:9092",
        "0 members; lag 0 in 0 partitions",
    ]


def test_assignments_are_spans() -> None:
    """
    Consecutive partitions of a topic are shown as a span.
    """
    lines = list(group_text(group(member({"b": [7], "a": [0, 1, 2, 5, 7, 8]})), []))
    assert lines[3:] == ["MEMBER  CLIENT  HOST      ASSIGNMENT", "m-1     app     10.0.0.7  a 0-2,5,7-8; b 7"]


def test_empty_columns_are_left_out() -> None:
    """
    Instances are shown for static members, and targets until they are reached.
    """
    reached, moving = member({"a": [0]}, {"a": [0]}), member({}, {"a": [1]}, "left")
    lines = list(group_text(group(reached, moving), []))
    assert lines[3:] == [
        "MEMBER  INSTANCE  CLIENT  HOST      ASSIGNMENT  TARGET",
        "m-1               app     10.0.0.7  a 0",
        "m-1     left      app     10.0.0.7  -           a 1",
    ]


def test_members_of_another_protocol() -> None:
    """
    The protocol is named; its assignments are unreadable.
    """
    lines = list(group_text(group(member(None), protocol_type="connect"), []))
    assert lines[0].startswith("billing: Stable, consumer group of connect, assignor uniform, ")
    assert lines[-1].endswith("in a format of its own")


def test_lag_is_summed_where_it_is_known() -> None:
    """
    The lag is never negative, and unknown if nothing is committed or the partition is gone.
    """
    readings = [reading(0, 5, 1_000), reading(1, 70, 7), reading(2, None, 9), reading(10, 3, None)]
    assert list(group_text(group(), readings))[1:] == [
        "0 members; lag 995 in 2 partitions, and unknown in 2 partitions",
        "",
        "TOPIC   PARTITION  COMMITTED   END  LAG  MEMBER",
        "orders          0          5  1000  995  -",
        "orders          1         70     7    0  -",
        "orders          2          -     9    -  -",
        "orders         10          3     -    -  -",
    ]
    assert list(group_text(group(), readings[2:]))[1] == "0 members; lag unknown in 2 partitions"
