"""
The reactor of tests.
"""

import sys
from subprocess import run

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.threads import deferToThread

from tests.broker.seaweed.real_reactor import pause, reactor, wait


def test_what_is_there_already_is_given() -> None:
    assert wait(succeed(5)) == 5


def test_what_comes_later_is_waited_for() -> None:
    """
    No timer of the wait is left over; other tests may have left some.
    """
    before = reactor.getDelayedCalls()
    later: Deferred[int] = Deferred()
    reactor.callLater(0.01, later.callback, 5)
    assert wait(later) == 5
    assert not {*reactor.getDelayedCalls()} - {*before}


def test_a_failure_is_raised() -> None:
    with pytest.raises(KeyError):
        wait(fail(KeyError("none")))


def test_waiting_has_an_end() -> None:
    with pytest.raises(TimeoutError):
        wait(Deferred(), timeout=0.01)
    assert wait(succeed(5)) == 5


def test_it_runs_many_times() -> None:
    for number in range(200):
        assert wait(succeed(number)) == number


def test_what_takes_time_goes_on_while_a_test_waits() -> None:
    beats: list[int] = []
    reactor.callLater(0, beats.append, 1)
    pause(0.01)
    assert beats == [1]


def test_threads_of_the_reactor_do_not_keep_the_process() -> None:
    assert wait(deferToThread(sum, [2, 3])) == 5
    code = (
        "from twisted.internet.threads import deferToThread as d; from tests.broker.seaweed.real_reactor import wait; "
    )
    assert run([sys.executable, "-c", f"{code}print(wait(d(sum, [2, 3])))"], timeout=20, check=True).returncode == 0
