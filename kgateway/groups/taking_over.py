"""
How a group begins: with its first write, in one batch with the end of the group that had its id before, if one had.

So a member that is refused leaves no trace: neither of a group that nobody is in, nor on the one that was there.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.groups.group import Group
from kgateway.groups.rows import Row, Write

G = TypeVar("G", bound=Group)
_Beginning = tuple[Sequence[Row], Callable[[G], object], Callable[[G, Failure], object]]


class TakingOver(Generic[G]):
    """
    Writes for a group that is not there yet.
    """

    group: G

    def __init__(
        self, first: Sequence[Row], write: Write, done: Callable[[G], object], undone: Callable[[G, Failure], object]
    ) -> None:
        """
        `first` comes before what the group itself writes. `done` is called once it is written, `undone` where that
        fails later.
        """
        self._write = write
        self._beginning: _Beginning[G] | None = first, done, undone

    def write(self, rows: Sequence[Row]) -> Deferred[None] | None:
        """
        The `Write` of the group.
        """
        if self._beginning is None:
            return self._write(rows)
        first, done, undone = self._beginning
        written = self._write([*first, *rows])
        self._beginning = None
        done(self.group)
        if written is not None:
            written.addErrback(self._failed, undone)
        return written

    def _failed(self, failure: Failure, undone: Callable[[G, Failure], object]) -> Failure:
        undone(self.group, failure)
        return failure
