"""
A replay of given pieces.
"""

from collections.abc import Iterable, Iterator

from twisted.internet.defer import Deferred, succeed

from kgateway.cluster.pending_values import PendingValues
from kgateway.interfaces import IReplay, KeyValue


class FakeReplay:
    """
    Replays these pieces, and the open transactions behind them.
    """

    def __init__(self, pieces: Iterable[list[KeyValue]]) -> None:
        self.undecided: PendingValues[bytes, bytes] = PendingValues()
        self.began: dict[int, int] = {}
        self._pieces = iter(pieces)

    def __iter__(self) -> Iterator[list[KeyValue]]:
        return self._pieces


def replayed(pieces: Iterable[list[KeyValue]]) -> "Deferred[IReplay]":
    """
    A replay that is ready at once.
    """
    return succeed(FakeReplay(pieces))  # type: ignore[arg-type]  # which provides it
