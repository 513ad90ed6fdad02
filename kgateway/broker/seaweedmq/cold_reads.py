"""
Reads of what only files have, in time also where the filer hangs.

How long a fetch may take, a read does not know. So one that takes long brings nothing for now, and goes on: when its
bytes have come they stay in memory for a while, and who waits for the partition is woken.
"""

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweed.shared import Shared
from kgateway.wire.types import Buffer

PATIENCE_S = 0.25


class _Wanted(NamedTuple):
    offset: int
    max_bytes: int
    at_least_one: bool
    stop: int


class ColdReads:
    """
    Of one partition.
    """

    _log = Logger()

    def __init__(
        self,
        read: Callable[[int, int, bool, int], Coroutine[Any, Any, list[Buffer]]],
        clock: IReactorTime,
        arrived: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._arrived = arrived  # called when what nobody waits for any more is here
        self._reading: Shared[_Wanted, list[Buffer]] = Shared(lambda wanted: read(*wanted))

    def read(self, offset: int, max_bytes: int, at_least_one: bool, stop: int) -> Deferred[list[Buffer]]:
        """
        Whole batches from the one on that has the offset; none where that takes too long.
        """
        answer: Deferred[list[Buffer]] = Deferred()
        late = self._clock.callLater(PATIENCE_S, answer.callback, [])

        def here(found: list[Buffer] | Failure) -> None:
            if late.active():
                late.cancel()
                answer.callback(found)  # a Failure becomes one of the Deferred
            elif isinstance(found, Failure):
                self._log.info("offset {offset} cannot be read: {error}", offset=offset, error=found.getErrorMessage())
            else:
                self._arrived()

        self._reading.get(_Wanted(offset, max_bytes, at_least_one, stop)).addBoth(here)
        return answer
