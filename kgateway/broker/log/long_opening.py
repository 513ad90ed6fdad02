"""
A log that takes long to open: between its steps others go on, and what waits for the disk is done in a thread.
"""

from collections.abc import Generator

from twisted.internet.defer import Deferred, succeed

from kgateway.broker.log.looking_through import Work
from kgateway.broker.log.parts import InThread
from kgateway.broker.log.recovery import Recovered


class LongOpening:
    """
    One log, after the step that said it will take long.
    """

    def __init__(self, steps: Generator[Work | None, None, Recovered], work: Work | None, in_thread: InThread) -> None:
        self._steps = steps
        self._work = work
        self._in_thread = in_thread
        self._quiet: Deferred[None] | None = None  # fires when the thread is done
        self._is_busy = False

    def by_turns(self) -> Generator[Deferred[object] | None, None, Recovered]:
        """
        All steps that are left.
        """
        work = self._work
        try:
            while True:
                yield self._give_away(work) if work else None
                work = next(self._steps)
        except StopIteration as done:
            recovered: Recovered = done.value
            return recovered

    def end(self) -> Deferred[None]:
        """
        Go no further; fires when no thread touches the files any more.
        """
        self._steps.close()
        if not self._is_busy:
            return succeed(None)
        self._quiet = Deferred()
        return self._quiet

    def _give_away(self, work: Work) -> Deferred[object]:
        self._is_busy = True
        return self._in_thread(work).addBoth(self._back)

    def _back(self, result: object) -> object:
        self._is_busy = False
        if self._quiet:
            self._quiet.callback(None)
        return result
