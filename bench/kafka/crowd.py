"""
Many clients in one process of several: what the processes of `bench.kafka.many` do.

A process says when its clients are connected, and begins when it is told. Producers choose the partition by the key and
count what was acknowledged in each. Consumers have one partition each and read until they have as many records as the
producers counted, one offset after the other.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from multiprocessing.connection import Connection
from threading import Thread
from time import monotonic, sleep
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from bench.fetch import consumer
from bench.kafka.clients import random_values
from bench.produce import FLUSH_S, RECORD_BYTES
from bench.work import own_cpu

PATIENCE_S = 120
_POLL_S = 1
_LOOK_EVERY_S = 0.05
_AT_ONCE = 10_000  # records
_CALLBACKS_EVERY = 100  # rounds of all producers


class _Senders:
    """
    Producers, and what they have acknowledged.
    """

    def __init__(self, bootstrap: str, topic: str, numbers: Sequence[int]) -> None:
        settings = {"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0, "on_delivery": self._count}
        self._topic = topic
        self._clients = [(number, Producer(settings)) for number in numbers]
        self._values = random_values(RECORD_BYTES)
        self.acked: Counter[int] = Counter()

    def _count(self, error: Any, message: Any) -> None:
        if error:
            raise KafkaException(error)
        self.acked[message.partition()] += 1

    def send(self, first: int, count: int) -> None:
        """
        Send this many records with each producer, and wait for their acknowledgements.
        """
        for at in range(first, first + count):
            for number, client in self._clients:
                value = self._values[(at + number) % len(self._values)]
                client.produce(self._topic, value, key=b"%d-%d" % (number, at))
            if at % _CALLBACKS_EVERY == 0:
                for _, client in self._clients:
                    client.poll(0)
        for _, client in self._clients:
            assert client.flush(FLUSH_S) == 0


def produce(pipe: Connection, bootstrap: str, topic: str, numbers: Sequence[int], count: int) -> None:
    """
    Each of these producers sends one record to get connected, and so many when it is told; what was acknowledged, and
    the processor time it took.
    """
    senders = _Senders(bootstrap, topic, numbers)
    senders.send(0, 1)
    pipe.send("ready")
    pipe.recv()
    used = own_cpu()
    senders.send(1, count)
    pipe.send((senders.acked, own_cpu() - used))


class Tally:
    """
    Counts the records of a partition, which must arrive in order and once.
    """

    def __init__(self) -> None:
        self.count = 0
        self.last_at = 0.0
        self.wrong = ""

    def take(self, offsets: Iterable[int], at: float) -> None:
        self.last_at = at
        for offset in offsets:
            if offset != self.count and not self.wrong:
                self.wrong = f"offset {offset} instead of {self.count}"
            self.count += 1

    def verdict(self, wanted: int) -> str:
        """
        What is wrong where so many should have come; empty where nothing is.
        """
        if not self.wrong and self.count != wanted:
            return f"{wanted} records acknowledged, {self.count} received"
        return self.wrong


class _Receiver:
    """
    The consumer of a partition, in a thread of its own.
    """

    def __init__(self, bootstrap: str, topic: str, index: int) -> None:
        self._partition = TopicPartition(topic, index, 0)
        self._consumer: Consumer = consumer(bootstrap)
        self._consumer.get_watermark_offsets(self._partition, PATIENCE_S)
        self._consumer.assign([self._partition])
        self.tally = Tally()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            first = self._consumer.poll(_POLL_S)
            if first is not None:
                messages: list[Any] = [first, *self._consumer.consume(_AT_ONCE, 0)]
                self.tally.take((message.offset() for message in messages if not message.error()), monotonic())


def consume(pipe: Connection, bootstrap: str, topic: str, indexes: Sequence[int]) -> None:
    """
    Read these partitions until everything that is said to be there has come; when the last record came, what went wrong
    where, and the processor time it took.
    """
    receivers = {index: _Receiver(bootstrap, topic, index) for index in indexes}
    pipe.send("ready")
    used = own_cpu()
    wanted: Counter[int] = pipe.recv()
    deadline = monotonic() + PATIENCE_S
    tallies = {index: receiver.tally for index, receiver in receivers.items()}
    while any(tally.count < wanted[index] for index, tally in tallies.items()) and monotonic() < deadline:
        sleep(_LOOK_EVERY_S)
    wrong = {index: what for index, tally in tallies.items() if (what := tally.verdict(wanted[index]))}
    pipe.send((max(tally.last_at for tally in tallies.values()), wrong, own_cpu() - used))
