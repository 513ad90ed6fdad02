"""
What a partition remembers of idempotent producers (KIP-98), as a pure table.

Of each producer id it keeps the epoch and the last five batches. A batch that is one of them is answered with the
offset it got then; one that follows the last is new; any other is out of order. A producer that is not known may begin
with any sequence number: what it sent before may have been deleted.
"""

from collections import deque
from dataclasses import dataclass, field

from kgateway.records.batch import BatchHeader
from kgateway.wire.errors import ErrorCode, KafkaError

WINDOW = 5  # as many batches as a producer may have in flight
NO_EPOCH = -1
SEQUENCE_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Written:
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
    window: deque[Written] = field(default_factory=lambda: deque(maxlen=WINDOW))


@dataclass(slots=True)
class ProducerTable:
    """
    The producers of one partition.
    """

    producers: dict[int, Producer] = field(default_factory=dict)

    def duplicate(self, header: BatchHeader) -> Written | None:
        """
        The batch this one repeats, if it is still remembered.
        """
        producer = self.producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            return None
        wanted = header.base_sequence, last_sequence(header)
        return next((w for w in producer.window if (w.base_sequence, w.last_sequence) == wanted), None)

    def check(self, header: BatchHeader) -> None:
        """
        Refuse a batch that is neither new nor a duplicate.
        """
        producer = self.producers.get(header.producer_id)
        epoch = producer.epoch if producer else NO_EPOCH
        if header.producer_epoch < epoch:
            _refuse(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} has epoch {epoch} here, and sends {header.producer_epoch}",
            )
        if producer is None:
            return
        expected = _next_sequence(producer, header.producer_epoch)
        if header.base_sequence != expected:
            _refuse(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} sends sequence {header.base_sequence}, and {expected} is next",
            )

    def remember(self, header: BatchHeader, base_offset: int, now_ms: int) -> None:
        """
        Note a batch that got its place.
        """
        producer = self.producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self.producers[header.producer_id] = Producer(header.producer_epoch, now_ms)
        producer.seen_ms = now_ms
        written = Written(header.base_sequence, last_sequence(header), base_offset, header.max_timestamp)
        producer.window.append(written)

    def expire(self, before_ms: int) -> None:
        """
        Forget the producers that were last seen before.
        """
        self.producers = {key: known for key, known in self.producers.items() if known.seen_ms >= before_ms}


def last_sequence(header: BatchHeader) -> int:
    """
    The sequence number of the last record; after the largest comes 0.
    """
    return (header.base_sequence + header.last_offset_delta) % (SEQUENCE_MAX + 1)


def _next_sequence(producer: Producer, epoch: int) -> int:
    """
    What must come next: 0 in a new epoch.
    """
    if epoch != producer.epoch:
        return 0
    return (producer.window[-1].last_sequence + 1) % (SEQUENCE_MAX + 1)


def _refuse(code: ErrorCode, reason: str) -> None:
    raise KafkaError(code, reason)
