"""
How long one record takes, one at a time, in the format that both gateways have: as `bench.kafka.latency`.
"""

from collections.abc import Sequence
from time import sleep

from bench.kafka.clients import create_topic
from bench.kafka.latency import in_turn
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_most
from bench.produce import SMALL_BYTES
from bench.seaweedmq.servers import config_of, topic_of, values_of

_SETTLE_S = 2  # the Go gateway tells for a moment of an end that was before
_SAMPLES = 1_100


def _prepare(server: Server, plan: Plan) -> None:
    create_topic(server, topic_of(server, "plain"), 1, config_of(server, "plain"))


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    sleep(_SETTLE_S)
    return in_turn(server, topic_of(server, "plain"), values_of(SMALL_BYTES, plan.part(_SAMPLES)))


WORKLOAD = Workload(
    "latency",
    [
        Row("one record until its ack, p50", "ms", at_most(1.2)),
        Row("one record until its ack, p99", "ms"),
        Row("one record until a consumer has it, p50", "ms", at_most(0.5)),
        Row("one record until a consumer has it, p99", "ms"),
    ],
    _run,
    _prepare,
)
