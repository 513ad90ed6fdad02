"""
Producing large batches, as fast as one client of librdkafka does.

Values of 1,000 random bytes in four partitions, acks of all; batches of up to 1 MB, filled for 5 ms.
"""

from collections.abc import Sequence
from functools import partial

from bench.kafka.clients import all_taken, create_topic, random_values, send
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_least
from bench.produce import LARGE, RECORD_BYTES, producer
from bench.work import cost

TOPIC = "batches"
_RECORDS = 500_000


def _prepare(server: Server, plan: Plan) -> None:
    create_topic(server, TOPIC)


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    count, values = plan.part(_RECORDS), random_values(RECORD_BYTES)
    client = producer(server.bootstrap, TOPIC, **LARGE)
    with all_taken(server, TOPIC, count):
        took = cost(server.pid, partial(send, client, TOPIC, values, count))
    megabytes = count * RECORD_BYTES / 1e6
    return [Measured(megabytes / took.seconds, took.server_cpu * 1_000 / megabytes, took.client_cpu / took.seconds)]


WORKLOAD = Workload(
    "produce in batches of 1 MB",
    [Row("produce, confluent-kafka, batches of 1 MB", "MB/s", at_least(1.5), "GB")],
    _run,
    _prepare,
)
