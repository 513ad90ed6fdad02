"""
Which committed offsets expire (KIP-211).
"""

import pytest

from kgateway.cluster.view import PartitionState, Topic
from kgateway.groups.expiry import expired_offsets, offsets_of_deleted_topics
from kgateway.groups.group import GroupType
from kgateway.groups.offsets import GroupOffsets
from kgateway.groups.records import NEVER
from kgateway.messages.stored.offset_commit import OffsetCommitValue
from kgateway.topic_partition import TopicPartition
from kgateway.wire.uuids import ONE, ZERO, Uuid
from tests.groups.group_world import value

RETENTION_MS = 100
NOW_MS = 1_000
OLD, YOUNG = NOW_MS - RETENTION_MS, NOW_MS - RETENTION_MS + 1
OTHER = Uuid(b"another topic's.")


class StubGroup:
    """
    A group with given properties.
    """

    group_id = "g"

    def __init__(
        self,
        kind: GroupType = GroupType.CLASSIC,
        state: str = "Empty",
        protocol_type: str = "consumer",
        empty_since_ms: int | None = None,
        read: str = "read",
    ) -> None:
        self.type, self.state, self.protocol_type, self.empty_since_ms = kind, state, protocol_type, empty_since_ms
        self.is_empty = state == "Empty"
        self._read = read

    def reads(self, topic: str) -> bool:
        return topic == self._read


def offsets(**committed: OffsetCommitValue) -> GroupOffsets:
    found = GroupOffsets("g", lambda rows: None)
    found.commit([(TopicPartition(topic, 0), one) for topic, one in committed.items()])
    return found


def expired(group: StubGroup, found: GroupOffsets) -> set[str]:
    return {place.topic for place in expired_offsets(group, found, NOW_MS, RETENTION_MS)}  # type: ignore[arg-type]


@pytest.mark.parametrize("since_ms", [OLD, YOUNG])
def test_offsets_of_an_empty_group(since_ms: int) -> None:
    """
    Their age is counted from when the group became empty, however old their commits are.
    """
    found = offsets(a=value(1, OLD), b=value(1, YOUNG), c=value(1, 0))
    assert expired(StubGroup(empty_since_ms=since_ms), found) == ({"a", "b", "c"} if since_ms == OLD else set())


def test_offsets_of_a_group_empty_for_an_unknown_time() -> None:
    """
    Old Kafka versions did not write when the group became empty: the commits count.
    """
    assert expired(StubGroup(empty_since_ms=None), offsets(a=value(1, OLD), b=value(1, YOUNG))) == {"a"}


def test_offsets_of_a_simple_consumer() -> None:
    """
    No member ever joined, so their age is counted from the commit.
    """
    group = StubGroup(protocol_type="", empty_since_ms=OLD)
    assert expired(group, offsets(a=value(1, OLD), b=value(1, YOUNG))) == {"a"}


@pytest.mark.parametrize("kind", GroupType)
def test_offsets_of_a_group_with_members(kind: GroupType) -> None:
    """
    Those of topics that no member reads expire by their commits, others do not.
    """
    found = offsets(a=value(1, OLD), b=value(1, YOUNG), read=value(1, 0))
    assert expired(StubGroup(kind, "Stable"), found) == {"a"}


@pytest.mark.parametrize(("state", "protocol_type"), [("PreparingRebalance", "consumer"), ("Stable", "connect")])
def test_nothing_expires_while_topics_are_unknown(state: str, protocol_type: str) -> None:
    assert expired(StubGroup(state=state, protocol_type=protocol_type), offsets(a=value(1, 0))) == set()


def test_offsets_of_a_consumer_group() -> None:
    """
    Its topics are known in each state; when it became empty does not matter.
    """
    for state in ("Empty", "Assigning", "Reconciling"):
        group = StubGroup(GroupType.CONSUMER, state, empty_since_ms=0)
        assert expired(group, offsets(a=value(1, OLD), b=value(1, YOUNG))) == {"a"}


def test_an_offset_keeps_its_own_expiry_time() -> None:
    found = offsets(a=value(1, 0, NOW_MS), b=value(1, 0, NOW_MS + 1), c=value(1, 0, NEVER))
    for group in (StubGroup(empty_since_ms=0), StubGroup(protocol_type="")):
        assert expired(group, found) == {"a", "c"}


def test_offsets_in_open_transactions_do_not_expire() -> None:
    found = offsets(a=value(1, 0))
    found.pending.put(7, TopicPartition("a", 0), value(2))
    assert expired(StubGroup(empty_since_ms=0), found) == set()
    assert list(offsets_of_deleted_topics(found, {})) == []


def test_offsets_of_deleted_topics() -> None:
    """
    There is no topic of the name, or one with another id, as far as the id is known.
    """
    found = offsets(
        gone=value(1), same=value(1, topic_id=ONE), other=value(1, topic_id=OTHER), old=value(1, topic_id=ZERO)
    )
    state = (PartitionState(1, 0, (1,), (1,)),)
    topics = {name: Topic(ONE, name, state) for name in ("same", "other", "old")}
    assert {place.topic for place in offsets_of_deleted_topics(found, topics)} == {"gone", "other"}
