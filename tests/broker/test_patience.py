"""
Waiting for what others wait for, too.
"""

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kgateway.broker.patience import at_most, end_of
from tests.broker.behaviour import result


@pytest.mark.parametrize("outcome", [7, Failure(ValueError("no"))])
def test_the_end_is_told_and_the_outcome_stays(outcome: object) -> None:
    """
    Two who wait for the same end are told of it, whatever it is; whose it is still gets it.
    """
    shared: Deferred[object] = Deferred()
    first, second = end_of(shared), end_of(shared)
    shared.callback(outcome)
    assert (result(first), result(second)) == (None, None)
    found: list[object] = []
    shared.addBoth(found.append)
    assert found == [outcome]


def test_who_does_not_wait_any_more_takes_it_from_nobody() -> None:
    """
    Cancelling one's own waiting leaves the others theirs.
    """
    shared: Deferred[int] = Deferred()
    mine, yours = end_of(shared), end_of(shared)
    mine.cancel()
    with pytest.raises(CancelledError):
        result(mine)
    shared.callback(1)
    assert result(yours) is None


def test_one_waits_no_longer_than_that() -> None:
    """
    After so many seconds it fires, and what is waited for goes on.
    """
    clock, shared = Clock(), Deferred[int]()
    waiting = at_most(clock, 3, shared)
    clock.advance(2.9)
    assert not waiting.called
    clock.advance(0.2)
    assert result(waiting) is None
    shared.callback(1)
    assert result(shared) == 1


def test_what_ends_in_time_leaves_no_timer() -> None:
    """
    Neither where it ends before the time, nor where it was over, nor where nobody waits any more.
    """
    clock, shared = Clock(), Deferred[int]()
    in_time, given_up = at_most(clock, 3, shared), at_most(clock, 3, shared)
    given_up.addErrback(lambda _: None)
    given_up.cancel()
    shared.callback(1)
    assert result(in_time) is None
    assert result(at_most(clock, 3, shared)) is None
    assert not clock.getDelayedCalls()
