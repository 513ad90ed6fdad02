"""
Twisted's reactor in a test: it runs until something has happened, and then stops again. It is the reactor of the
process, so work that a test leaves behind continues in the next test that waits.
"""

from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Any, TypeVar

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

T = TypeVar("T")

WAIT_S = 40.0
_LOOKS, _LOOK_S = 600, 0.05

reactor: Any = _reactor  # a module to mypy


def wait(deferred: Deferred[T], timeout: float = WAIT_S) -> T:
    """
    The result of a Deferred, or the exception with which it fails.
    """
    found: list[T | Failure] = []
    late = reactor.callLater(timeout, reactor.crash)

    def fired(result: T | Failure) -> None:
        found.append(result)
        reactor.callLater(0, reactor.crash)

    _let_threads_end()
    deferred.addBoth(fired)
    reactor.run(installSignalHandlers=False)
    if not found:
        raise TimeoutError(f"nothing within {timeout:g} s")
    late.cancel()
    if isinstance(found[0], Failure):
        found[0].raiseException()
    return found[0]


def pause(seconds: float) -> None:
    """
    Let the reactor run for this many seconds.
    """
    passed: Deferred[None] = Deferred()
    reactor.callLater(seconds, passed.callback, None)
    wait(passed, seconds + WAIT_S)


def until(found: Callable[[], Any]) -> Any:
    """
    Wait until the function returns something, and return that.
    """
    for _ in range(_LOOKS):
        value = found()
        if value:
            return value
        pause(_LOOK_S)
    raise AssertionError("it never came")


def _let_threads_end() -> None:
    """
    Let threads end with the process, because nothing stops the reactor, which would stop its threads.
    """
    reactor.getThreadPool().threadFactory = partial(Thread, daemon=True)
