"""
The rounds in which a broker lets go of what its topics keep no longer.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from kgateway.broker.rounds import Rounds
from kgateway.interfaces import IPartition
from kgateway.wire.errors import KafkaError

CHECK_MS = 300_000  # as log.retention.check.interval.ms
_FIRST_MS = 30_000  # a gateway that has just started has other things to do

Key = TypeVar("Key")


class RetentionRounds(Rounds):
    """
    One partition after the other, each in a turn of its own. `keys` gives those there are as a round begins,
    `partition` the one of a key; a KafkaError says that it is not to be had now, and the next round will see.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        interval_ms: int,
        keys: Callable[[], Awaitable[Iterable[Key]]],
        partition: Callable[[Key], IPartition],
    ) -> None:
        told = "partitions could not be looked through for what they keep no longer"
        super().__init__(clock, min(interval_ms, _FIRST_MS), interval_ms, self._go_through, told)
        self._keys = keys
        self._partition = partition

    async def _go_through(self) -> None:
        for key in list(await self._keys()):
            await self._next_turn()
            try:
                await self._partition(key).expire()
            except KafkaError as error:
                self._log.debug("{key}: nothing could be let go: {error}", key=key, error=error)
            except CancelledError:
                raise
            except Exception:
                self._log.failure("{key}: nothing could be let go", key=key)

    def _next_turn(self) -> Deferred[None]:
        turn: Deferred[None] = Deferred(lambda _: timer.cancel())
        timer = self._clock.callLater(0, turn.callback, None)
        return turn
