"""
The committed offsets of one group.
"""

from collections.abc import Sequence

import pytest
from twisted.internet.defer import Deferred

from kgateway.groups.offsets import GroupOffsets
from kgateway.groups.records import Row
from kgateway.messages.stored.offset_commit import OffsetCommitKey
from kgateway.topic_partition import TopicPartition
from kgateway.wire.uuids import ONE, ZERO, Uuid
from tests.broker.behaviour import result
from tests.groups.group_world import value

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
OTHER = Uuid(b"another topic's.")


class RecordedOffsets(GroupOffsets):
    """
    Offsets that record what they write.
    """

    def __init__(self) -> None:
        self.rows: list[Sequence[Row]] = []
        self.committed: Deferred[None] | None = None
        super().__init__("g", self._noted)

    def _noted(self, rows: Sequence[Row]) -> Deferred[None] | None:
        self.rows.append(rows)
        return self.committed


def row(place: TopicPartition, offset: int | None) -> Row:
    key = OffsetCommitKey(group="g", topic=place.topic, partition=place.index)
    return Row(key, None if offset is None else value(offset))


def test_one_commit_is_one_write() -> None:
    """
    The last value of a partition counts.
    """
    offsets = RecordedOffsets()
    assert offsets.commit([(A0, value(1)), (B0, value(2)), (A0, value(3))]) is None
    assert offsets.rows == [[row(A0, 1), row(B0, 2), row(A0, 3)]]
    assert dict(offsets) == {A0: value(3), B0: value(2)}
    assert offsets.at("a", 0) == value(3)
    assert offsets.at("a", 1) is offsets.at("c", 0) is None


def test_a_commit_waits_until_it_is_stored() -> None:
    """
    Reads do not wait.
    """
    offsets = RecordedOffsets()
    offsets.committed = Deferred()
    committed = offsets.commit([(A0, value(1))])
    assert committed
    assert not committed.called
    assert offsets.at("a", 0) == value(1)
    offsets.committed.callback(None)
    result(committed)


def test_offsets_belong_to_a_topic_id() -> None:
    """
    An offset of an earlier topic of the name does not count; if an id is unknown the name suffices.
    """
    offsets = RecordedOffsets()
    offsets.commit([(A0, value(1, topic_id=ONE)), (A1, value(2))])
    assert [offsets.at("a", 0, topic_id) is None for topic_id in (ONE, ZERO, OTHER)] == [False, False, True]
    assert offsets.at("a", 1, OTHER) == value(2)


def test_existing_offsets_can_be_deleted() -> None:
    """
    Nothing is left of them.
    """
    offsets = RecordedOffsets()
    offsets.commit([(A0, value(1)), (A1, value(2))])
    offsets.forget([A0, B0, A0])
    assert offsets.rows[1:] == [[row(A0, None)]]
    assert dict(offsets) == {A1: value(2)}
    offsets.forget([A1])
    assert not offsets
    assert offsets.by_topic == {}


def test_pending_offsets_make_a_partition_unstable() -> None:
    """
    They count as offsets, and are deleted with the others.
    """
    offsets = RecordedOffsets()
    offsets.commit([(A0, value(1))])
    for place in (A0, B0):
        offsets.replay_pending(7, row(place, 5))
    assert [offsets.is_unstable(place) for place in (A0, A1, B0)] == [True, False, True]
    assert dict(offsets) == {A0: value(1)}
    offsets.forget([A0])
    assert list(offsets.pending.keys()) == [B0]
    assert offsets
    assert offsets.tombstones() == [row(B0, None)]


@pytest.mark.parametrize("commits", [True, False])
def test_a_commit_makes_pending_offsets_count(commits: bool) -> None:
    """
    Newer offsets win, and offsets of other producers stay pending.
    """
    offsets = RecordedOffsets()
    for producer, place, number in ((7, A0, 1), (7, A1, 2), (7, B0, 3), (8, B0, 4)):
        offsets.replay_pending(producer, row(place, number))
    offsets.commit([(A1, value(9))])
    rows = offsets.end_pending(7, commits=commits)
    assert rows == ([row(A0, 1), row(B0, 3)] if commits else [])
    assert dict(offsets) == {A1: value(9)} | ({A0: value(1), B0: value(3)} if commits else {})
    assert [offsets.is_unstable(place) for place in (A0, A1, B0)] == [False, False, True]
    assert offsets.end_pending(8, commits=True) == [row(B0, 4)]
    assert offsets.at("b", 0) == value(4)
