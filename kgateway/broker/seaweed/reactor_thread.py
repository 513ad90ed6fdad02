"""
A reactor in a thread of its own, one for all of a process, for callers that wait for each answer.
"""

from collections.abc import Callable
from functools import cache, partial
from threading import Thread
from typing import Any, TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.internet.pollreactor import PollReactor
from twisted.internet.threads import blockingCallFromThread

T = TypeVar("T")


@cache
def threaded_reactor() -> Any:
    reactor: Any = PollReactor()
    reactor.getThreadPool().threadFactory = partial(Thread, daemon=True)  # nobody stops it, nor its threads
    run = {"installSignalHandlers": False}
    Thread(target=reactor.run, kwargs=run, name="kgateway-seaweed", daemon=True).start()
    return reactor


def result_of(question: Callable[[], Deferred[T]]) -> T:
    """
    Ask in the thread of the reactor, and wait for the answer, or the failure.
    """
    # Its stubs know nothing of what a Deferred fires with.
    return cast(T, blockingCallFromThread(threaded_reactor(), cast(Any, question)))
