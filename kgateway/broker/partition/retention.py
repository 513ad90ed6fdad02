"""
Which of a log's oldest records expire, by Kafka's rules, and the rounds that delete them: the same for every broker.

A log is deleted part by part, be that a segment, a file or a batch, from the front: the first part that is kept keeps
all after it. A part is deleted for one of three reasons: it is wholly before the log start, its newest record is older
than `retention.ms`, or without it the log still has `retention.bytes`. The first holds in every topic, except for the
last part, which is written to; the others hold if the `cleanup.policy` has `delete`, and for the last part too, unless
it is empty. Nothing above the high watermark is deleted.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import chain, pairwise
from typing import NamedTuple, TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from kgateway.broker.rounds import Rounds
from kgateway.cluster.view import Topic
from kgateway.interfaces import IPartition
from kgateway.log_messages import CANNOT_EXPIRE, RETENTION_ROUND_FAILED
from kgateway.records.batch import NO_TIMESTAMP
from kgateway.wire.errors import KafkaError

CHECK_MS = 300_000  # as log.retention.check.interval.ms
_FIRST_MS = 30_000  # a gateway that has just started has other things to do
_NO_LIMIT = -1

Key = TypeVar("Key")


class Deletable(NamedTuple):
    """
    A part of a log that is deleted as a whole.
    """

    size: int  # in bytes
    end: int  # the offset with which the next part begins
    largest_timestamp: int  # -1 if no record has one
    changed_ms: int = 0  # when it was last written to, in place of a missing timestamp

    @property
    def newest_ms(self) -> int:
        """
        The timestamp of its newest record; when it was last written to, if no record has one.
        """
        return self.largest_timestamp if self.largest_timestamp > NO_TIMESTAMP else self.changed_ms


class RetentionLimits(NamedTuple):
    """
    The age and the size that a log may reach; unlimited below 0.
    """

    ms: int
    bytes: int

    @property
    def are_none(self) -> bool:
        return self.ms < 0 and self.bytes < 0


class LogExtent(NamedTuple):
    """
    Size, start and end of a log.
    """

    size: int  # of all parts, in bytes
    log_start: int
    high_watermark: int


def retention_limits(topic: Topic) -> RetentionLimits:
    """
    The limits of a topic. The state of a coordinator has none: it is everything that was written, not only the last.
    """
    config = topic.config
    if topic.internal or not config.deletes:
        return RetentionLimits(_NO_LIMIT, _NO_LIMIT)
    return RetentionLimits(config.retention_ms, config.retention_bytes)


def expired(pieces: Iterable[Deletable], log: LogExtent, limits: RetentionLimits, now_ms: int) -> int:
    """
    How many parts are expired, from the first on. Those after the first that is kept are not asked for.
    """
    count, left = 0, log.size
    for piece, is_last in _with_last(pieces):
        left -= piece.size
        if not is_expired(piece, left, log, limits, now_ms, is_last=is_last):
            break
        count += 1
    return count


def is_expired(
    piece: Deletable, left: int, log: LogExtent, limits: RetentionLimits, now_ms: int, *, is_last: bool = False
) -> bool:
    """
    Whether a part is expired, given that all before it are, and `left` bytes follow it.
    """
    if piece.end > log.high_watermark or (is_last and not piece.size):
        return False
    is_before_start = piece.end <= log.log_start and not is_last
    is_old = 0 <= limits.ms < now_ms - piece.newest_ms
    is_too_much = 0 <= limits.bytes <= left
    return is_before_start or is_old or is_too_much


def _with_last(pieces: Iterable[Deletable]) -> Iterator[tuple[Deletable, bool]]:
    for piece, following in pairwise(chain[Deletable | None](pieces, [None])):
        if piece is not None:
            yield piece, following is None


class RetentionRounds(Rounds):
    """
    Expires one partition after the other, each in a turn of its own. `keys` lists them as a round begins, `partition`
    gives the one of a key; if that raises a KafkaError, the next round tries again.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        interval_ms: int,
        keys: Callable[[], Awaitable[Iterable[Key]]],
        partition: Callable[[Key], IPartition],
    ) -> None:
        super().__init__(clock, min(interval_ms, _FIRST_MS), interval_ms, self._go_through, RETENTION_ROUND_FAILED)
        self._keys = keys
        self._partition = partition

    async def _go_through(self) -> None:
        for key in list(await self._keys()):
            await self._next_turn()
            try:
                await self._partition(key).expire()
            except KafkaError as error:
                self._log.debug("{key}: cannot expire records: {error}", key=key, error=error)
            except CancelledError:
                raise
            except Exception:
                self._log.failure(CANNOT_EXPIRE, partition=key)

    def _next_turn(self) -> Deferred[None]:
        turn: Deferred[None] = Deferred(lambda _: timer.cancel())
        timer = self._clock.callLater(0, turn.callback, None)
        return turn
