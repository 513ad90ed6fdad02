"""
A producer that sends records at a steady rate, and notes when each is acknowledged.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import NamedTuple, Self

from confluent_kafka import KafkaError, Message, Producer

from tests.faults.background import Background
from tests.faults.ledger import PartitionName
from tests.faults.seaweedmq.gateway import Gateway
from tests.faults.seaweedmq.kafka_requests import all_values

RECORDS_PER_S = 200
_POLL_S = 0.01
_FLUSH_S = 60.0


class Acknowledged(NamedTuple):
    number: int  # of the record, which is its value
    sent: float
    acknowledged: float


class SteadyProducer(Background):
    """
    librdkafka's idempotent producer with its default timeouts and acks=all.
    """

    def __init__(self, bootstrap: str, place: PartitionName) -> None:
        super().__init__()
        self.acknowledged: list[Acknowledged] = []
        self.failed: list[str] = []
        self.sent = 0
        self._place = place
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True})

    @property
    def values(self) -> list[bytes]:
        """
        The values of all records that were sent.
        """
        return [b"%d" % number for number in range(self.sent)]

    @contextmanager
    def at_work(self) -> Iterator[Self]:
        """
        From its first acknowledged record on.
        """
        self.start()
        try:
            self.seconds_until_acknowledged(monotonic(), _FLUSH_S)
            yield self
        finally:
            self.stop()

    def check(self, leader: Gateway) -> None:
        """
        Stop. Each record must be there once and in order: the producer has sent it until it was acknowledged.
        """
        self.stop()
        assert not self.failed
        assert len(self.acknowledged) == self.sent
        assert all_values(leader, self._place) == self.values

    def seconds_until_acknowledged(self, since: float, patience_s: float) -> float:
        """
        Wait until a record is acknowledged that was sent after `since`. Returns the seconds from `since` until then.
        """
        while True:
            found = [each for each in list(self.acknowledged) if each.sent >= since]
            if found:
                return min(each.acknowledged for each in found) - since
            assert monotonic() < since + patience_s, f"nothing is acknowledged for {patience_s} s; {self.failed[-3:]}"
            sleep(_POLL_S)

    def _run(self) -> None:
        begin = monotonic()
        while not self._stopping.is_set():
            self._producer.poll(_POLL_S)
            while self.sent < (monotonic() - begin) * RECORDS_PER_S:
                self._send()
        self._producer.flush(_FLUSH_S)

    def _send(self) -> None:
        number, sent = self.sent, monotonic()

        def told(error: KafkaError | None, _: Message) -> None:
            if error:
                self.failed.append(f"{number}: {error}")
            else:
                self.acknowledged.append(Acknowledged(number, sent, monotonic()))

        topic, index = self._place
        self._producer.produce(topic, b"%d" % number, partition=index, on_delivery=told)
        self.sent += 1
