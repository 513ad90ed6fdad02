"""
Long work in slices, so that others get their turn; and waiting.
"""

from collections.abc import AsyncIterator, Iterable
from itertools import islice
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

T = TypeVar("T")


def pause(clock: IReactorTime, seconds: float) -> Deferred[None]:
    """
    Fires so much later.
    """
    over: Deferred[None] = Deferred(lambda _: timer.cancel())
    timer = clock.callLater(seconds, over.callback, None)
    return over


def next_turn(clock: IReactorTime) -> Deferred[None]:
    """
    Fires in the reactor's next turn.
    """
    return pause(clock, 0)


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


def outcome_of(shared: Deferred[T]) -> Deferred[T]:
    """
    Ends as this one does, which goes on where nobody waits any more.
    """
    told: Deferred[T] = Deferred()

    def tell(outcome: T | Failure) -> None:
        if not told.called:  # whoever does not wait any more has cancelled it
            told.callback(outcome)  # a failure fails it

    shared.addBoth(tell)
    return told
