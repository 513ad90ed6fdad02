"""
Waiting for what others wait for, too, and for no longer than one likes.
"""

from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

T = TypeVar("T")


def end_of(shared: "Deferred[Any]") -> Deferred[None]:
    """
    Fires when this one is over, however it ends. That stays for others to be told.
    """
    over: Deferred[None] = Deferred()

    def tell(outcome: T) -> T:
        if not over.called:  # whoever does not wait any more has cancelled it
            over.callback(None)
        return outcome

    shared.addBoth(tell)
    return over


def at_most(clock: IReactorTime, seconds: float, shared: "Deferred[Any]") -> Deferred[None]:
    """
    Fires when this one is over, or after so many seconds; it goes on then.
    """
    over = end_of(shared)
    if not over.called:
        late = clock.callLater(seconds, over.callback, None)
        over.addBoth(_no_more, late)
    return over


def _no_more(outcome: T, late: Any) -> T:
    if late.active():
        late.cancel()
    return outcome
