"""
One question that many ask at the same time is asked once.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

K = TypeVar("K")
T = TypeVar("T")


class Shared(Generic[K, T]):
    """
    Answers by key, while they are awaited; nothing is remembered. Who does not wait any more takes it from nobody.
    """

    def __init__(self, ask: Callable[[K], Coroutine[Any, Any, T]]) -> None:
        self._ask = ask
        self._waiting: dict[K, list[Deferred[T]]] = {}

    def get(self, key: K) -> Deferred[T]:
        """
        The answer to the question that is under way, or begins now.
        """
        waiting: Deferred[T] = Deferred()
        others = self._waiting.get(key)
        if others is None:
            self._waiting[key] = [waiting]
            Deferred.fromCoroutine(self._ask(key)).addBoth(self._tell, key)
        else:
            others.append(waiting)
        return waiting

    def _tell(self, outcome: T | Failure, key: K) -> None:
        for waiting in self._waiting.pop(key):
            waiting.callback(outcome)  # a Failure becomes one of the Deferred
