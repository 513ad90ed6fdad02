"""
Producers that survive crashes: real clients (librdkafka), each in a thread of its own.

They never give up: what cannot be sent is sent when the server is back, so in the end everything must be
acknowledged.

A client that is not idempotent sends one batch at a time to a partition. `max.in.flight=1` is not enough: when a
connection ends, librdkafka keeps requests that it has built and not sent, and sends them before the one that has to
be repeated.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from threading import Event, Thread
from time import monotonic

from confluent_kafka import KafkaError, Message, Producer

from tests.faults.ledger import LEAST_BYTES, Ledger, PartitionName, Sent, written

PATIENCE_S = 60
QUICK_TO_RETURN: Mapping[str, str | int | bool] = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "topic.metadata.refresh.interval.ms": 1_000,
    "log_level": 0,
}
_FOREVER: Mapping[str, str | int | bool] = {
    "message.timeout.ms": 0,
    "acks": "all",
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
}
_CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
_PAUSE_S = 0.015
_QUEUED_MAX = 500  # records; more would only lengthen the queue during a crash
_ONE_BATCH_MS = 20  # long enough to enqueue a few records, so that they become one batch
_NEW_LIFE = 0.002  # probability of a new client after a burst


class Writer:
    """
    A producer and its thread.
    """

    def __init__(
        self,
        number: int,
        bootstrap: str,
        ledger: Ledger,
        sizes: Mapping[PartitionName, int],
        random: Random,
        *,
        idempotent: bool,
    ) -> None:
        self.failure: BaseException | None = None
        self._number = number
        self._bootstrap = bootstrap
        self._ledger = ledger
        self._sizes = sizes  # approximate number of records
        self._places = list(sizes)
        self._random = random
        self._idempotent = idempotent
        self._waiting: Counter[PartitionName] = Counter()  # records without a response
        if not idempotent:
            ledger.repeating.add(number)
        self._life = -1
        self._pausing, self._paused, self._stopping = Event(), Event(), Event()
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def pause(self) -> None:
        """
        Send no new records.
        """
        self._pausing.set()

    def wait(self, deadline: float) -> bool:
        """
        Wait until everything sent is acknowledged; return whether it was.
        """
        return self._paused.wait(max(deadline - monotonic(), 0))

    def go_on(self) -> None:
        self._paused.clear()
        self._pausing.clear()

    def stop(self) -> None:
        """
        End without waiting for unsent records.
        """
        self._stopping.set()
        if self._thread.is_alive():  # or it was never started
            self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._live()
        except BaseException as failure:
            self.failure = failure

    def _live(self) -> None:
        self._life += 1
        producer = Producer(self._config())
        try:
            while not self._stopping.is_set():
                if self._pausing.is_set():
                    self._rest(producer)
                else:
                    self._burst(producer)
                    producer.poll(0)
                    self._pausing.wait(_PAUSE_S)
                    if self._random.random() < _NEW_LIFE:
                        break
            while len(producer) and not self._stopping.is_set():
                producer.poll(_PAUSE_S)
        finally:
            producer.purge()

    def _config(self) -> dict[str, str | int | bool]:
        random = self._random
        return {
            "bootstrap.servers": self._bootstrap,
            **QUICK_TO_RETURN,
            **_FOREVER,
            "enable.idempotence": self._idempotent,
            "max.in.flight": random.choice([1, 2, 5]) if self._idempotent else 1,
            "compression.type": random.choice(_CODECS),
            "linger.ms": random.choice([0, 1, 10]) if self._idempotent else _ONE_BATCH_MS,
            "batch.size": random.choice([1_000, 16_000, 1_000_000]) if self._idempotent else 1_000_000,
        }

    def _rest(self, producer: Producer) -> None:
        if not len(producer):
            self._paused.set()
        producer.poll(_PAUSE_S)

    def _burst(self, producer: Producer) -> None:
        """
        Send several records at once, mostly few.
        """
        random = self._random
        for place in random.sample(self._places, random.choice([1, 2, len(self._places)])):
            if self._waiting[place] and not self._idempotent:
                continue
            for _ in range(random.choice([1, 1, 2, 5])):
                if len(producer) < _QUEUED_MAX:
                    self._send(producer, place)

    def _send(self, producer: Producer, place: PartitionName) -> None:
        topic, partition = place
        sent = self._ledger.next(place, self._number, self._life)
        self._waiting[place] += 1
        value = written(place, sent, LEAST_BYTES + int(self._random.random() * 2 * self._sizes[place]))
        producer.produce(topic, value, partition=partition, on_delivery=partial(self._delivered, place, sent))

    def _delivered(self, place: PartitionName, sent: Sent, error: KafkaError | None, message: Message) -> None:
        self._waiting[place] -= 1
        offset = message.offset()
        is_known = offset is not None and offset >= 0
        # A batch whose response was lost is known to be stored once the next one is, and librdkafka reports no offset.
        if not error and (is_known or self._idempotent):
            self._ledger.promise(place, sent, offset if is_known else None)
        elif not self._stopping.is_set():
            self._ledger.refuse(place, sent, error or f"offset {offset}")


def all_acknowledged(writers: Sequence[Writer]) -> bool:
    """
    Pause all writers until each has every acknowledgement; return whether that happened.
    """
    deadline = monotonic() + PATIENCE_S
    for writer in writers:
        writer.pause()
    return all(writer.wait(deadline) for writer in writers)
