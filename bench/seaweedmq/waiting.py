"""
What a hundred consumers cost that wait for records which do not come: the processor time of the gateway.

Each has a partition of its own of one topic, and the settings that confluent-kafka comes with.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from time import monotonic, sleep

from confluent_kafka import TopicPartition

from bench.fetch import consumer
from bench.kafka.clients import create_topic
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_most
from bench.seaweedmq.servers import broker_pid, topic_of
from tests.faults.process import cpu_seconds

_CONSUMERS = 100
_SETTLE_S = 3
_SECONDS = 10


def _prepare(server: Server, plan: Plan) -> None:
    create_topic(server, topic_of(server, "plain"), _CONSUMERS)


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    with ExitStack() as waiting:
        for index in range(_CONSUMERS):
            one = consumer(server.bootstrap)
            waiting.callback(one.close)
            one.assign([TopicPartition(topic_of(server, "plain"), index, 0)])
        sleep(_SETTLE_S)
        began, pids = monotonic(), (server.pid, broker_pid(server))
        before = [cpu_seconds(pid) for pid in pids]
        sleep(max(_SECONDS * plan.share, 1))
        passed = monotonic() - began
        gateway, broker = (cpu_seconds(pid) - used for pid, used in zip(pids, before, strict=True))
    return [Measured(max(gateway, 0.01) / passed, remark=broker / passed)]


WORKLOAD = Workload(
    "waiting consumers",
    [Row(f"{_CONSUMERS} waiting consumers", "cores", at_most(1.0), remark="{:.2f} cores of the broker's")],
    _run,
    _prepare,
)
