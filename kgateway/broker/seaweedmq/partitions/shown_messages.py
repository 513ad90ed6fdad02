"""
What a partition remembers of the messages of other programs that consumers have got from the memory of a broker: in
files they keep their offsets, and what the broker gets next follows the last one.
"""

from array import array
from collections import deque
from collections.abc import Sequence

from kgateway.broker.seaweedmq.files.offset_continuity import ShownEnd, ShownRun
from kgateway.broker.seaweedmq.files.partition_files import FilesEnd
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.tail.tail_position import TailPosition


class ShownMessages:
    def __init__(self, end: FilesEnd) -> None:
        self.end = ShownEnd(end.offset, end.ts_ns)  # after the last message of others
        self.has_lost = False  # whether some are lost, since files were taken over
        self._last = None if end.gap else _after(end)  # unless ours came after it
        self._runs = deque[ShownRun]()  # those that are in no file

    def position(self, next_message: int) -> TailPosition:
        """
        The position of the message with this number, and the time of the one before it, if that is known.
        """
        if self._last and self._last.next_message == next_message:
            return self._last
        return TailPosition(next_message, None)

    def show(self, base_offset: int, end_offset: int, found: Sequence[LoggedMessage], flushed: int) -> None:
        """
        Remember messages that are shown at these offsets, after all others; what is before `flushed` is in files.
        """
        runs, last = self._runs, found[-1]
        while runs and runs[0].base_offset + len(runs[0].times_ns) <= flushed:
            runs.popleft()
        runs.append(ShownRun(base_offset, array("q", [message.ts_ns for message in found])))
        self.end = ShownEnd(end_offset, last.ts_ns, runs)
        self._last = TailPosition(last.offset + 1, last.ts_ns)

    def lose(self) -> bool:
        """
        Note that consumers have got messages that a killed broker has lost. Returns whether that is news: it is not if
        it was known when the partition was opened.
        """
        if not self._runs:
            return False
        self.has_lost = True
        return True

    def take_over(self, end: FilesEnd) -> None:
        """
        Forget all messages: files that have this end were taken over.
        """
        self.has_lost = False
        self.end = ShownEnd(end.offset, end.ts_ns)
        self._runs.clear()
        self.follow(end)

    def follow(self, end: FilesEnd) -> None:
        """
        Note the last message in files, which is the last one of all.
        """
        self._last = _after(end)

    def moved(self) -> None:
        """
        SeaweedMQ has recreated the partition, and numbers messages anew.
        """
        self._last = None


def _after(end: FilesEnd) -> TailPosition:
    return TailPosition(end.next_message, end.ts_ns)
