"""
Producing one record a request: what a request costs the server, for next to nothing is in it.

Values of 100 bytes, one partition, acks of all, no linger; one client, and no request waits for another.
"""

from collections.abc import Sequence
from functools import partial

from bench.kafka.clients import all_taken, create_topic, random_values, send
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_least
from bench.produce import ONE_RECORD, REQUESTS, SMALL_BYTES, producer
from bench.work import cost

TOPIC = "one"
CPU_PER = 100_000  # requests


def _prepare(server: Server, plan: Plan) -> None:
    create_topic(server, TOPIC, partitions=1)


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    count, values = plan.part(REQUESTS), random_values(SMALL_BYTES)
    client = producer(server.bootstrap, TOPIC, **ONE_RECORD)
    with all_taken(server, TOPIC, count, partitions=1):
        took = cost(server.pid, partial(send, client, TOPIC, values, count, partitions=1))
    return [Measured(count / took.seconds, took.server_cpu * CPU_PER / count, took.client_cpu / took.seconds)]


WORKLOAD = Workload(
    "produce one record a request",
    [Row("produce, confluent-kafka, one record a request", "requests/s", at_least(2.5), f"{CPU_PER:,} requests")],
    _run,
    _prepare,
)
