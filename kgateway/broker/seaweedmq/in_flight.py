"""
What was published to one partition and is not in its files yet.

An answer of the broker says that a message is in its memory, where it was told to put it; a file says that it lasts.
Both speak of messages, by SeaweedMQ's offsets; clients wait for batches, by Kafka's.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from kgateway.records.batch import NO_TIMESTAMP


class Shifted(Exception):
    """
    The broker has given a message another offset than it must have: somebody else publishes to the partition.
    """


class Sent(NamedTuple):
    """
    A batch, or what of it was published at last.
    """

    base_offset: int  # Kafka's, of the batch
    end: int
    last_message: int  # SeaweedMQ's, of its last message
    messages: int
    time_ms: int  # when that was
    max_timestamp: int  # of its records, as its header says


def _nobody(sent: Sent) -> None:
    """
    Where nobody asks what is in files.
    """


class InFlight:
    """
    Batches in the order in which they were published.
    """

    def __init__(self, offset: int, next_message: int, stored: Callable[[Sent], object] = _nobody) -> None:
        self._stored = stored  # told of each batch when it is in files
        self.acked = self.flushed = offset  # Kafka's, before which all messages are in memory, or in files
        self.end = offset  # Kafka's, before which all was published
        self.next_message = next_message  # SeaweedMQ's offset of the message that is published next
        self.unanswered_bytes = 0
        self._first_unanswered = next_message
        self._unanswered: deque[Sent] = deque()
        self._sizes: deque[int] = deque()  # of their messages
        self._unflushed: deque[Sent] = deque()

    def sent(
        self,
        base_offset: int,
        end: int,
        messages: int,
        time_ms: int = 0,
        max_timestamp: int = NO_TIMESTAMP,
        size: int = 0,
    ) -> None:
        """
        The messages of a batch were published.
        """
        self.next_message += messages
        self.end = end
        self.unanswered_bytes += size
        self._unanswered.append(Sent(base_offset, end, self.next_message - 1, messages, time_ms, max_timestamp))
        self._sizes.append(size)

    def answered(self, messages: int, last_message: int) -> bool:
        """
        The broker has answered so many more messages; whether that is the last of a batch.
        """
        self._first_unanswered += messages
        if last_message != self._first_unanswered - 1:
            raise Shifted(f"a message has the offset {last_message}, and should have {self._first_unanswered - 1}")
        before = self.acked
        while self._unanswered and self._unanswered[0].last_message <= last_message:
            sent = self._unanswered.popleft()
            self.acked = sent.end
            self.unanswered_bytes -= self._sizes.popleft()
            self._unflushed.append(sent)
        return self.acked > before

    def in_files(self, next_message: int) -> bool:
        """
        All messages before this one are in files; whether that is the last of a batch.
        """
        return self._until(lambda sent: sent.last_message < next_message)

    def in_files_to(self, offset: int) -> bool:
        """
        All batches before this offset of Kafka's are in files; whether one of them was not known to be.
        """
        return self._until(lambda sent: sent.end <= offset)

    def _until(self, is_in_files: Callable[[Sent], bool]) -> bool:
        before = self.flushed
        while self._unflushed and is_in_files(self._unflushed[0]):
            sent = self._unflushed.popleft()
            self.flushed = sent.end
            self._stored(sent)
        return self.flushed > before

    @property
    def is_empty(self) -> bool:
        """
        Whether all that was published is in files.
        """
        return not self._unanswered and not self._unflushed
