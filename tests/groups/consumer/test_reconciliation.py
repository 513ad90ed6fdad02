"""
How a member comes to its target.
"""

from dataclasses import replace

import pytest

from kgateway.groups.consumer.assignment import Assignment
from kgateway.groups.consumer.member import MemberState, Progress
from kgateway.groups.consumer.reconciliation import Goal, reconcile
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
    return reconcile(progress, goal, owned, lambda _, index: index not in taken, resubscribed=resubscribed)


def test_nothing_to_do() -> None:
    """
    Who has its target stays as it is, whatever it says.
    """
    assert step(STABLE, {A: frozenset([0, 1])}, {}, epoch=5) is STABLE


def test_keeps_and_gets() -> None:
    """
    What a member keeps it has owned since it got it; what it gets it owns since the epoch of the target.
    """
    after = step(STABLE, {A: frozenset([0, 1, 2]), B: frozenset([7])})
    assert after == Progress(6, 5, MemberState.STABLE, {A: {0: 3, 1: 5, 2: 6}, B: {7: 6}}, {})


def test_lets_go_first() -> None:
    """
    Who has to let something go stays in its epoch and gets nothing, and waits until it says that it owns that no more.
    """
    target = {A: frozenset([0]), B: frozenset([7])}
    waits = step(STABLE, target)
    assert waits == Progress(5, 5, MemberState.UNREVOKED_PARTITIONS, {A: {0: 3}}, {A: {1: 5}})
    assert step(waits, target) is waits
    assert step(waits, target, {A: frozenset([1])}) is waits
    after = step(waits, target, {A: frozenset([0])})
    assert after == Progress(6, 5, MemberState.STABLE, {A: {0: 3}, B: {7: 6}}, {})


def test_has_let_go_already() -> None:
    """
    Who says at once that it does not own what it is to let go need not wait.
    """
    after = step(STABLE, {A: frozenset([0])}, {A: frozenset([0])})
    assert after == Progress(6, 5, MemberState.STABLE, {A: {0: 3}}, {})


def test_waits_for_others() -> None:
    """
    What others own is waited for; each heartbeat brings what is free by then.
    """
    target = {A: frozenset([0, 1, 2, 3])}
    waits = step(STABLE, target, taken=frozenset([2, 3]))
    assert (waits.state, waits.epoch, waits.assigned) == (MemberState.UNRELEASED_PARTITIONS, 6, STABLE.assigned)
    waits = step(waits, target, taken=frozenset([3]))
    assert (waits.state, waits.assigned) == (MemberState.UNRELEASED_PARTITIONS, {A: {0: 3, 1: 5, 2: 6}})
    assert step(waits, target).state is MemberState.STABLE


def test_target_of_before_the_subscription() -> None:
    """
    A topic that a member subscribes to no more is not given to it, though its target has it.
    """
    after = step(STABLE, {A: frozenset([0, 1]), B: frozenset([7])}, {A: frozenset([0, 1])}, topics=frozenset([A]))
    assert after.assigned == STABLE.assigned
    assert after.state is MemberState.STABLE


def test_has_its_target_of_before_the_subscription() -> None:
    """
    Who has all of its target lets go what it subscribes to no more of that.
    """
    both = replace(STABLE, assigned={A: {0: 3}, B: {7: 5}})
    waits = step(both, {A: frozenset([0]), B: frozenset([7])}, topics=frozenset([A]))
    assert waits == Progress(5, 5, MemberState.UNREVOKED_PARTITIONS, {A: {0: 3}}, {B: {7: 5}})


def test_subscribes_to_less() -> None:
    """
    What a member subscribes to no more it lets go at once, before there is a target without it.
    """
    target = {A: frozenset([0, 1])}
    waits = step(STABLE, target, epoch=5, topics=frozenset([B]), resubscribed=True)
    assert waits == Progress(5, 5, MemberState.UNREVOKED_PARTITIONS, {}, STABLE.assigned)
    dropped = step(STABLE, target, {}, epoch=5, topics=frozenset([B]), resubscribed=True)
    assert dropped == Progress(5, 5, MemberState.STABLE, {}, {})
    assert step(STABLE, target, epoch=5, topics=frozenset([A]), resubscribed=True) is STABLE


def test_subscribes_to_less_while_it_lets_go() -> None:
    """
    Who has something to let go gets more to let go.
    """
    waits = Progress(5, 5, MemberState.UNREVOKED_PARTITIONS, {A: {0: 3}, B: {7: 4}}, {A: {1: 5}})
    after = step(waits, {}, topics=frozenset([B]), resubscribed=True)
    assert (after.assigned, after.revoking) == ({B: {7: 4}}, {A: {0: 3, 1: 5}})


def test_state_of_a_newer_server() -> None:
    """
    A member in a state that is not known is fenced until it owns nothing, and then begins anew.
    """
    unknown = replace(STABLE, state=MemberState.UNKNOWN)
    for owned in (None, {A: frozenset([0])}):
        with pytest.raises(KafkaError) as raised:
            step(unknown, {}, owned)
        assert raised.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert step(unknown, {A: frozenset([0])}, {}).assigned == {A: {0: 3}}
