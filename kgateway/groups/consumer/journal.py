"""
Writes changes, and lets answers wait until all that they may tell of is safe.

Where a write fails after it was begun, it is undone, and so are those after it, which saw what it made.
"""

from collections import deque
from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.groups.consumer.draft import Draft
from kgateway.groups.rows import Write
from kgateway.wire.errors import ErrorCode, KafkaError

A = TypeVar("A")


class _Pending:
    """
    A write that is not safe yet, and the answers that wait for it.
    """

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._waiting: list[Deferred[None]] = []

    def wait(self) -> Deferred[None]:
        waiting: Deferred[None] = Deferred()
        self._waiting.append(waiting)
        return waiting

    def end(self, error: KafkaError | None) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.callback(None) if error is None else each.errback(error)


class Journal:
    """
    The writes of one group, in order.
    """

    _log = Logger()

    def __init__(self, write: Write, undone: Callable[[], None]) -> None:
        self._write = write
        self._undone = undone  # called when changes that had been seen are no more
        self._pending: deque[_Pending] = deque()

    def commit(self, draft: Draft, answer: A) -> A | Deferred[A]:
        """
        Write the change; the answer, when the change and all before it are safe. A KafkaError where it cannot be
        written: then it is to be undone.
        """
        if draft.rows:
            self._begin(draft)
        elif self._pending:
            self._pending[-1].draft.take_in(draft)
        if not self._pending:
            return answer
        return self._pending[-1].wait().addCallback(lambda _: answer)

    def stop(self, error: KafkaError) -> None:
        """
        Tell all who wait. What was begun may be safe or not: whoever loads the group will see.
        """
        pending, self._pending = self._pending, deque()
        for each in pending:
            each.end(error)

    def _begin(self, draft: Draft) -> None:
        written = self._write(draft.rows)
        draft.rows = []
        if written is None:
            return
        pending = _Pending(draft)
        self._pending.append(pending)
        outcome: list[KafkaError] = []  # if there is one before anybody could wait for it
        written.addCallbacks(self._safe, lambda failure: outcome.append(self._failed(pending, failure)), (pending,))
        if outcome:
            raise outcome[0]

    def _safe(self, _: None, pending: _Pending) -> None:
        """
        What was written before it is safe too.
        """
        while pending in self._pending:
            self._pending.popleft().end(None)

    def _failed(self, pending: _Pending, failure: Failure) -> KafkaError:
        error = _as_kafka_error(failure)
        self._log.warn("a change of a group could not be written: {error}", error=error)
        undone: list[_Pending] = []
        while pending in self._pending:
            last = self._pending.pop()
            last.draft.undo()
            undone.append(last)
        if undone:
            self._undone()
        for last in reversed(undone):
            last.end(error)
        return error


def _as_kafka_error(failure: Failure) -> KafkaError:
    if isinstance(failure.value, KafkaError):
        return failure.value
    return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the write failed: {failure.value}")
