"""
What a partition remembers of idempotent producers (KIP-98), as a pure table.

For each producer id it has the epoch and the last five batches. A batch that repeats one of them is answered with the
offset it got then; one that follows the last is new; any other is out of order. An unknown producer may begin with any
sequence number: its earlier batches may have been deleted, or it was silent for so long that it was forgotten.

If the first batch of a transaction was refused for now, later ones of the producer are refused until it comes again
(KIP-890).

Coordinators write batches without sequence numbers. Their epoch is remembered: the producer's next batch in
that epoch has sequence number 0. A marker ends the producer's transaction, and has the epoch of its coordinator.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from kgateway.broker.partition.transactions import PartitionTransactions
from kgateway.records.batch import TRANSACTIONAL_BIT, Batch, BatchHeader
from kgateway.records.control import Marker, read_marker
from kgateway.wire.errors import ErrorCode, KafkaError

WINDOW = 5  # as many batches as a producer may have in flight
NO_EPOCH = -1
SEQUENCE_MAX = (1 << 31) - 1
EXPIRY_MS = 86_400_000  # as producer.id.expiration.ms
EXPIRED_AT_ONCE = 10
EXPECTED_MAX = 1_000


class WrittenBatch(NamedTuple):
    """
    A batch of a producer that is in the log.
    """

    base_sequence: int
    last_sequence: int
    base_offset: int
    timestamp_ms: int


@dataclass(slots=True)
class Producer:
    epoch: int
    seen_ms: int
    coordinator_epoch: int = NO_EPOCH  # of the last marker
    window: deque[WrittenBatch] = field(default_factory=lambda: deque(maxlen=WINDOW))
    unnumbered_offset: int | None = None  # of its last batch that has records but no sequence number

    @property
    def last_offset(self) -> int | None:
        """
        The offset of its last batch; `None` if only markers are known of it.
        """
        if not self.window:
            return self.unnumbered_offset
        last = self.window[-1]
        return last.base_offset + (last.last_sequence - last.base_sequence) % (SEQUENCE_MAX + 1)


@dataclass(slots=True)
class ProducerTable:
    expiry_ms: int = EXPIRY_MS
    producers: OrderedDict[int, Producer] = field(default_factory=OrderedDict)  # the one seen longest ago is first
    transactions: PartitionTransactions = field(default_factory=PartitionTransactions)
    # Sequence numbers of batches that were refused for now, by producer id and epoch.
    _expected: dict[tuple[int, int], int] = field(default_factory=dict, compare=False)

    def has_open(self, producer_id: int, epoch: int) -> bool:
        """
        Whether this producer has a transaction open here in this epoch.
        """
        return producer_id in self.transactions.open and self.producers[producer_id].epoch == epoch

    def check_sequence(self, header: BatchHeader) -> WrittenBatch | None:
        """
        The batch that this one repeats, if it is still remembered; `None` if it is new. A batch that is neither is
        refused.
        """
        producer = self.producers.get(header.producer_id)
        if producer is not None and producer.epoch == header.producer_epoch:
            base, last = header.base_sequence, last_sequence(header)
            for written in producer.window:
                if written.base_sequence == base and written.last_sequence == last:
                    return written
        self._check(header, producer)
        return None

    def expect_again(self, header: BatchHeader) -> None:
        """
        This batch is refused for now, and will come again: expect it before any later one of its producer.
        """
        id_and_epoch, sequence = (header.producer_id, header.producer_epoch), header.base_sequence
        self._expected[id_and_epoch] = min(sequence, self._expected.get(id_and_epoch, sequence))
        if len(self._expected) > EXPECTED_MAX:
            del self._expected[next(iter(self._expected))]

    def _check(self, header: BatchHeader, producer: Producer | None) -> None:
        epoch = producer.epoch if producer else NO_EPOCH
        if header.producer_epoch < epoch:
            _refuse(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} has epoch {epoch} here, but sent {header.producer_epoch}",
            )
        if header.producer_id in self.transactions.open and not header.is_transactional:
            reason = f"producer {header.producer_id} sent a batch outside of a transaction, but has one open here"
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, reason)
        # A client may send an id without an epoch; Kafka, too, has no order for its batches then.
        if header.base_sequence < 0 or (producer and epoch == NO_EPOCH):
            return
        if producer:
            expected = _next_sequence(producer, header.producer_epoch)
        else:
            refused = self._expected.get((header.producer_id, header.producer_epoch), header.base_sequence)
            expected = min(refused, header.base_sequence)
        if header.base_sequence != expected:
            _refuse(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} sent sequence {header.base_sequence}, but {expected} is expected",
            )

    def check_marker(self, header: BatchHeader, marker: Marker) -> None:
        """
        Refuse a marker of a coordinator that was fenced.
        """
        producer = self.producers.get(header.producer_id)
        if producer and marker.coordinator_epoch < producer.coordinator_epoch:
            last = f"the last marker of producer {header.producer_id} came from coordinator epoch"
            _refuse(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"{last} {producer.coordinator_epoch}, but this coordinator has epoch {marker.coordinator_epoch}",
            )

    def update(self, batch: Batch, base_offset: int, now_ms: int) -> None:
        """
        Add a batch that is in the log, and what it means for a transaction. Raises Malformed if it is a marker that
        cannot be read.
        """
        header = batch.header
        self.remember(header, base_offset, now_ms)
        if not header.attributes & TRANSACTIONAL_BIT:
            return
        if not header.is_control:
            self.transactions.begin(header.producer_id, base_offset)
        elif marker := read_marker(batch):
            producer = self.producers[header.producer_id]
            producer.coordinator_epoch = max(marker.coordinator_epoch, producer.coordinator_epoch)
            self.transactions.end(header.producer_id, base_offset, commits=marker.commits)
        elif not header.records_count:  # as compaction leaves it once the transaction has no records
            self.transactions.end(header.producer_id, base_offset, commits=True)

    def remember(self, header: BatchHeader, base_offset: int, now_ms: int) -> None:
        producer = self.producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            coordinator_epoch = producer.coordinator_epoch if producer else NO_EPOCH
            producer = self.producers[header.producer_id] = Producer(header.producer_epoch, now_ms, coordinator_epoch)
        producer.seen_ms = now_ms
        if self._expected:
            self._expected.pop((header.producer_id, header.producer_epoch), None)
        self.producers.move_to_end(header.producer_id)
        if header.base_sequence >= 0:
            written = WrittenBatch(header.base_sequence, last_sequence(header), base_offset, header.max_timestamp)
            producer.window.append(written)
        elif not header.is_control:
            producer.unnumbered_offset = base_offset + header.last_offset_delta

    def expire(self, now_ms: int, producer_id: int) -> None:
        """
        Forget this producer if it was silent for too long, and a few of those that were silent longest.

        A batch brings one producer at most, so a few at each batch are enough, and no batch waits for thousands. A
        producer with an open transaction is kept.
        """
        before_ms, is_open = now_ms - self.expiry_ms, self.transactions.open
        this = self.producers.get(producer_id)
        if this and this.seen_ms <= before_ms and producer_id not in is_open:
            del self.producers[producer_id]
        oldest = next(iter(self.producers.values()), None)
        if oldest is None or oldest.seen_ms > before_ms:
            return  # nearly always
        for old_id, producer in [*islice(self.producers.items(), EXPIRED_AT_ONCE + len(is_open))]:
            if producer.seen_ms <= before_ms and old_id not in is_open:
                del self.producers[old_id]


def last_sequence(header: BatchHeader) -> int:
    """
    The sequence number of the last record; after the largest comes 0.
    """
    return (header.base_sequence + header.last_offset_delta) % (SEQUENCE_MAX + 1)


def _next_sequence(producer: Producer, epoch: int) -> int:
    if epoch != producer.epoch or not producer.window:
        return 0
    return (producer.window[-1].last_sequence + 1) % (SEQUENCE_MAX + 1)


def _refuse(code: ErrorCode, reason: str) -> None:
    raise KafkaError(code, reason)
