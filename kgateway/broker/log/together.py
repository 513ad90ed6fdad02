"""
Does many small things that wait for the disk in few threads: what comes while they are busy is done by the one that is
free first, many at once. A thread for each would cost more than what it waits for.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

_AT_ONCE = 64

GoOn = Callable[[], None]
# Takes the folders that were synced since it was asked for, and adds its own; and calls the other before all it does.
Work = Callable[[set[Path], GoOn], None]


class _Over(Exception):
    """
    Nothing is to be begun any more.
    """


class Together:
    """
    Work that waits for a thread.
    """

    def __init__(self, in_thread: Callable[[Callable[[], Any]], Deferred[Any]], threads: int = 2) -> None:
        self._in_thread = in_thread
        self._free = threads
        self._waiting: list[tuple[Work, Deferred[None]]] = []
        self._is_over = False

    def do(self, work: Work) -> Deferred[None]:
        """
        Fires when it is done, or fails as it does.
        """
        done: Deferred[None] = Deferred()
        self._waiting.append((work, done))
        self._start()
        return done

    def stop(self) -> None:
        """
        Begin nothing any more: what waits is not done, and a thread ends after the one thing that it is just doing.
        Nobody hears of what was not done to its end.
        """
        self._is_over = True
        self._waiting.clear()

    def _start(self) -> None:
        if not self._free or not self._waiting or self._is_over:
            return
        self._free -= 1
        taken, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
        works = [work for work, _ in taken]
        self._in_thread(partial(_outcomes, works, self._go_on)).addBoth(self._ended, [done for _, done in taken])

    def _ended(self, outcomes: list[Failure | None] | Failure, waiting: list[Deferred[None]]) -> None:
        self._free += 1
        self._start()
        for number, done in enumerate(waiting):
            outcome = outcomes if isinstance(outcomes, Failure) else outcomes[number]
            if outcome is None:
                done.callback(None)
            elif not outcome.check(_Over):
                done.errback(outcome)

    def _go_on(self) -> None:
        if self._is_over:
            raise _Over


def _outcomes(works: list[Work], go_on: GoOn) -> list[Failure | None]:
    synced = set[Path]()
    return [_outcome(work, synced, go_on) for work in works]


def _outcome(work: Work, synced: set[Path], go_on: GoOn) -> Failure | None:
    try:
        work(synced, go_on)
    except Exception:
        return Failure()
    return None
