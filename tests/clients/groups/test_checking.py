"""
What the check of a group finds, and what it lets pass.
"""

from collections.abc import Sequence

import pytest

from tests.clients.groups.checking import faults
from tests.clients.groups.events import (
    Assigned,
    Committed,
    Ended,
    Event,
    Frozen,
    Left,
    Lost,
    OfMember,
    Processed,
    Refused,
    Revoked,
    Seen,
    Thawed,
)

_ILLEGAL_GENERATION = 22
_BACK = "t:0: the committed offset went back from {} to {} at 4.000, after commits of nobody"


def wrong(*events: Event, end: int = 0) -> str:
    """
    The one thing that is wrong, or nothing.
    """
    found = faults(events, {"t:0": end}, 5)
    assert len(found) <= 1, found
    return "".join(found)


def worked(at: float, member: str, offsets: Sequence[int]) -> list[Event]:
    """
    A member has processed some, and committed that.
    """
    committed = {"t:0": offsets[-1] + 1}
    return [Processed(at, member, {"t:0": offsets}), Committed(at + 0.2, member, at + 0.1, committed)]


A, B = Assigned(1, "a", ["t:0"]), Assigned(10, "b", ["t:0"])


class TestOwners:
    """
    Each partition has one.
    """

    def test_one_after_the_other(self) -> None:
        """
        It is given on when it was let go, when its owner has left, or has ended.
        """
        assert not wrong(A, Revoked(9, "a", ["t:0"]), B)
        assert not wrong(A, Lost(9, "a", ["t:0"]), B)
        assert not wrong(A, Left(9, "a"), B)
        assert not wrong(A, Ended(9, "a"), B)

    def test_two_at_the_end(self) -> None:
        """
        Two have it, and go on having it.
        """
        assert wrong(A, B) == "t:0: b has it since 10.000000, and a still has it"

    @pytest.mark.parametrize("end", [Revoked(11, "a", ["t:0"]), Left(11, "a"), Revoked(11, "b", ["t:0"])], ids=str)
    def test_two_for_a_while(self, end: OfMember) -> None:
        """
        Nobody has shut out the first one.
        """
        ended = f"({type(end).__name__} of {end.member})"
        assert f"a had it until 11.000000 {ended} without being shut out" in wrong(A, B, end)

    def test_the_first_is_told(self) -> None:
        """
        It was shut out, and finds out soon.
        """
        assert not wrong(A, B, Lost(12, "a", ["t:0"]))
        assert not wrong(A, B, Refused(12, "a", _ILLEGAL_GENERATION, ""), Revoked(13, "a", ["t:0"]))

    def test_the_first_is_told_late(self) -> None:
        """
        It has the partition too long after it was told.
        """
        refused = Refused(12, "a", _ILLEGAL_GENERATION, "")
        assert "without being shut out" in wrong(A, B, refused, Revoked(18, "a", ["t:0"]))

    def test_another_refusal(self) -> None:
        """
        A commit that failed otherwise does not tell of being shut out.
        """
        assert "without being shut out" in wrong(A, B, Refused(12, "a", -1, ""), Revoked(13, "a", ["t:0"]))

    def test_the_first_stands_still(self) -> None:
        """
        It cannot find out, until it goes on.
        """
        frozen = Frozen(2, "a")
        assert not wrong(A, frozen, B)
        assert not wrong(A, frozen, B, Ended(30, "a"))
        assert not wrong(A, frozen, B, Thawed(30, "a"), Revoked(31, "a", ["t:0"]))
        assert "without being shut out" in wrong(A, frozen, B, Thawed(30, "a"), Revoked(37, "a", ["t:0"]))

    def test_it_is_told_what_was_true_before(self) -> None:
        """
        What it was assigned just before it stood still, it finds when it goes on.
        """
        stood, late = [Frozen(2, "a"), B, Thawed(30, "a")], Assigned(30.1, "a", ["t:1"])
        assert not wrong(A, *stood, late, Revoked(31, "a", ["t:0"]))
        assert "without being shut out" in wrong(A, *stood, late, Revoked(37, "a", ["t:0"]))

    @pytest.mark.parametrize("owner", [[], [Revoked(30.2, "b", ["t:0"])]], ids=["goes on", "lets it go"])
    def test_who_went_on_is_told_what_was_true_before(self, owner: list[Event]) -> None:
        """
        It believes an answer that is as old as its sleep until it finds out, soon, that it was shut out.
        """
        told = [B, Frozen(11, "a"), Thawed(30, "a"), Assigned(30.1, "a", ["t:0"]), *owner]
        assert not wrong(*told, Lost(30.3, "a", ["t:0"]))
        assert not wrong(*told, Ended(30.3, "a"))
        assert "b had it until 30." in wrong(*told, Revoked(30.3, "a", ["t:0"]))
        assert "b had it until 30." in wrong(*told, Left(30.3, "a"))
        assert "without being shut out" in wrong(*told, Lost(37, "a", ["t:0"]))
        assert "without being shut out" in wrong(*told, Ended(37, "a"))
        assert "t:0: a has it since 30.1" in wrong(*told)

    def test_who_did_not_stand_still_is_told_the_truth(self) -> None:
        """
        Who was always awake is assigned nothing that another one has, not even for a moment.
        """
        late = Assigned(30.1, "a", ["t:0"])
        assert "(Lost of a) without being shut out" in wrong(B, late, Lost(30.2, "a", ["t:0"]))
        assert "(Revoked of b) without" in wrong(B, late, Revoked(30.2, "b", ["t:0"]), Lost(30.3, "a", ["t:0"]))

    def test_it_stood_still_before(self) -> None:
        """
        That excuses nothing that comes later.
        """
        stood = [Frozen(2, "a"), Thawed(3, "a")]
        assert "without being shut out" in wrong(A, *stood, B, Revoked(11, "a", ["t:0"]))


class TestOffsets:
    """
    They follow the processing.
    """

    def test_all_is_well(self) -> None:
        """
        What is processed is committed, by one member and by the next.
        """
        events = [A, *worked(2, "a", [0, 1]), Seen(3, 2.9, {"t:0": 2}), Revoked(9, "a", ["t:0"]), B]
        assert not wrong(*events, *worked(11, "b", [2, 3]), Seen(12, 11.9, {"t:0": 4}), end=4)

    def test_twice_is_well(self) -> None:
        """
        A record may be processed again.
        """
        assert not wrong(*worked(2, "a", [0, 1]), *worked(3, "b", [0, 1, 2]), end=3)

    def test_a_record_is_left_out(self) -> None:
        """
        The one at which the next member began was not the next one.
        """
        assert wrong(*worked(2, "a", [0, 1]), *worked(3, "a", [3, 4]), end=5) == (
            "t:0: the record at offset 2 was not processed, and the log ends at 5"
        )

    def test_the_end_is_not_reached(self) -> None:
        """
        The last ones were not processed.
        """
        assert "the record at offset 2 was not processed" in wrong(*worked(2, "a", [0, 1]), end=3)

    def test_a_commit_goes_ahead(self) -> None:
        """
        More is committed than is processed by then.
        """
        ahead = [Processed(2, "a", {"t:0": [0]}), Seen(3, 2.9, {"t:0": 2}), Processed(4, "a", {"t:0": [1]})]
        assert wrong(*ahead, end=2) == "t:0: 2 is committed at 3.000, 1 is not processed"

    def test_a_commit_goes_back(self) -> None:
        """
        Less is committed than was.
        """
        back = [Processed(2, "a", {"t:0": [0, 1]}), Seen(3, 2.9, {"t:0": 2}), Seen(4, 3.9, {"t:0": 1})]
        assert wrong(*back, end=2) == _BACK.format(2, 1)

    def test_who_has_committed_before_it_went_back(self) -> None:
        """
        That is told, for it shows whose fault it is.
        """
        back = [*worked(2, "a", [0, 1]), Seen(3, 2.9, {"t:0": 2}), *worked(3.1, "b", [0]), Seen(4, 2.1, {"t:0": 1})]
        assert "commits of 2 by a from 2.100 to 2.200, 1 by b from 3.200 to 3.300" in wrong(*back, end=2)

    def test_a_commit_goes_away(self) -> None:
        """
        Nothing is committed where something was.
        """
        gone = [Processed(2, "a", {"t:0": [0, 1]}), Seen(3, 2.9, {"t:0": 2}), Seen(4, 3.9, {})]
        assert wrong(*gone, end=2) == _BACK.format(2, -1)

    def test_a_promise_is_broken(self) -> None:
        """
        A commit was accepted, and is not there for who asks then.
        """
        lost = [*worked(2, "a", [0, 1]), Seen(3, 2.1, {}), Seen(4, 3.9, {"t:0": 1})]
        assert wrong(*lost, end=2) == "t:0: 1 is committed at 4.000, and 2 was accepted before"

    def test_a_stale_commit(self) -> None:
        """
        The commit of a member is accepted, whose partition another one has already.
        """
        stale = [A, Frozen(2, "a"), B, Thawed(20, "a"), *worked(20.5, "a", [0]), Lost(21, "a", ["t:0"])]
        assert "the commit of 1 by a, begun at 20.600, was accepted, where b has the partition" in wrong(*stale, end=1)

    def test_a_commit_that_was_under_way(self) -> None:
        """
        It was begun before another one had the partition.
        """
        late = [A, Processed(2, "a", {"t:0": [0]}), Frozen(3, "a"), B, Thawed(20, "a")]
        assert not wrong(*late, Committed(20.1, "a", 2.5, {"t:0": 1}), Lost(21, "a", ["t:0"]), end=1)
