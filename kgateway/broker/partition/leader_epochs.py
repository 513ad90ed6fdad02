"""
The leader epoch of each part of a log, in Kafka's file `leader-epoch-checkpoint`:

    0               the version of the format
    2               how many lines follow
    0 0             an epoch, and the first offset written in it
    3 1000

An epoch in which nothing was written has no line. The epoch of each batch is in its header too, so after a crash
recovery takes from there what the file lacks.
"""

import re
from bisect import bisect_right

from kgateway.cluster.partition import NO_EPOCH, EpochEnd

EPOCH_FILE = "leader-epoch-checkpoint"
_VERSION = "0"
_NUMBER = re.compile("[0-9]{1,19}")


class LeaderEpochs:
    """
    Epochs and where they begin; both grow.
    """

    __slots__ = ("_epochs", "_starts")

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []

    def assign(self, epoch: int, offset: int) -> bool:
        """
        Begin this epoch at this offset. Returns whether it is new.
        """
        if self._epochs and epoch <= self._epochs[-1]:
            return False
        self.cut(offset)
        self._epochs.append(epoch)
        self._starts.append(offset)
        return True

    def drop_above(self, epoch: int) -> bool:
        """
        Drop the epochs above this one, which cannot exist. Returns whether there were any.
        """
        before = len(self._epochs)
        while self._epochs and self._epochs[-1] > epoch:
            self._starts.pop()
            self._epochs.pop()
        return len(self._epochs) < before

    @property
    def last(self) -> int:
        return self._epochs[-1] if self._epochs else NO_EPOCH

    def cut(self, offset: int) -> None:
        """
        Drop the epochs that begin at this offset or after it.
        """
        while self._starts and self._starts[-1] >= offset:
            self._starts.pop()
            self._epochs.pop()

    def begin_at(self, offset: int) -> None:
        """
        The log begins at this offset now: drop the epochs that end before, and let the one that has the offset begin
        with it.
        """
        gone = bisect_right(self._starts, offset) - 1
        if gone >= 0:
            del self._epochs[:gone], self._starts[:gone]
            self._starts[0] = offset

    def end(self, epoch: int, log_end: int) -> EpochEnd | None:
        """
        The end of this epoch, or of the one before it that left records; `None` if the log knows of none.
        """
        if not self._epochs or not 0 <= epoch <= self._epochs[-1]:
            return None
        number = bisect_right(self._epochs, epoch)
        end = self._starts[number] if number < len(self._starts) else log_end
        return EpochEnd(self._epochs[number - 1] if number else epoch, end)

    def at(self, offset: int) -> int | None:
        """
        The epoch of an offset, if the log knows of one.
        """
        number = bisect_right(self._starts, offset)
        return self._epochs[number - 1] if number else None

    def encoded(self) -> bytes:
        rows = [f"{epoch} {start}\n" for epoch, start in zip(self._epochs, self._starts, strict=True)]
        return f"{_VERSION}\n{len(rows)}\n{''.join(rows)}".encode()

    def read(self, data: bytes) -> bool:
        version, count, *rows = [*data.decode("ascii", "replace").splitlines(), "", ""]
        fields = [row.split() for row in rows if row]
        whole = data.endswith(b"\n") and version == _VERSION and count == str(len(fields))
        if not whole or not all(len(row) == 2 and all(_NUMBER.fullmatch(field) for field in row) for row in fields):
            return False
        numbers = [int(field) for row in fields for field in row]
        self._epochs, self._starts = numbers[::2], numbers[1::2]
        return True
