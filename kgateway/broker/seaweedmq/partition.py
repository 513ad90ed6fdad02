"""
A partition whose log is one of SeaweedMQ's.

What is appended gets its offsets here, is held, and is published. It can be read once the broker has answered
for it; in a topic whose `seaweedmq.acks` is `flushed`, once it is in the files of the filer. It is held until it is in
files, whatever clients wait for, so that it can be published again when the broker is killed.
"""

from collections.abc import Callable, Iterator, Sequence

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.broker.awaited import Awaited
from kgateway.broker.seaweed.protos.filer_pb2 import Entry
from kgateway.broker.seaweedmq.filed import FiledPartition
from kgateway.broker.seaweedmq.flushes import AT_ONCE_S, SOON_S, Flushes
from kgateway.broker.seaweedmq.folders import Folder
from kgateway.broker.seaweedmq.history import End
from kgateway.broker.seaweedmq.in_flight import Shifted
from kgateway.broker.seaweedmq.lately import Lately
from kgateway.broker.seaweedmq.link import Link
from kgateway.broker.seaweedmq.opened import Opened
from kgateway.broker.seaweedmq.publisher import message
from kgateway.broker.seaweedmq.publishing import Publishing
from kgateway.broker.seaweedmq.sending import Outgoing
from kgateway.cluster.partition import Appended, EpochEnd, Origin
from kgateway.cluster.view import Topic
from kgateway.interfaces import IPartition
from kgateway.records.batch import Batch, placed, read_batch
from kgateway.wire.errors import ErrorCode, KafkaError


@implementer(IPartition)
class SeaweedMQPartition(FiledPartition):
    """
    A partition that this gateway alone appends to.
    """

    _log = Logger()

    def __init__(
        self,
        topic: Topic,
        index: int,
        now_ms: Callable[[], int],
        opened: Opened,
        link: Link,
        lately: Lately,
        held_bytes: Callable[[], int],
        window: Callable[[], int],
    ) -> None:
        super().__init__(topic, index, now_ms, opened, link, lately)
        self._held_bytes = held_bytes  # how much may wait to be in files
        self._epochs = opened.epochs
        self._opened_end = self.log_end
        self._stored = self.log_end  # before which all is in the broker's memory
        self._shown = self.log_start  # before which all could be read, whatever the topic waits for now
        self._unstored, self._unsafe = Awaited(), Awaited()
        self._publishing = Publishing(link, opened.end, self._held, window, self._look, self._shifted)
        self._flushes = Flushes(
            link.history, opened.start, link.clock, self._flushed, self._ended, self._is_in_files, self._patience_s
        )

    @property
    def high_watermark(self) -> int:
        return max(self._safe, self._shown) if self._waits_for_files else self._stored

    @property
    def _waits_for_files(self) -> bool:
        return self.topic.config.seaweedmq_acks == "flushed"

    @property
    def has_grown(self) -> bool:
        """
        Whether anything was appended since it was opened.
        """
        return self.log_end > self._opened_end

    @property
    def unsafe_count(self) -> int:
        """
        How many records are not known to be in files.
        """
        return self.log_end - self._safe

    def become(self, topic: Topic) -> None:
        """
        The topic has another config, or more partitions. What could be read still can.
        """
        before = self._shown = self.high_watermark
        super().become(topic)
        self._tell(before)

    def grown(self, entry: Entry) -> None:
        """
        A file of the partition has grown.
        """
        self._flushes.grown(entry)

    def look_again(self) -> None:
        """
        Files may have grown, and nobody has told.
        """
        self._flushes.look_again()

    async def pause(self) -> int:
        """
        Publish nothing for now; Kafka's offset at which the files end then.
        """
        return (await self._publishing.pause()).offset

    def move(self, folders: Sequence[Folder]) -> None:
        """
        Go on in the last of these folders: SeaweedMQ has made the partition anew.
        """
        self._link.history.folders = list(folders)
        if self._ledger:
            self._ledger.moved()
        self._publishing.resume()

    async def save(self) -> None:
        """
        Keep what it knows and its files do not tell cheaply: who has written what.
        """
        await self._link.beside.keep_producers(self._producers, self._stored)

    def lose(self, why: KafkaError) -> None:
        super().lose(why)
        self._publishing.close()
        self._flushes.stop()
        if self._ledger:
            self._ledger.close()
        self._unstored.fail(why)
        self._unsafe.fail(why)
        self._lately.begin_at(self.log_end)

    def epoch_end(self, leader_epoch: int) -> EpochEnd | None:
        self._check_owned()
        return self._epochs.end(leader_epoch, self.log_end)

    def append(self, batch: Batch, origin: Origin, client_id: str | None = None) -> Appended:
        self._link.demand_ownership()  # else it is another one's to say what is repeated, and what was left out
        self._publishing.client_id = client_id
        return super().append(batch, origin)

    def _keep(self, batch: Batch) -> None:
        self._form.check(self.topic.config)
        if (waiting := self._lately.unsafe) > self._held_bytes():
            reason = f"{waiting} bytes of {self.topic.name}-{self.index} wait for SeaweedMQ; try again"
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, reason)
        base_offset = self.log_end
        data = b"".join(placed(batch, base_offset, self.leader_epoch))
        outgoing = self._outgoing(read_batch(data))
        self._lately.add(data, base_offset, outgoing.end)
        self.log_end = outgoing.end
        self._publishing.publish(outgoing)
        self._flushes.published()

    def _moved(self) -> None:
        """
        Nobody can read the batch yet.
        """

    def _when_stored(self, offset: int) -> Deferred[None] | None:
        return None if offset <= self._stored else self._unstored.wait(offset)

    def _when_safe(self, offset: int) -> Deferred[None] | None:
        return None if offset <= self.high_watermark else self._unsafe.wait(offset)

    def _outgoing(self, batch: Batch) -> Outgoing:
        header = batch.header
        encoded = self._form.encode(batch, header.base_offset, self.index)
        messages = [message(key, value) for key, value in encoded]
        return Outgoing(header.base_offset, header.last_offset + 1, messages, self._now_ms(), header.max_timestamp)

    def _held(self, offset: int) -> Iterator[Outgoing]:
        """
        What was appended from this offset on, which may be amid a batch.
        """
        for data in self._lately.each_from(offset):
            outgoing = self._outgoing(read_batch(data))
            there = max(offset - outgoing.base_offset, 0) if len(outgoing.messages) > 1 else 0
            yield outgoing._replace(messages=outgoing.messages[there:])

    def _look(self) -> None:
        """
        See how far the messages have come, and tell who waits for it.
        """
        before, in_flight = self.high_watermark, self._publishing.in_flight
        self._stored = max(self._stored, in_flight.acked)
        if in_flight.flushed > self._safe:
            self._safe = in_flight.flushed
            self._lately.safe_to(self._safe)
            if self._ledger:
                self._ledger.grown()
        self._unstored.reached(self._stored)
        self._tell(before)

    def _tell(self, before: int) -> None:
        """
        The high watermark may have moved.
        """
        self._unsafe.reached(self.high_watermark)
        if self.high_watermark > before:
            self._waiters.wake()

    def _flushed(self, next_message: int) -> None:
        """
        All messages before this one are in files.
        """
        in_flight = self._publishing.in_flight
        if in_flight.in_files(next_message):
            self._look()
        if in_flight.is_empty and next_message > in_flight.next_message:
            Deferred.fromCoroutine(self._follow()).addErrback(self._not_followed)

    def _ended(self, end: End) -> None:
        """
        The files end there. Kafka's offset says what of ours is in them, however a broker has counted.
        """
        in_flight = self._publishing.in_flight
        if in_flight.in_files_to(end.offset):
            self._look()
        if in_flight.is_empty and (end.offset > self.log_end or end.next_message > in_flight.next_message):
            Deferred.fromCoroutine(self._follow()).addErrback(self._not_followed)

    async def _follow(self) -> None:
        """
        Take over what others have published, as far as it is in files. Messages that have none of Kafka's offsets count
        for those that are published next, too.
        """
        await self._link.history.refresh()
        end = await self._link.history.end(self.log_start)
        if self.lost or end.offset < self.log_end or not self._publishing.follow(end) or end.offset == self.log_end:
            return
        self.log_end = self._stored = self._safe = end.offset
        self._lately.begin_at(end.offset)
        if self._ledger:
            self._ledger.catch_up()
        self._waiters.wake()

    def _not_followed(self, failure: Failure) -> None:
        reason = failure.getErrorMessage()
        self._log.info("{topic} is not followed just now: {reason}", topic=self.topic.name, reason=reason)

    def _is_in_files(self) -> bool:
        return self._safe >= self.log_end or self.lost is not None

    def _patience_s(self) -> float:
        return AT_ONCE_S if self._waits_for_files else SOON_S

    def _shifted(self, error: Shifted) -> None:
        """
        The offsets in the log are not those that were given out.
        """
        reason = f"{self.topic.name}-{self.index}: {error}; it is opened anew"
        self._log.error("{reason}", reason=reason)
        self.lose(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, reason))
