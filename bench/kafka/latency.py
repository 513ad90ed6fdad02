"""
How long one record takes, one at a time: until it is acknowledged, and until a consumer in the same process has it; and
until it is acknowledged while that consumer waits for it.

No linger, acks of all, values of 100 bytes; the consumer's settings are those it comes with.
"""

from collections.abc import Sequence
from time import perf_counter, sleep
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from bench.fetch import consumer
from bench.kafka.clients import create_topic, random_values
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_most
from bench.produce import SMALL_BYTES, producer

TOPIC = "latency"
SMALL = {"linger.ms": 0}
_SAMPLES = 5_000
_UNCOUNTED = 500  # of a round
_PATIENCE_S = 60
_UNTIL_IT_WAITS_S = 0.001  # the consumer has sent its next fetch by then


class Acks:
    """
    Waits for the acknowledgement of one record after the other.
    """

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._acked_at = 0.0

    def seconds(self, value: bytes) -> float:
        """
        The time from the call of produce to the return of the call that waits for the acknowledgement.
        """
        self._acked_at = 0.0
        began = perf_counter()
        self._producer.produce(self._topic, value, partition=0, on_delivery=self._acked)
        while not self._acked_at:
            assert self._producer.poll(_PATIENCE_S), "a record was not acknowledged"
        return self._acked_at - began

    def _acked(self, error: Any, message: Any) -> None:
        if error:
            raise KafkaException(error)
        self._acked_at = perf_counter()


def _arrival_seconds(producer: Producer, consumer: Consumer, topic: str, value: bytes) -> float:
    began = perf_counter()
    producer.produce(topic, value, partition=0)
    message = consumer.poll(_PATIENCE_S)
    arrived = perf_counter()
    assert message is not None, "a record did not arrive"
    assert message.value() == value
    producer.poll(0)
    return arrived - began


def percentile(values: Sequence[float], percent: int) -> float:
    """
    The value that this percentage of the values does not exceed.
    """
    return sorted(values)[max(0, -(-len(values) * percent // 100) - 1)]


def in_ms(seconds: Sequence[float]) -> list[Measured]:
    """
    The median and the 99th percentile.
    """
    return [Measured(percentile(seconds, percent) * 1_000) for percent in (50, 99)]


def _prepare(server: Server, plan: Plan) -> None:
    create_topic(server, TOPIC, partitions=1)


def in_turn(server: Server, topic: str, values: Sequence[bytes]) -> Sequence[Measured]:
    """
    One record at a time: median and worst until the ack, median and worst until a consumer has it. The first ones are
    not counted.
    """
    uncounted = len(values) * _UNCOUNTED // (_SAMPLES + _UNCOUNTED)
    sender, receiver = producer(server.bootstrap, topic, **SMALL), consumer(server.bootstrap)
    acks = Acks(sender, topic)
    acked = [acks.seconds(value) for value in values]
    partition = TopicPartition(topic, 0)
    _, partition.offset = receiver.get_watermark_offsets(partition, _PATIENCE_S)
    receiver.assign([partition])
    arrived = [_arrival_seconds(sender, receiver, topic, value) for value in values]
    receiver.close()
    return in_ms(acked[uncounted:]) + in_ms(arrived[uncounted:])


def _while_one_waits(server: Server, topic: str, values: Sequence[bytes]) -> Sequence[Measured]:
    """
    Median and worst until the ack of a record for which a consumer waits in a long poll.
    """
    uncounted = len(values) * _UNCOUNTED // (_SAMPLES + _UNCOUNTED)
    acks, receiver = Acks(producer(server.bootstrap, topic, **SMALL), topic), consumer(server.bootstrap)
    partition = TopicPartition(topic, 0)
    _, partition.offset = receiver.get_watermark_offsets(partition, _PATIENCE_S)
    receiver.assign([partition])
    acked = []
    for value in values:
        acked.append(acks.seconds(value))
        message = receiver.poll(_PATIENCE_S)
        assert message is not None, "a record did not arrive"
        sleep(_UNTIL_IT_WAITS_S)
    receiver.close()
    return in_ms(acked[uncounted:])


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    values = random_values(SMALL_BYTES, plan.part(_SAMPLES + _UNCOUNTED))
    return [*in_turn(server, TOPIC, values), *_while_one_waits(server, TOPIC, values)]


WORKLOAD = Workload(
    "latency",
    [
        Row(f"{what}, {part}", "ms", at_most(goal))
        for what, goals in (
            ("one record until its ack", (1.0, 1.0)),
            ("one record until a consumer has it", (0.9, 0.3)),
            ("one record until its ack, while a consumer waits for it", (1.0, 0.5)),
        )
        for part, goal in zip(("p50", "p99"), goals, strict=True)
    ],
    _run,
    _prepare,
)
