"""
How long the record of a small producer takes to be acknowledged while a large one writes at full speed.

The large one is a process of its own and writes to a topic of its own. Full speed is the server's: where it is higher,
the small producer shares the machine with more. How much was written meanwhile stands in a row of its own.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic

from bench.kafka.clients import create_topic, delete_topic, random_values, records_in
from bench.kafka.latency import SMALL, Acks, in_ms
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_most
from bench.produce import RECORD_BYTES, SMALL_BYTES, producer

TOPIC = "small"
_LARGE_TOPIC = "large"
_SECONDS = 10
_UNCOUNTED_S = 1


@contextmanager
def _flood(server: Server) -> Iterator[None]:
    """
    Keep a producer writing at full speed inside the `with` block; its topic is deleted afterwards.
    """
    create_topic(server, _LARGE_TOPIC)
    command = [sys.executable, "-m", "bench.kafka.flood", server.bootstrap, _LARGE_TOPIC]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline(), "the large producer did not begin"
            yield
            assert process.poll() is None, "the large producer did not go on"
        finally:
            process.kill()
    delete_topic(server, _LARGE_TOPIC)


def _for_seconds(acks: Acks, seconds: float) -> list[float]:
    values = random_values(SMALL_BYTES)
    took: list[float] = []
    until = monotonic() + seconds
    while monotonic() < until:
        took.append(acks.seconds(values[len(took) % len(values)]))
    return took


def _prepare(server: Server, plan: Plan) -> None:
    create_topic(server, TOPIC, partitions=1)


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    acks = Acks(producer(server.bootstrap, TOPIC, **SMALL), TOPIC)
    with _flood(server):
        _for_seconds(acks, _UNCOUNTED_S)
        before, began = records_in(server, _LARGE_TOPIC), monotonic()
        took = _for_seconds(acks, _SECONDS * plan.share)
        written = records_in(server, _LARGE_TOPIC) - before
        mb_per_s = written * RECORD_BYTES / 1e6 / (monotonic() - began)
    half, most = in_ms(took)
    return [half, Measured(most.value, remark=len(took)), Measured(mb_per_s)]


WORKLOAD = Workload(
    "latency beside a large producer",
    [
        Row("one record until its ack, beside a large producer, p50", "ms"),
        Row("the same, p99", "ms", at_most(1.0), remark="{:,.0f} records"),
        Row("what the large producer writes meanwhile", "MB/s"),
    ],
    _run,
    _prepare,
)
