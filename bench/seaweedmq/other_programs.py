"""
How long a message of another program takes until a consumer of a gateway has it, while SeaweedMQ's broker has it in
memory.

The program publishes to the broker itself, one message at a time, after a pause of up to 50 ms. Each turn has a topic
of its own: once a program has ended its stream, the Go gateway may not find what the next one publishes.
"""

from collections.abc import Sequence
from random import Random
from time import perf_counter, sleep

from confluent_kafka import Consumer, TopicPartition

from bench.fetch import consumer
from bench.kafka.latency import in_ms
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_most
from bench.produce import SMALL_BYTES
from bench.seaweedmq.servers import cluster_of, values_of
from kgateway.broker.seaweedmq.formats.format import Message
from tests.broker.seaweedmq.foreign_topic import ForeignTopic

_SAMPLES, _UNCOUNTED = 300, 20
_PAUSE_S = 0.05
_PATIENCE_S = 60
_SEED = 1


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    random, topic, receiver = Random(_SEED), ForeignTopic(cluster_of(server)), consumer(server.bootstrap)
    values = values_of(SMALL_BYTES, plan.part(_SAMPLES) + _UNCOUNTED)
    partition = TopicPartition(topic.name, 0)
    arrived = []
    with topic.stream() as publish:
        partition.offset = publish(Message(b"k", b"first"))
        receiver.assign([partition])
        assert _next(receiver) == b"first"
        for value in values:
            sleep(random.uniform(0, _PAUSE_S))
            began = perf_counter()
            publish(Message(b"k", value))
            assert _next(receiver) == value
            arrived.append(perf_counter() - began)
    receiver.close()
    return in_ms(arrived[_UNCOUNTED:])


def _next(receiver: Consumer) -> bytes | None:
    message = receiver.poll(_PATIENCE_S)
    assert message is not None, "a record did not arrive"
    return message.value()


WORKLOAD = Workload(
    "records of other programs",
    [
        Row("a record of another program until a consumer has it, p50", "ms", at_most(1.0)),
        Row("a record of another program until a consumer has it, p99", "ms", at_most(1.0)),
    ],
    _run,
)
