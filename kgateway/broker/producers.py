"""
What a partition remembers of idempotent producers (KIP-98), as a pure table.

Of each producer id it keeps the epoch and the last five batches. A batch that is one of them is answered with the
offset it got then; one that follows the last is new; any other is out of order. A producer that is not known may begin
with any sequence number: what it sent before may have been deleted, or it was silent for so long that it was forgotten.

Where the first batch of a transaction was sent back, to come again, those that were sent behind it do not overtake it,
though nothing else is known of the producer (KIP-890).

Batches without a sequence number are those that coordinators write. Of them the epoch counts: the producer's next
batch in it begins at 0. A marker ends the producer's transaction, and tells of its coordinator.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from kgateway.broker.partition_transactions import PartitionTransactions
from kgateway.records.batch import TRANSACTIONAL_BIT, Batch, BatchHeader
from kgateway.records.control import Marker, read_marker
from kgateway.wire.errors import ErrorCode, KafkaError

WINDOW = 5  # as many batches as a producer may have in flight
NO_EPOCH = -1
SEQUENCE_MAX = (1 << 31) - 1
EXPIRY_MS = 86_400_000  # as producer.id.expiration.ms
EXPIRED_AT_ONCE = 10
SENT_BACK = 1_000


class Written(NamedTuple):
    """
    A batch of a producer that has its place.
    """

    base_sequence: int
    last_sequence: int
    base_offset: int
    timestamp_ms: int


@dataclass(slots=True)
class Producer:
    """
    One producer id.
    """

    epoch: int
    seen_ms: int
    coordinator_epoch: int = NO_EPOCH  # of the last marker
    window: deque[Written] = field(default_factory=lambda: deque(maxlen=WINDOW))
    unnumbered_offset: int | None = None  # of its last batch that has records, and no sequence number

    @property
    def last_offset(self) -> int | None:
        """
        Of its last batch; `None` where nothing but markers is known of it.
        """
        if not self.window:
            return self.unnumbered_offset
        last = self.window[-1]
        return last.base_offset + (last.last_sequence - last.base_sequence) % (SEQUENCE_MAX + 1)


@dataclass(slots=True)
class ProducerTable:
    """
    The producers of one partition.
    """

    expiry_ms: int = EXPIRY_MS
    producers: OrderedDict[int, Producer] = field(default_factory=OrderedDict)  # that were seen longest ago come first
    transactions: PartitionTransactions = field(default_factory=PartitionTransactions)
    # Sequence numbers, by producer id and epoch.
    _sent_back: dict[tuple[int, int], int] = field(default_factory=dict, compare=False)

    def has_open(self, producer_id: int, epoch: int) -> bool:
        """
        Whether this producer has a transaction open here in this epoch.
        """
        return producer_id in self.transactions.open and self.producers[producer_id].epoch == epoch

    def repeated(self, header: BatchHeader) -> Written | None:
        """
        The batch this one repeats, if it is still remembered; `None` where it is new. What is neither is refused.
        """
        producer = self.producers.get(header.producer_id)
        if producer is not None and producer.epoch == header.producer_epoch:
            base, last = header.base_sequence, last_sequence(header)
            for written in producer.window:
                if written.base_sequence == base and written.last_sequence == last:
                    return written
        self._check(header, producer)
        return None

    def send_back(self, header: BatchHeader) -> None:
        """
        This batch is refused for now, and comes again.
        """
        who, sequence = (header.producer_id, header.producer_epoch), header.base_sequence
        self._sent_back[who] = min(sequence, self._sent_back.get(who, sequence))
        if len(self._sent_back) > SENT_BACK:
            del self._sent_back[next(iter(self._sent_back))]

    def _check(self, header: BatchHeader, producer: Producer | None) -> None:
        epoch = producer.epoch if producer else NO_EPOCH
        if header.producer_epoch < epoch:
            _refuse(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} has epoch {epoch} here, and sends {header.producer_epoch}",
            )
        if header.producer_id in self.transactions.open and not header.is_transactional:
            reason = f"producer {header.producer_id} sends a batch of no transaction, and has one open here"
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, reason)
        # A client may send an id without an epoch; Kafka, too, has no order for its batches then.
        if header.base_sequence < 0 or (producer and epoch == NO_EPOCH):
            return
        if producer:
            expected = _next_sequence(producer, header.producer_epoch)
        else:
            sent_back = self._sent_back.get((header.producer_id, header.producer_epoch), header.base_sequence)
            expected = min(sent_back, header.base_sequence)
        if header.base_sequence != expected:
            _refuse(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} sends sequence {header.base_sequence}, and {expected} is next",
            )

    def check_marker(self, header: BatchHeader, marker: Marker) -> None:
        """
        Refuse what ends a transaction by the word of one who is its coordinator no more.
        """
        producer = self.producers.get(header.producer_id)
        if producer and marker.coordinator_epoch < producer.coordinator_epoch:
            last = f"the last word on producer {header.producer_id} was of epoch {producer.coordinator_epoch}"
            _refuse(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"{last}, and this coordinator has epoch {marker.coordinator_epoch}",
            )

    def note(self, batch: Batch, base_offset: int, now_ms: int) -> None:
        """
        Remember a batch of a producer that got its place, and what it is to a transaction; Malformed where it is a
        marker that nobody can read.
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
        elif not header.records_count:  # as compaction leaves it, once nothing of the transaction is there
            self.transactions.end(header.producer_id, base_offset, commits=True)

    def remember(self, header: BatchHeader, base_offset: int, now_ms: int) -> None:
        """
        Note a batch that got its place.
        """
        producer = self.producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            coordinator_epoch = producer.coordinator_epoch if producer else NO_EPOCH
            producer = self.producers[header.producer_id] = Producer(header.producer_epoch, now_ms, coordinator_epoch)
        producer.seen_ms = now_ms
        if self._sent_back:
            self._sent_back.pop((header.producer_id, header.producer_epoch), None)
        self.producers.move_to_end(header.producer_id)
        if header.base_sequence >= 0:
            written = Written(header.base_sequence, last_sequence(header), base_offset, header.max_timestamp)
            producer.window.append(written)
        elif not header.is_control:
            producer.unnumbered_offset = base_offset + header.last_offset_delta

    def expire(self, now_ms: int, producer_id: int) -> None:
        """
        Forget this producer if it was silent for too long, and a few of those that were silent the longest.

        A batch brings one producer at most, so a few at each batch are enough, and no batch waits for thousands. One
        whose transaction is open stays.
        """
        before_ms, is_open = now_ms - self.expiry_ms, self.transactions.open
        asked = self.producers.get(producer_id)
        if asked and asked.seen_ms <= before_ms and producer_id not in is_open:
            del self.producers[producer_id]
        oldest = next(iter(self.producers.values()), None)
        if oldest is None or oldest.seen_ms > before_ms:
            return  # nearly always
        for one, producer in [*islice(self.producers.items(), EXPIRED_AT_ONCE + len(is_open))]:
            if producer.seen_ms <= before_ms and one not in is_open:
                del self.producers[one]


def last_sequence(header: BatchHeader) -> int:
    """
    The sequence number of the last record; after the largest comes 0.
    """
    return (header.base_sequence + header.last_offset_delta) % (SEQUENCE_MAX + 1)


def _next_sequence(producer: Producer, epoch: int) -> int:
    """
    What must come next: 0 in a new epoch.
    """
    if epoch != producer.epoch or not producer.window:
        return 0
    return (producer.window[-1].last_sequence + 1) % (SEQUENCE_MAX + 1)


def _refuse(code: ErrorCode, reason: str) -> None:
    raise KafkaError(code, reason)
