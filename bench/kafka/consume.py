"""
Consuming from the beginning on, with what is read in the page cache and not.

Before a cold read the files of the server's data folder are written back and dropped from the page cache; how much of
what was read then came from disk is counted by the system, and told. That is this system's cache: a disk behind a
virtual machine may have another one. The warm read is the same again, at once.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bench.fetch import count_bytes
from bench.kafka.clients import create_topic, fill, read, reader, records_in
from bench.kafka.java import output
from bench.kafka.page_cache import drop, read_from_disk
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_least
from bench.produce import PARTITIONS, RECORD_BYTES
from bench.work import Cost, cost

TOPIC = "consume"
_RECORDS = 1_000_000
_JAVA = Path(__file__).with_name("Consume.java")
_TOLD = re.compile(r"(\d+) records, (\d+) bytes, (\d+) ns")


def _prepare(server: Server, plan: Plan) -> None:
    create_topic(server, TOPIC)
    fill(server, TOPIC, plan.part(_RECORDS))


def _with_librdkafka(server: Server, count: int) -> tuple[float, Cost]:
    with reader(server, TOPIC) as client:
        took = cost(server.pid, partial(read, client, TOPIC, count))
    return took.seconds, took


def _with_one_that_counts(server: Server, count: int) -> tuple[float, Cost]:
    counted = 0

    def consume() -> None:
        nonlocal counted
        counted = count_bytes(server.port, TOPIC)

    took = cost(server.pid, consume)
    assert counted == records_in(server, TOPIC), f"{server.name} has handed out {counted} records"
    return took.seconds, took


def _with_java(server: Server, count: int) -> tuple[float, Cost]:
    """
    The seconds without the start of the program, which compiles itself; the client's processor time is with it.
    """
    told = ""

    def consume() -> None:
        nonlocal told
        told = output(str(_JAVA), server.bootstrap, TOPIC, str(PARTITIONS), str(count))

    took = cost(server.pid, consume)
    [(_, _, nanoseconds)] = _TOLD.findall(told)
    return int(nanoseconds) / 1e9, took


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    return [
        measured
        for consume in (_with_librdkafka, _with_java, _with_one_that_counts)
        for measured in _cold_and_warm(server, plan.part(_RECORDS), consume)
    ]


def _cold_and_warm(
    server: Server, count: int, consume: Callable[[Server, int], tuple[float, Cost]]
) -> Sequence[Measured]:
    megabytes = count * RECORD_BYTES / 1e6
    found = []
    drop(server.data)
    for _ in ("cold", "warm"):
        before = read_from_disk(server.pid)
        seconds, took = consume(server, count)
        from_disk = (read_from_disk(server.pid) - before) / (count * RECORD_BYTES)
        cpu_each, busy = took.server_cpu * 1_000 / megabytes, took.client_cpu / took.seconds
        found.append(Measured(megabytes / seconds, cpu_each, busy, from_disk))
    return found


WORKLOAD = Workload(
    "consume",
    [
        Row(f"consume, {client}, {state}", "MB/s", at_least(1.0), "GB", "{:.0%} from disk")
        for client in ("confluent-kafka", "Java's consumer", "a client that counts")
        for state in ("cold", "warm")
    ],
    _run,
    _prepare,
)
