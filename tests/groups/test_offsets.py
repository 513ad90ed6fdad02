"""
The offsets of one group.
"""

from collections.abc import Sequence

import pytest
from twisted.internet.defer import Deferred

from kgateway.groups.offsets import GroupOffsets, Place
from kgateway.groups.rows import Row
from kgateway.messages.stored.offset_commit import OffsetCommitKey
from kgateway.wire.uuids import ONE, ZERO, Uuid
from tests.broker.behaviour import result
from tests.groups.coordinating import value

A0, A1, B0 = Place("a", 0), Place("a", 1), Place("b", 0)
OTHER = Uuid(b"another topic's.")


class Written(GroupOffsets):
    """
    Offsets that keep what they wrote.
    """

    def __init__(self) -> None:
        self.rows: list[Sequence[Row]] = []
        self.safe: Deferred[None] | None = None
        super().__init__("g", self._noted)

    def _noted(self, rows: Sequence[Row]) -> Deferred[None] | None:
        self.rows.append(rows)
        return self.safe


def row(place: Place, offset: int | None) -> Row:
    key = OffsetCommitKey(group="g", topic=place.topic, partition=place.partition)
    return Row(key, None if offset is None else value(offset))


def test_commit() -> None:
    """
    What is committed together is written together, and the last value of a partition counts.
    """
    offsets = Written()
    assert offsets.commit([(A0, value(1)), (B0, value(2)), (A0, value(3))]) is None
    assert offsets.rows == [[row(A0, 1), row(B0, 2), row(A0, 3)]]
    assert dict(offsets) == {A0: value(3), B0: value(2)}
    assert offsets.at("a", 0) == value(3)
    assert offsets.at("a", 1) is offsets.at("c", 0) is None


def test_commit_that_is_safe_later() -> None:
    """
    Who commits waits; who reads does not.
    """
    offsets = Written()
    offsets.safe = Deferred()
    safe = offsets.commit([(A0, value(1))])
    assert safe
    assert not safe.called
    assert offsets.at("a", 0) == value(1)
    offsets.safe.callback(None)
    result(safe)


def test_topics_of_one_name() -> None:
    """
    An offset of an earlier topic of the name is none of this one; where an id is not known the name is enough.
    """
    offsets = Written()
    offsets.commit([(A0, value(1, topic_id=ONE)), (A1, value(2))])
    assert [offsets.at("a", 0, topic_id) is None for topic_id in (ONE, ZERO, OTHER)] == [False, False, True]
    assert offsets.at("a", 1, OTHER) == value(2)


def test_forget() -> None:
    """
    Only what is there is forgotten; then nothing is left of it.
    """
    offsets = Written()
    offsets.commit([(A0, value(1)), (A1, value(2))])
    offsets.forget([A0, B0, A0])
    assert offsets.rows[1:] == [[row(A0, None)]]
    assert dict(offsets) == {A1: value(2)}
    offsets.forget([A1])
    assert not offsets
    assert offsets.by_topic == {}


def test_transactions() -> None:
    """
    Where a transaction is about to commit is unstable, counts as an offset, and is forgotten with the others.
    """
    offsets = Written()
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
def test_ends_of_transactions(commits: bool) -> None:
    """
    What was pending counts with a commit, unless it was overtaken; what others have pending stays so.
    """
    offsets = Written()
    for producer, place, number in ((7, A0, 1), (7, A1, 2), (7, B0, 3), (8, B0, 4)):
        offsets.replay_pending(producer, row(place, number))
    offsets.commit([(A1, value(9))])
    rows = offsets.end_pending(7, commits=commits)
    assert rows == ([row(A0, 1), row(B0, 3)] if commits else [])
    assert dict(offsets) == {A1: value(9)} | ({A0: value(1), B0: value(3)} if commits else {})
    assert [offsets.is_unstable(place) for place in (A0, A1, B0)] == [False, False, True]
    assert offsets.end_pending(8, commits=True) == [row(B0, 4)]
    assert offsets.at("b", 0) == value(4)
