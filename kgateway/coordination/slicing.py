"""
Long work in slices, so that the reactor serves others in between; and waits.
"""

from collections.abc import AsyncIterator, Iterable
from itertools import islice
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

T = TypeVar("T")


def pause(clock: IReactorTime, seconds: float) -> Deferred[None]:
    over: Deferred[None] = Deferred(lambda _: timer.cancel())
    timer = clock.callLater(seconds, over.callback, None)
    return over


def next_turn(clock: IReactorTime) -> Deferred[None]:
    return pause(clock, 0)


async def by_turns(pieces: Iterable[T], clock: IReactorTime) -> AsyncIterator[T]:
    """
    One piece in each turn of the reactor, the first one in this turn.
    """
    first = True
    for piece in pieces:
        if not first:
            await next_turn(clock)
        first = False
        yield piece


# As itertools.batched of Python 3.12.
def batched(things: Iterable[T], size: int) -> Iterable[list[T]]:
    rest = iter(things)
    while piece := list(islice(rest, size)):
        yield piece


def shield(shared: Deferred[T]) -> Deferred[T]:
    """
    A Deferred with the outcome of the shared one, which goes on when this is cancelled.
    """
    shielded: Deferred[T] = Deferred()

    def forward(outcome: T | Failure) -> None:
        if not shielded.called:  # it may have been cancelled
            shielded.callback(outcome)  # a failure fails it

    shared.addBoth(forward)
    return shielded
