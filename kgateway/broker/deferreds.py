"""
Waits for Deferreds: with a limit, shared by many, or for several at once.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred, FirstError, gatherResults
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

T = TypeVar("T")


def when_over(shared: "Deferred[Any]") -> Deferred[None]:
    """
    Fires once `shared` has ended in any way. Its outcome remains for others.
    """
    over: Deferred[None] = Deferred()

    def fire(outcome: T) -> T:
        if not over.called:  # else it was cancelled
            over.callback(None)
        return outcome

    shared.addBoth(fire)
    return over


def within(clock: IReactorTime, seconds: float, shared: "Deferred[Any]") -> Deferred[None]:
    """
    Fires when `shared` ends or the time is up; `shared` itself goes on.
    """
    over = when_over(shared)
    if not over.called:
        timer = clock.callLater(seconds, over.callback, None)
        over.addBoth(_cancel_timer, timer)
    return over


def _cancel_timer(outcome: T, timer: Any) -> T:
    if timer.active():
        timer.cancel()
    return outcome


K = TypeVar("K")


class SharedAnswers(Generic[K, T]):
    """
    Answers by key, shared by all that ask while one is awaited. Nothing is remembered. To cancel a Deferred takes the
    answer from nobody else.
    """

    def __init__(self, ask: Callable[[K], Coroutine[Any, Any, T]]) -> None:
        self._ask = ask
        self._waiting: dict[K, list[Deferred[T]]] = {}

    def get(self, key: K) -> Deferred[T]:
        """
        The answer to the question under way, or to one that begins now.
        """
        waiting: Deferred[T] = Deferred()
        others = self._waiting.get(key)
        if others is None:
            self._waiting[key] = [waiting]
            Deferred.fromCoroutine(self._ask(key)).addBoth(self._answer_all, key)
        else:
            others.append(waiting)
        return waiting

    def _answer_all(self, outcome: T | Failure, key: K) -> None:
        for waiting in self._waiting.pop(key):
            waiting.callback(outcome)  # a Failure becomes one of the Deferred


async def gather(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """
    All results in order, or the first failure as it is.
    """
    running = [Deferred.fromCoroutine(coroutine) for coroutine in coroutines]
    try:
        return await gatherResults(running, consumeErrors=True)
    except FirstError as first:
        first.subFailure.raiseException()
