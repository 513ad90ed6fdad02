"""
Producing one record a request, none of which waits for another: as `bench.kafka.produce_one`.
"""

from collections.abc import Sequence
from functools import partial

from bench.kafka.clients import create_topic, send
from bench.kafka.produce_one import CPU_PER
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_least
from bench.produce import ONE_RECORD, SMALL_BYTES, producer
from bench.seaweedmq.servers import FORMATS, all_taken, config_of, is_ours, topic_of, values_of
from bench.work import cost

_REQUESTS = 20_000


def _prepare(server: Server, plan: Plan) -> None:
    for message_format in FORMATS if is_ours(server) else ("plain",):
        create_topic(server, topic_of(server, message_format), 1, config_of(server, message_format))


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    if is_ours(server):
        return [_measured(server, topic_of(server, message_format), plan.part(_REQUESTS)) for message_format in FORMATS]
    return [_measured(server, topic_of(server, "plain"), plan.part(_REQUESTS))] * len(FORMATS)


def _measured(server: Server, topic: str, count: int) -> Measured:
    client, values = producer(server.bootstrap, topic, **ONE_RECORD), values_of(SMALL_BYTES)
    with all_taken(server, topic, count, partitions=1):
        took = cost(server.pid, partial(send, client, topic, values, count, partitions=1))
    return Measured(count / took.seconds, took.server_cpu * CPU_PER / count, took.client_cpu / took.seconds)


WORKLOAD = Workload(
    "one record a request",
    [
        Row(f"produce one record, format {message_format}", "requests/s", at_least(1.0), f"{CPU_PER:,} requests")
        for message_format in FORMATS
    ],
    _run,
    _prepare,
)
