"""
Under which leader epoch each part of a log was written, in Kafka's file `leader-epoch-checkpoint`:

    0               the version of the form
    2               how many lines follow
    0 0             an epoch, and the first offset written in it
    3 1000

An epoch in which nothing was written leaves no line. The batches say the same, so what the file lacks after a crash is
made up from them.
"""

import re
from bisect import bisect_right

from kgateway.cluster.partition import NO_EPOCH, EpochEnd

EPOCH_FILE = "leader-epoch-checkpoint"
_VERSION = "0"
_NUMBER = re.compile("[0-9]{1,19}")


class Epochs:
    """
    Epochs and where they begin; both grow.
    """

    __slots__ = ("_epochs", "_starts")

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []

    def assign(self, epoch: int, offset: int) -> bool:
        """
        From this offset on it is this epoch; whether that is new.
        """
        if self._epochs and epoch <= self._epochs[-1]:
            return False
        self.cut(offset)
        self._epochs.append(epoch)
        self._starts.append(offset)
        return True

    def fall_back(self, epoch: int) -> bool:
        """
        Forget the epochs that are larger, which there never were; whether there is one.
        """
        before = len(self._epochs)
        while self._epochs and self._epochs[-1] > epoch:
            self._starts.pop()
            self._epochs.pop()
        return len(self._epochs) < before

    @property
    def last(self) -> int:
        """
        The largest; -1 where there is none.
        """
        return self._epochs[-1] if self._epochs else NO_EPOCH

    def cut(self, offset: int) -> None:
        """
        Forget the epochs that begin with this offset or behind it.
        """
        while self._starts and self._starts[-1] >= offset:
            self._starts.pop()
            self._epochs.pop()

    def begin_at(self, offset: int) -> None:
        """
        All before the offset is gone: forget the epochs that end there, and let the one that has the offset begin
        with it.
        """
        gone = bisect_right(self._starts, offset) - 1
        if gone >= 0:
            del self._epochs[:gone], self._starts[:gone]
            self._starts[0] = offset

    def end(self, epoch: int, log_end: int) -> EpochEnd | None:
        """
        Where this epoch, or the one before it that left records, ends; `None` where the log knows of none.
        """
        if not self._epochs or not 0 <= epoch <= self._epochs[-1]:
            return None
        number = bisect_right(self._epochs, epoch)
        end = self._starts[number] if number < len(self._starts) else log_end
        return EpochEnd(self._epochs[number - 1] if number else epoch, end)

    def at(self, offset: int) -> int | None:
        """
        The epoch of an offset, where the log knows of one.
        """
        number = bisect_right(self._starts, offset)
        return self._epochs[number - 1] if number else None

    def written(self) -> bytes:
        """
        The file.
        """
        rows = [f"{epoch} {start}\n" for epoch, start in zip(self._epochs, self._starts, strict=True)]
        return f"{_VERSION}\n{len(rows)}\n{''.join(rows)}".encode()

    def read(self, data: bytes) -> bool:
        """
        Take over what the file has, if it is whole.
        """
        version, count, *rows = [*data.decode("ascii", "replace").splitlines(), "", ""]
        fields = [row.split() for row in rows if row]
        whole = data.endswith(b"\n") and version == _VERSION and count == str(len(fields))
        if not whole or not all(len(row) == 2 and all(_NUMBER.fullmatch(field) for field in row) for row in fields):
            return False
        numbers = [int(field) for row in fields for field in row]
        self._epochs, self._starts = numbers[::2], numbers[1::2]
        return True
