"""
When offsets are too old (KIP-211).
"""

import pytest

from kgateway.cluster.view import PartitionState, Topic
from kgateway.groups.coding import NEVER
from kgateway.groups.expiry import left_behind, too_old
from kgateway.groups.group import GroupType
from kgateway.groups.offsets import GroupOffsets, Place
from kgateway.messages.stored.offset_commit import OffsetCommitValue
from kgateway.wire.uuids import ONE, ZERO, Uuid
from tests.groups.coordinating import value

RETENTION_MS = 100
NOW_MS = 1_000
OLD, YOUNG = NOW_MS - RETENTION_MS, NOW_MS - RETENTION_MS + 1
OTHER = Uuid(b"another topic's.")


class Told:
    """
    A group that says of itself what a test wants.
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
    found.commit([(Place(topic, 0), one) for topic, one in committed.items()])
    return found


def expired(group: Told, found: GroupOffsets) -> set[str]:
    return {place.topic for place in too_old(group, found, NOW_MS, RETENTION_MS)}  # type: ignore[arg-type]


@pytest.mark.parametrize("since_ms", [OLD, YOUNG])
def test_empty_group(since_ms: int) -> None:
    """
    The offsets of a group age from when it became empty, however old their commits are.
    """
    found = offsets(a=value(1, OLD), b=value(1, YOUNG), c=value(1, 0))
    assert expired(Told(empty_since_ms=since_ms), found) == ({"a", "b", "c"} if since_ms == OLD else set())


def test_empty_since_nobody_knows_when() -> None:
    """
    Where an old Kafka has not noted when the group became empty, the commits count.
    """
    assert expired(Told(empty_since_ms=None), offsets(a=value(1, OLD), b=value(1, YOUNG))) == {"a"}


def test_simple_consumer() -> None:
    """
    Where nobody ever joined, offsets age from their commit.
    """
    group = Told(protocol_type="", empty_since_ms=OLD)
    assert expired(group, offsets(a=value(1, OLD), b=value(1, YOUNG))) == {"a"}


@pytest.mark.parametrize("kind", GroupType)
def test_group_with_members(kind: GroupType) -> None:
    """
    While there are members the offsets of what none of them reads age from their commit; those of what is read do not.
    """
    found = offsets(a=value(1, OLD), b=value(1, YOUNG), read=value(1, 0))
    assert expired(Told(kind, "Stable"), found) == {"a"}


@pytest.mark.parametrize(("state", "protocol_type"), [("PreparingRebalance", "consumer"), ("Stable", "connect")])
def test_group_whose_topics_are_not_known(state: str, protocol_type: str) -> None:
    """
    As long as nobody can tell what members read, nothing expires.
    """
    assert expired(Told(state=state, protocol_type=protocol_type), offsets(a=value(1, 0))) == set()


def test_consumer_group_in_any_state() -> None:
    """
    What the members of a consumer group read is known in each state; when it became empty does not matter.
    """
    for state in ("Empty", "Assigning", "Reconciling"):
        group = Told(GroupType.CONSUMER, state, empty_since_ms=0)
        assert expired(group, offsets(a=value(1, OLD), b=value(1, YOUNG))) == {"a"}


def test_own_time_to_expire() -> None:
    """
    An offset that came with its own time to expire keeps to that.
    """
    found = offsets(a=value(1, 0, NOW_MS), b=value(1, 0, NOW_MS + 1), c=value(1, 0, NEVER))
    for group in (Told(empty_since_ms=0), Told(protocol_type="")):
        assert expired(group, found) == {"a", "c"}


def test_transaction_under_way() -> None:
    """
    Where a transaction is about to commit nothing expires.
    """
    found = offsets(a=value(1, 0))
    found.pending.put(7, Place("a", 0), value(2))
    assert expired(Told(empty_since_ms=0), found) == set()
    assert list(left_behind(found, {})) == []


def test_topics_that_are_gone() -> None:
    """
    Offsets are left behind by topics that are not there, and by earlier ones of the same name, as far as that is known.
    """
    found = offsets(
        gone=value(1), same=value(1, topic_id=ONE), other=value(1, topic_id=OTHER), old=value(1, topic_id=ZERO)
    )
    state = (PartitionState(1, 0, (1,), (1,)),)
    topics = {name: Topic(ONE, name, state) for name in ("same", "other", "old")}
    assert {place.topic for place in left_behind(found, topics)} == {"gone", "other"}
