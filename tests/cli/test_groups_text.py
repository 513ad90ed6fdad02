"""
A group for people.
"""

from kgateway.cli.groups_text import group_text
from kgateway.client.address import Address
from kgateway.client.cluster import Node
from kgateway.client.groups import Assigned, Described, Member
from kgateway.client.offsets import Committed, Partition
from kgateway.client.reading import Reading

NODE = Node(3, Address("kafka", 9092))


def member(assigned: Assigned | None, target: Assigned | None = None, instance_id: str | None = None) -> Member:
    """
    One of a client.
    """
    return Member("m-1", instance_id, "app", "10.0.0.7", "consumer", assigned, target)


def group(*members: Member, protocol_type: str = "consumer", assignor: str = "uniform") -> Described:
    """
    One with these.
    """
    return Described("billing", "consumer", "Stable", protocol_type, assignor, NODE, list(members))


def reading(index: int, committed: int | None, end: int | None) -> Reading:
    """
    A partition of orders.
    """
    return Reading(Partition("orders", index), None if committed is None else Committed(committed, ""), end, None)


def test_a_group_without_anything() -> None:
    """
    Is two lines.
    """
    assert list(group_text(group(assignor=""), [])) == [
        "billing: Stable, consumer group, coordinator 3 at kafka:9092",
        "0 members; lag 0 in 0 partitions",
    ]


def test_assignments_are_spans() -> None:
    """
    Topic by topic.
    """
    lines = list(group_text(group(member({"b": [7], "a": [0, 1, 2, 5, 7, 8]})), []))
    assert lines[3:] == ["MEMBER  CLIENT  HOST      ASSIGNMENT", "m-1     app     10.0.0.7  a 0-2,5,7-8; b 7"]


def test_columns_are_there_when_they_say_something() -> None:
    """
    Instances of static members, and targets that are not reached.
    """
    reached, moving = member({"a": [0]}, {"a": [0]}), member({}, {"a": [1]}, "left")
    lines = list(group_text(group(reached, moving), []))
    assert lines[3:] == [
        "MEMBER  INSTANCE  CLIENT  HOST      ASSIGNMENT  TARGET",
        "m-1               app     10.0.0.7  a 0",
        "m-1     left      app     10.0.0.7  -           a 1",
    ]


def test_members_of_another_kind() -> None:
    """
    What they are is said, and that nobody else reads what they say.
    """
    lines = list(group_text(group(member(None), protocol_type="connect"), []))
    assert lines[0].startswith("billing: Stable, consumer group of connect, assignor uniform, ")
    assert lines[-1].endswith("in a form of its own")


def test_lag_is_summed_where_it_is_known() -> None:
    """
    It is never below nothing, and not known where nothing is committed or the partition is gone.
    """
    readings = [reading(0, 5, 1_000), reading(1, 70, 7), reading(2, None, 9), reading(10, 3, None)]
    assert list(group_text(group(), readings))[1:] == [
        "0 members; lag 995 in 2 partitions, and 2 partitions of which the lag is not known",
        "",
        "TOPIC   PARTITION  COMMITTED   END  LAG  MEMBER",
        "orders          0          5  1000  995  -",
        "orders          1         70     7    0  -",
        "orders          2          -     9    -  -",
        "orders         10          3     -    -  -",
    ]
