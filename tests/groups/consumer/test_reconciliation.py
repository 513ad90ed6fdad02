"""
How a member reaches its target assignment.
"""

from dataclasses import replace

import pytest

from kgateway.groups.assignors.assignment import Assignment
from kgateway.groups.consumer.member import MemberState, Progress
from kgateway.groups.consumer.reconciliation import Goal, next_progress
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.groups.consumer.model import topic_id

A, B = topic_id(1), topic_id(2)
BOTH = frozenset([A, B])
STABLE = Progress(5, 4, MemberState.STABLE, {A: {0: 3, 1: 5}})


def step(
    progress: Progress,
    target: Assignment,
    owned: Assignment | None = None,
    *,
    epoch: int = 6,
    topics: frozenset[object] = BOTH,
    taken: frozenset[int] = frozenset(),
    resubscribed: bool = False,
) -> Progress:
    goal = Goal(epoch, target, topics)  # type: ignore[arg-type]
    return next_progress(progress, goal, owned, lambda _, index: index not in taken, resubscribed=resubscribed)


def test_a_member_with_its_target_does_not_change() -> None:
    """
    Its reports do not matter.
    """
    assert step(STABLE, {A: frozenset([0, 1])}, {}, epoch=5) is STABLE


def test_partitions_have_the_epoch_of_their_assignment() -> None:
    """
    Kept ones have an older epoch, new ones that of the target.
    """
    after = step(STABLE, {A: frozenset([0, 1, 2]), B: frozenset([7])})
    assert after == Progress(6, 5, MemberState.STABLE, {A: {0: 3, 1: 5, 2: 6}, B: {7: 6}}, {})


def test_a_member_revokes_first() -> None:
    """
    It remains in its epoch and gets nothing until it reports the revocation.
    """
    target = {A: frozenset([0]), B: frozenset([7])}
    waits = step(STABLE, target)
    assert waits == Progress(5, 5, MemberState.UNREVOKED_PARTITIONS, {A: {0: 3}}, {A: {1: 5}})
    assert step(waits, target) is waits
    assert step(waits, target, {A: frozenset([1])}) is waits
    after = step(waits, target, {A: frozenset([0])})
    assert after == Progress(6, 5, MemberState.STABLE, {A: {0: 3}, B: {7: 6}}, {})


def test_a_finished_revocation_needs_no_wait() -> None:
    """
    The member does not own the partitions any longer.
    """
    after = step(STABLE, {A: frozenset([0])}, {A: frozenset([0])})
    assert after == Progress(6, 5, MemberState.STABLE, {A: {0: 3}}, {})


def test_partitions_of_others_arrive_when_free() -> None:
    """
    Each heartbeat brings those that are free by then.
    """
    target = {A: frozenset([0, 1, 2, 3])}
    waits = step(STABLE, target, taken=frozenset([2, 3]))
    assert (waits.state, waits.epoch, waits.assigned) == (MemberState.UNRELEASED_PARTITIONS, 6, STABLE.assigned)
    waits = step(waits, target, taken=frozenset([3]))
    assert (waits.state, waits.assigned) == (MemberState.UNRELEASED_PARTITIONS, {A: {0: 3, 1: 5, 2: 6}})
    assert step(waits, target).state is MemberState.STABLE


def test_topics_without_subscription_are_not_assigned() -> None:
    """
    The target may be older than the change of subscription.
    """
    after = step(STABLE, {A: frozenset([0, 1]), B: frozenset([7])}, {A: frozenset([0, 1])}, topics=frozenset([A]))
    assert after.assigned == STABLE.assigned
    assert after.state is MemberState.STABLE


def test_a_member_at_its_target_revokes_unsubscribed_topics() -> None:
    both = replace(STABLE, assigned={A: {0: 3}, B: {7: 5}})
    waits = step(both, {A: frozenset([0]), B: frozenset([7])}, topics=frozenset([A]))
    assert waits == Progress(5, 5, MemberState.UNREVOKED_PARTITIONS, {A: {0: 3}}, {B: {7: 5}})


def test_unsubscribed_topics_are_revoked_at_once() -> None:
    """
    The member does not wait for a new target.
    """
    target = {A: frozenset([0, 1])}
    waits = step(STABLE, target, epoch=5, topics=frozenset([B]), resubscribed=True)
    assert waits == Progress(5, 5, MemberState.UNREVOKED_PARTITIONS, {}, STABLE.assigned)
    dropped = step(STABLE, target, {}, epoch=5, topics=frozenset([B]), resubscribed=True)
    assert dropped == Progress(5, 5, MemberState.STABLE, {}, {})
    assert step(STABLE, target, epoch=5, topics=frozenset([A]), resubscribed=True) is STABLE


def test_a_revoking_member_may_have_to_revoke_more() -> None:
    waits = Progress(5, 5, MemberState.UNREVOKED_PARTITIONS, {A: {0: 3}, B: {7: 4}}, {A: {1: 5}})
    after = step(waits, {}, topics=frozenset([B]), resubscribed=True)
    assert (after.assigned, after.revoking) == ({B: {7: 4}}, {A: {0: 3, 1: 5}})


def test_an_unknown_state_is_fenced() -> None:
    """
    A newer server wrote it; the member starts over once it owns nothing.
    """
    unknown = replace(STABLE, state=MemberState.UNKNOWN)
    for owned in (None, {A: frozenset([0])}):
        with pytest.raises(KafkaError) as raised:
            step(unknown, {}, owned)
        assert raised.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert step(unknown, {A: frozenset([0])}, {}).assigned == {A: {0: 3}}
