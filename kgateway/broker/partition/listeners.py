"""
Listeners for changes of a partition or the cluster, and Deferreds that wait until a log has reached an offset.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.log_messages import LISTENER_FAILED
from kgateway.wire.errors import KafkaError

_log = Logger(__name__)


class Listeners:
    """
    Functions that are called at each change, in the order in which they were added. A failure is logged, and the others
    are called all the same.
    """

    __slots__ = ("_listeners", "_numbers")

    def __init__(self) -> None:
        self._listeners: dict[int, Callable[[], None]] = {}
        self._numbers = count()

    def add(self, listener: Callable[[], None]) -> Callable[[], None]:
        """
        Call the listener at each change, until the returned function is called.
        """
        number = next(self._numbers)
        self._listeners[number] = listener
        return partial(self._listeners.pop, number, None)  # type: ignore[return-value]  # what it returns does not count

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def wake(self) -> None:
        # Listeners are added and cancelled while others are called: new ones wait for the next change.
        for number in tuple(self._listeners):
            listener = self._listeners.get(number)
            if listener is None:
                continue
            try:
                listener()
            except Exception:
                _log.failure(LISTENER_FAILED)


class OffsetWaiters:
    """
    Deferreds that wait for an offset, in order; a later one waits for no smaller offset.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Deferred[None]]] = deque()

    def wait(self, offset: int) -> Deferred[None]:
        """
        Fires once everything before the offset is done.
        """
        waiting: Deferred[None] = Deferred()
        self._waiting.append((offset, waiting))
        return waiting

    def reached(self, offset: int) -> None:
        """
        Fire for everything up to the offset.
        """
        while self._waiting and self._waiting[0][0] <= offset:
            self._waiting.popleft()[1].callback(None)

    def fail(self, why: KafkaError) -> None:
        """
        Fail all that wait, each with an error of its own.
        """
        waiting, self._waiting = self._waiting, deque()
        for _, waiter in waiting:
            waiter.errback(KafkaError(why.code, why.message))
