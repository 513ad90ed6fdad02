"""
What was published to one partition and is not in its files yet.

An answer of the broker says that a message is in its memory, at the expected offset; a file says that it is durable.
Both speak of messages, by SeaweedMQ's offsets; clients wait for batches, by Kafka's.

The send window bounds how much is on its way: a batch that has no room waits where it is held, and is sent from there
when answers have arrived.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from twisted.internet.defer import Deferred, succeed

from kgateway.broker.seaweedmq.publishing.publish_stream import PublishStream
from kgateway.records.batch import NO_TIMESTAMP


class OffsetsShifted(Exception):
    """
    The broker has given a message another offset than it must have: another program publishes to the partition.
    """


class SentBatch(NamedTuple):
    """
    A published batch, or the part of it that was published last.
    """

    base_offset: int  # Kafka's, of the batch
    end: int
    last_message: int  # SeaweedMQ's, of its last message
    message_count: int
    time_ms: int  # when it was published
    max_timestamp: int  # of its records, as its header says


def _nobody(sent: SentBatch) -> None:
    pass


class InFlight:
    def __init__(self, offset: int, next_message: int, stored: Callable[[SentBatch], object] = _nobody) -> None:
        self._stored = stored  # called with each batch that is in files
        self.acked = self.flushed = offset  # Kafka's, before which all messages are in memory, or in files
        self.end = offset  # Kafka's, before which all was published
        self._own_end = offset  # Kafka's, after the last message of ours
        self.next_message = next_message  # SeaweedMQ's offset of the message that is published next
        self.unanswered_bytes = 0
        self._first_unanswered = next_message
        self._unanswered: deque[SentBatch] = deque()
        self._sizes: deque[int] = deque()  # of their messages
        self._unflushed: deque[SentBatch] = deque()

    def sent(
        self,
        base_offset: int,
        end: int,
        message_count: int,
        time_ms: int = 0,
        max_timestamp: int = NO_TIMESTAMP,
        size: int = 0,
    ) -> None:
        """
        Note that the messages of a batch were published.
        """
        self.next_message += message_count
        self.end = self._own_end = end
        self.unanswered_bytes += size
        self._unanswered.append(
            SentBatch(base_offset, end, self.next_message - 1, message_count, time_ms, max_timestamp)
        )
        self._sizes.append(size)

    def answered(self, message_count: int, last_message: int) -> bool:
        """
        Count answers of the broker. Returns whether the last message of a batch was among them.
        """
        self._first_unanswered += message_count
        if last_message != self._first_unanswered - 1:
            raise OffsetsShifted(
                f"a message has the offset {last_message}, but should have {self._first_unanswered - 1}"
            )
        before = self.acked
        while self._unanswered and self._unanswered[0].last_message <= last_message:
            sent = self._unanswered.popleft()
            self.acked = sent.end
            self.unanswered_bytes -= self._sizes.popleft()
            self._unflushed.append(sent)
        return self.acked > before

    def in_files(self, next_message: int) -> bool:
        """
        Note that all messages before this one are in files. Returns whether the last message of a batch was among them.
        """
        return self._until(lambda sent: sent.last_message < next_message)

    def in_files_to(self, offset: int) -> bool:
        """
        Note that all batches before this offset of Kafka's are in files. Returns whether one of them is new.
        """
        return self._until(lambda sent: sent.end <= offset)

    def _until(self, is_in_files: Callable[[SentBatch], bool]) -> bool:
        before = self.flushed
        while self._unflushed and is_in_files(self._unflushed[0]):
            sent = self._unflushed.popleft()
            self.flushed = sent.end
            self._stored(sent)
        return self.flushed > before

    def follow(self, others: SentBatch) -> None:
        """
        Note messages of other programs, which the broker has in memory after all that was answered.
        """
        self.next_message = self._first_unanswered = others.last_message + 1
        self.end = self.acked = others.end
        self._unflushed.append(others)

    def forget(self) -> None:
        """
        Forget what is not known to be in files: it is lost.
        """
        self._unflushed.clear()

    @property
    def is_answered(self) -> bool:
        return not self._unanswered

    @property
    def has_own(self) -> bool:
        """
        Whether any message of ours is not known to be in files.
        """
        return self._own_end > self.flushed

    @property
    def is_empty(self) -> bool:
        return not self._unanswered and not self._unflushed


class OutgoingBatch(NamedTuple):
    base_offset: int
    end: int
    messages: Sequence[bytes]
    time_ms: int  # when it was made
    max_timestamp: int  # of its records, as its header says


BatchesFrom = Callable[[int], Iterator[OutgoingBatch]]  # appended batches from an offset on


class SendWindow:
    """
    Sends by an open stream, beginning with what is held already.
    """

    def __init__(self, stream: PublishStream, batches_from: BatchesFrom, window: Callable[[], int]) -> None:
        self.stream = stream
        self.is_behind = True  # whether some of what is held was not sent yet
        self._batches_from = batches_from
        self._window = window  # how many bytes may wait for answers
        self._all_sent: Deferred[None] = succeed(None)

    def send(self, batch: OutgoingBatch, in_flight: InFlight) -> None:
        """
        Send a batch that was appended just now, unless earlier ones wait.
        """
        if not self.is_behind and self._has_room(in_flight):
            self._send(batch, in_flight)
        else:
            self.is_behind = True

    def send_waiting(self, in_flight: InFlight) -> None:
        """
        Send what is held and was not sent yet, as far as there is room.
        """
        if not self.is_behind:
            return
        batches_from = self._batches_from(in_flight.end)
        while self._has_room(in_flight):
            batch = next(batches_from, None)
            if batch is None:
                self.is_behind = False
                break
            self._send(batch, in_flight)
        if not (self.is_behind or self._all_sent.called):
            self._all_sent.callback(None)

    def all_sent(self) -> Deferred[None]:
        """
        Fires when nothing waits to be sent.
        """
        if self.is_behind and self._all_sent.called:
            self._all_sent = Deferred()
        return self._all_sent

    def _has_room(self, in_flight: InFlight) -> bool:
        return in_flight.unanswered_bytes < self._window()

    def _send(self, batch: OutgoingBatch, in_flight: InFlight) -> None:
        base_offset, end, messages, time_ms, max_timestamp = batch
        in_flight.sent(base_offset, end, len(messages), time_ms, max_timestamp, sum(map(len, messages)))
        self.stream.send(messages)
