"""
Which of a log's oldest records go, by Kafka's rules: the same for every broker.

A log goes piece by piece, be that a segment, a file or a batch, and as a row from the front: the first piece that stays
keeps all behind it. A piece goes for one of three reasons: it is wholly before the log start, its newest record is
older than `retention.ms`, or without it there is still as much as `retention.bytes`. The first holds in every topic,
and not for the last piece, which is written to; the others hold where the `cleanup.policy` has `delete`, and for the
last piece too, unless it is empty. What is not before the high watermark stays.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import NamedTuple

from kgateway.cluster.view import Topic
from kgateway.records.batch import NO_TIMESTAMP

_NO_LIMIT = -1


class Piece(NamedTuple):
    """
    A part of a log that goes as a whole.
    """

    size: int  # in bytes
    end: int  # the offset with which the next piece begins
    largest_timestamp: int  # -1 where no record has one
    changed_ms: int = 0  # when it was last written to, which stands for the timestamp that is missing

    @property
    def newest_ms(self) -> int:
        """
        From when its newest record is.
        """
        return self.largest_timestamp if self.largest_timestamp > NO_TIMESTAMP else self.changed_ms


class Limits(NamedTuple):
    """
    How old and how large a log may become; below 0 it may become what it likes.
    """

    ms: int
    bytes: int

    @property
    def are_none(self) -> bool:
        """
        Whether nothing goes for its age or size.
        """
        return self.ms < 0 and self.bytes < 0


class Standing(NamedTuple):
    """
    How a log stands.
    """

    size: int  # of all pieces, in bytes
    log_start: int
    high_watermark: int


def limits_of(topic: Topic) -> Limits:
    """
    Those of a topic. The state of a coordinator is not what was last written, but all that was: none of it goes.
    """
    config = topic.config
    if topic.internal or not config.deletes:
        return Limits(_NO_LIMIT, _NO_LIMIT)
    return Limits(config.retention_ms, config.retention_bytes)


def expired(pieces: Iterable[Piece], log: Standing, limits: Limits, now_ms: int) -> int:
    """
    How many go, from the first on. Pieces behind the first that stays are not asked for.
    """
    count, left = 0, log.size
    for piece, is_last in _with_last(pieces):
        left -= piece.size
        if not goes(piece, left, log, limits, now_ms, is_last=is_last):
            break
        count += 1
    return count


def goes(piece: Piece, left: int, log: Standing, limits: Limits, now_ms: int, *, is_last: bool = False) -> bool:
    """
    Whether a piece goes, if all before it do; so many bytes are behind it.
    """
    if piece.end > log.high_watermark or (is_last and not piece.size):
        return False
    is_behind = piece.end <= log.log_start and not is_last
    is_old = 0 <= limits.ms < now_ms - piece.newest_ms
    is_too_much = 0 <= limits.bytes <= left
    return is_behind or is_old or is_too_much


def _with_last(pieces: Iterable[Piece]) -> Iterator[tuple[Piece, bool]]:
    for piece, following in pairwise(chain[Piece | None](pieces, [None])):
        if piece is not None:
            yield piece, following is None
