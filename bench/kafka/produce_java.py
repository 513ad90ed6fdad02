"""
Producing with Kafka's own program for it, kafka-producer-perf-test: Java's producer, its default batches of 16 KB.

What the program reports is what counts: its own start is not in it, its warming up is, against both servers.
"""

import re
from collections.abc import Sequence

from bench.kafka.clients import all_taken, create_topic
from bench.kafka.java import output
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_least
from bench.produce import RECORD_BYTES
from bench.work import cost

TOPIC = "java"
_RECORDS = 500_000
_SUMMARY = re.compile(r"^(\d+) records sent, ([0-9.]+) records/sec .* 99\.9th\.$", re.MULTILINE)


def rate(told: str, count: int) -> float:
    """
    The records a second of the last line, which must be about so many records.
    """
    [(sent, records_per_s)] = [match for match in _SUMMARY.findall(told) if int(match[0]) == count]
    assert int(sent) == count
    return float(records_per_s)


def _prepare(server: Server, plan: Plan) -> None:
    create_topic(server, TOPIC)


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    count, told = plan.part(_RECORDS), ""

    def produce() -> None:
        nonlocal told
        told = output(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--bootstrap-server", server.bootstrap, "--topic", TOPIC, "--num-records", str(count)),
            *("--record-size", str(RECORD_BYTES), "--throughput", "-1", "--command-property", "acks=all"),
        )

    with all_taken(server, TOPIC, count):
        took = cost(server.pid, produce)
    megabytes = count * RECORD_BYTES / 1e6
    mb_per_s = rate(told, count) * RECORD_BYTES / 1e6
    return [Measured(mb_per_s, took.server_cpu * 1_000 / megabytes, took.client_cpu / took.seconds)]


WORKLOAD = Workload(
    "produce with Java",
    [Row("produce, ProducerPerformance, batches of 16 KB", "MB/s", at_least(1.0), "GB")],
    _run,
    _prepare,
)
