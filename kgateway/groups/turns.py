"""
Long work in slices, so that others get their turn.
"""

from collections.abc import AsyncIterator, Iterable
from itertools import islice
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

T = TypeVar("T")


def next_turn(clock: IReactorTime) -> Deferred[None]:
    """
    Fires in the reactor's next turn.
    """
    turn: Deferred[None] = Deferred(lambda _: timer.cancel())
    timer = clock.callLater(0, turn.callback, None)
    return turn


async def by_turns(pieces: Iterable[T], clock: IReactorTime) -> AsyncIterator[T]:
    """
    One piece a turn; the first one in this.
    """
    first = True
    for piece in pieces:
        if not first:
            await next_turn(clock)
        first = False
        yield piece


def in_pieces(things: Iterable[T], size: int) -> Iterable[list[T]]:
    """
    The same things, as many at a time.
    """
    rest = iter(things)
    while piece := list(islice(rest, size)):
        yield piece
