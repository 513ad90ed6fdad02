"""
Those who want to be told of a change: of a partition, or of the cluster.
"""

from collections.abc import Callable
from itertools import count

from twisted.logger import Logger

_log = Logger()


class Waiters:
    """
    Listeners, called in the order they came. One that fails is logged, and the others are called all the same.
    """

    __slots__ = ("_listeners", "_numbers")

    def __init__(self) -> None:
        self._listeners: dict[int, Callable[[], None]] = {}
        self._numbers = count()

    def add(self, listener: Callable[[], None]) -> Callable[[], None]:
        """
        Call the listener at each change, until the function that is returned has been called.
        """
        number = next(self._numbers)
        self._listeners[number] = listener

        def cancel() -> None:
            self._listeners.pop(number, None)

        return cancel

    def wake(self) -> None:
        """
        There is a change.
        """
        # Listeners come and go while listeners are called: the new ones wait for the next change.
        for number in tuple(self._listeners):
            listener = self._listeners.get(number)
            if listener is None:
                continue
            try:
                listener()
            except Exception:
                _log.failure("A listener failed.")
