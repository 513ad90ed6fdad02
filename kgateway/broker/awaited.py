"""
Those who wait until a log has come so far: until what is before an offset is stored, or safe.
"""

from collections import deque

from twisted.internet.defer import Deferred

from kgateway.wire.errors import KafkaError


class Awaited:
    """
    Who waits for which offset, in the order they came. Who comes later waits for no less than who came before.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Deferred[None]]] = deque()

    def wait(self, offset: int) -> Deferred[None]:
        """
        Fires when all before the offset is done.
        """
        waiting: Deferred[None] = Deferred()
        self._waiting.append((offset, waiting))
        return waiting

    def reached(self, offset: int) -> None:
        """
        All before the offset is done.
        """
        while self._waiting and self._waiting[0][0] <= offset:
            self._waiting.popleft()[1].callback(None)

    def fail(self, why: KafkaError) -> None:
        """
        What is waited for will not come; each is told by an error of its own.
        """
        waiting, self._waiting = self._waiting, deque()
        for _, waiter in waiting:
            waiter.errback(KafkaError(why.code, why.message))
