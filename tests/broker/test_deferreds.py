"""
Deferreds that share one outcome.
"""

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kgateway.broker.deferreds import when_over, within
from tests.broker.behaviour import result


@pytest.mark.parametrize("outcome", [7, Failure(ValueError("no"))])
def test_two_observers_see_the_end_and_the_owner_its_outcome(outcome: object) -> None:
    """
    Both are told of the end, whatever it is, and the owner still receives the outcome.
    """
    shared: Deferred[object] = Deferred()
    first, second = when_over(shared), when_over(shared)
    shared.callback(outcome)
    assert (result(first), result(second)) == (None, None)
    found: list[object] = []
    shared.addBoth(found.append)
    assert found == [outcome]


def test_cancelling_one_wait_leaves_the_others() -> None:
    shared: Deferred[int] = Deferred()
    mine, yours = when_over(shared), when_over(shared)
    mine.cancel()
    with pytest.raises(CancelledError):
        result(mine)
    shared.callback(1)
    assert result(yours) is None


def test_waiting_is_bounded() -> None:
    """
    The wait fires after the given seconds, and the awaited work continues.
    """
    clock, shared = Clock(), Deferred[int]()
    waiting = within(clock, 3, shared)
    clock.advance(2.9)
    assert not waiting.called
    clock.advance(0.2)
    assert result(waiting) is None
    shared.callback(1)
    assert result(shared) == 1


def test_no_timer_is_left() -> None:
    """
    There is none after an end in time, an earlier end, or a cancelled wait.
    """
    clock, shared = Clock(), Deferred[int]()
    in_time, given_up = within(clock, 3, shared), within(clock, 3, shared)
    given_up.addErrback(lambda _: None)
    given_up.cancel()
    shared.callback(1)
    assert result(in_time) is None
    assert result(within(clock, 3, shared)) is None
    assert not clock.getDelayedCalls()
