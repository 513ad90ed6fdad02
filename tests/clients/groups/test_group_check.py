"""
What the check of a group reports, and what it accepts.
"""

from collections.abc import Sequence

import pytest

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
from tests.clients.groups.group_check import faults

_ILLEGAL_GENERATION = 22
_BACK = "t:0: the committed offset went back from {} to {} at 4.000, after commits of nobody"


def wrong(*events: Event, end: int = 0) -> str:
    """
    The only fault, or an empty string.
    """
    found = faults(events, {"t:0": end}, 5)
    assert len(found) <= 1, found
    return "".join(found)


def worked(at: float, member: str, offsets: Sequence[int]) -> list[Event]:
    """
    A member has processed some records, and committed them.
    """
    committed = {"t:0": offsets[-1] + 1}
    return [Processed(at, member, {"t:0": offsets}), Committed(at + 0.2, member, at + 0.1, committed)]


A, B = Assigned(1, "a", ["t:0"]), Assigned(10, "b", ["t:0"])


class TestOwners:
    def test_owners_in_sequence_are_accepted(self) -> None:
        """
        A new owner may follow when the former one has given the partition up, has left, or has ended.
        """
        assert not wrong(A, Revoked(9, "a", ["t:0"]), B)
        assert not wrong(A, Lost(9, "a", ["t:0"]), B)
        assert not wrong(A, Left(9, "a"), B)
        assert not wrong(A, Ended(9, "a"), B)

    def test_two_owners_at_the_end(self) -> None:
        """
        Both have the partition, and keep it.
        """
        assert wrong(A, B) == "t:0: b has it since 10.000000, and a still has it"

    @pytest.mark.parametrize("end", [Revoked(11, "a", ["t:0"]), Left(11, "a"), Revoked(11, "b", ["t:0"])], ids=str)
    def test_two_owners_for_a_while(self, end: OfMember) -> None:
        """
        Nobody has fenced the first owner.
        """
        ended = f"({type(end).__name__} of {end.member})"
        assert f"a had it until 11.000000 {ended} without being shut out" in wrong(A, B, end)

    def test_a_fenced_owner_finds_out_soon(self) -> None:
        assert not wrong(A, B, Lost(12, "a", ["t:0"]))
        assert not wrong(A, B, Refused(12, "a", _ILLEGAL_GENERATION, ""), Revoked(13, "a", ["t:0"]))

    def test_a_fenced_owner_finds_out_late(self) -> None:
        """
        It keeps the partition for too long after the refusal.
        """
        refused = Refused(12, "a", _ILLEGAL_GENERATION, "")
        assert "without being shut out" in wrong(A, B, refused, Revoked(18, "a", ["t:0"]))

    def test_another_refusal_is_no_fencing(self) -> None:
        assert "without being shut out" in wrong(A, B, Refused(12, "a", -1, ""), Revoked(13, "a", ["t:0"]))

    def test_a_frozen_owner_cannot_find_out(self) -> None:
        """
        It finds out after it is thawed.
        """
        frozen = Frozen(2, "a")
        assert not wrong(A, frozen, B)
        assert not wrong(A, frozen, B, Ended(30, "a"))
        assert not wrong(A, frozen, B, Thawed(30, "a"), Revoked(31, "a", ["t:0"]))
        assert "without being shut out" in wrong(A, frozen, B, Thawed(30, "a"), Revoked(37, "a", ["t:0"]))

    def test_a_thawed_owner_reads_an_old_assignment(self) -> None:
        """
        It reads what it was assigned just before it was frozen.
        """
        stood, late = [Frozen(2, "a"), B, Thawed(30, "a")], Assigned(30.1, "a", ["t:1"])
        assert not wrong(A, *stood, late, Revoked(31, "a", ["t:0"]))
        assert "without being shut out" in wrong(A, *stood, late, Revoked(37, "a", ["t:0"]))

    @pytest.mark.parametrize("owner", [[], [Revoked(30.2, "b", ["t:0"])]], ids=["goes on", "lets it go"])
    def test_a_thawed_member_believes_an_old_response(self, owner: list[Event]) -> None:
        """
        It believes a response as old as its sleep until it finds out, soon, that it was fenced.
        """
        told = [B, Frozen(11, "a"), Thawed(30, "a"), Assigned(30.1, "a", ["t:0"]), *owner]
        assert not wrong(*told, Lost(30.3, "a", ["t:0"]))
        assert not wrong(*told, Ended(30.3, "a"))
        assert "b had it until 30." in wrong(*told, Revoked(30.3, "a", ["t:0"]))
        assert "b had it until 30." in wrong(*told, Left(30.3, "a"))
        assert "without being shut out" in wrong(*told, Lost(37, "a", ["t:0"]))
        assert "without being shut out" in wrong(*told, Ended(37, "a"))
        assert "t:0: a has it since 30.1" in wrong(*told)

    def test_a_member_that_was_awake_has_no_excuse(self) -> None:
        """
        It must not be assigned a partition of another member, not even for a moment.
        """
        late = Assigned(30.1, "a", ["t:0"])
        assert "(Lost of a) without being shut out" in wrong(B, late, Lost(30.2, "a", ["t:0"]))
        assert "(Revoked of b) without" in wrong(B, late, Revoked(30.2, "b", ["t:0"]), Lost(30.3, "a", ["t:0"]))

    def test_an_earlier_freeze_is_no_excuse(self) -> None:
        stood = [Frozen(2, "a"), Thawed(3, "a")]
        assert "without being shut out" in wrong(A, *stood, B, Revoked(11, "a", ["t:0"]))


class TestOffsets:
    def test_processed_records_are_committed(self) -> None:
        """
        One member continues where the other stopped.
        """
        events = [A, *worked(2, "a", [0, 1]), Seen(3, 2.9, {"t:0": 2}), Revoked(9, "a", ["t:0"]), B]
        assert not wrong(*events, *worked(11, "b", [2, 3]), Seen(12, 11.9, {"t:0": 4}), end=4)

    def test_a_record_may_be_processed_twice(self) -> None:
        assert not wrong(*worked(2, "a", [0, 1]), *worked(3, "b", [0, 1, 2]), end=3)

    def test_a_record_is_left_out(self) -> None:
        """
        The next member began behind the next record.
        """
        assert wrong(*worked(2, "a", [0, 1]), *worked(3, "a", [3, 4]), end=5) == (
            "t:0: the record at offset 2 was not processed, and the log ends at 5"
        )

    def test_the_last_records_are_not_processed(self) -> None:
        assert "the record at offset 2 was not processed" in wrong(*worked(2, "a", [0, 1]), end=3)

    def test_a_commit_ahead_of_processing(self) -> None:
        ahead = [Processed(2, "a", {"t:0": [0]}), Seen(3, 2.9, {"t:0": 2}), Processed(4, "a", {"t:0": [1]})]
        assert wrong(*ahead, end=2) == "t:0: 2 is committed at 3.000, 1 is not processed"

    def test_a_commit_goes_back(self) -> None:
        """
        The later commit is lower than the earlier one.
        """
        back = [Processed(2, "a", {"t:0": [0, 1]}), Seen(3, 2.9, {"t:0": 2}), Seen(4, 3.9, {"t:0": 1})]
        assert wrong(*back, end=2) == _BACK.format(2, 1)

    def test_the_commits_before_a_step_back_are_named(self) -> None:
        """
        They show whose fault it is.
        """
        back = [*worked(2, "a", [0, 1]), Seen(3, 2.9, {"t:0": 2}), *worked(3.1, "b", [0]), Seen(4, 2.1, {"t:0": 1})]
        assert "commits of 2 by a from 2.100 to 2.200, 1 by b from 3.200 to 3.300" in wrong(*back, end=2)

    def test_a_commit_disappears(self) -> None:
        """
        Nothing is committed where something was.
        """
        gone = [Processed(2, "a", {"t:0": [0, 1]}), Seen(3, 2.9, {"t:0": 2}), Seen(4, 3.9, {})]
        assert wrong(*gone, end=2) == _BACK.format(2, -1)

    def test_an_accepted_commit_is_missing(self) -> None:
        """
        A later query does not return it.
        """
        lost = [*worked(2, "a", [0, 1]), Seen(3, 2.1, {}), Seen(4, 3.9, {"t:0": 1})]
        assert wrong(*lost, end=2) == "t:0: 1 is committed at 4.000, and 2 was accepted before"

    def test_a_stale_commit(self) -> None:
        """
        A commit is accepted although another member owns the partition already.
        """
        stale = [A, Frozen(2, "a"), B, Thawed(20, "a"), *worked(20.5, "a", [0]), Lost(21, "a", ["t:0"])]
        assert "the commit of 1 by a, begun at 20.600, was accepted, where b has the partition" in wrong(*stale, end=1)

    def test_a_commit_under_way_is_accepted(self) -> None:
        """
        It was begun before another member got the partition.
        """
        late = [A, Processed(2, "a", {"t:0": [0]}), Frozen(3, "a"), B, Thawed(20, "a")]
        assert not wrong(*late, Committed(20.1, "a", 2.5, {"t:0": 1}), Lost(21, "a", ["t:0"]), end=1)
