"""
Producing in transactions: how many records a second, with few and with many of them in each; and how long it takes to
begin, produce one record and commit.

Values of 1,000 random bytes in four partitions, all of which every transaction writes to, one transaction after the
other. librdkafka tells the coordinator which partitions those are; Java's producer leaves that to the server (KIP-890).
"""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import perf_counter

from bench.kafka.clients import create_topic, random_values
from bench.kafka.java import output
from bench.kafka.latency import SMALL, in_ms
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_least, at_most
from bench.kafka.transacting import all_committed, sizes, transact, transacting
from bench.produce import PARTITIONS, RECORD_BYTES, SMALL_BYTES
from bench.work import Cost, cost

TOPIC = "transactions"
_FEW, _MANY = 100, 10_000  # records in a transaction
_RECORDS = {_FEW: 40_000, _MANY: 400_000}
_CPU_PER = 100_000  # records
_SAMPLES, _UNCOUNTED = 500, 50
_JAVA = Path(__file__).with_name("Transact.java")
_TOLD = re.compile(r"(\d+) records, (\d+) ns")


def _prepare(server: Server, plan: Plan) -> None:
    create_topic(server, TOPIC)


def _with_librdkafka(server: Server, count: int, each: int) -> tuple[float, Cost]:
    client, values = transacting(server, f"transact-{each}"), random_values(RECORD_BYTES)
    transact(client, TOPIC, values, each, each)
    took = cost(server.pid, partial(transact, client, TOPIC, values, count, each))
    return took.seconds, took


def _with_java(server: Server, count: int, each: int) -> tuple[float, Cost]:
    """
    The seconds without the start of the program, and without its first transaction.
    """
    told = ""

    def produce() -> None:
        nonlocal told
        told = output(
            str(_JAVA), server.bootstrap, TOPIC, *(str(one) for one in (PARTITIONS, RECORD_BYTES, count, each))
        )

    took = cost(server.pid, produce)
    [(_, nanoseconds)] = _TOLD.findall(told)
    return int(nanoseconds) / 1e9, took


_CLIENTS = {"confluent-kafka": _with_librdkafka, "Java's producer": _with_java}


def _produced(server: Server, plan: Plan, client: str, each: int) -> Measured:
    count = plan.part(_RECORDS[each])
    with all_committed(server, TOPIC, each, *sizes(count, each)):
        seconds, took = _CLIENTS[client](server, count, each)
    return Measured(count / seconds, took.server_cpu * _CPU_PER / count, took.client_cpu / took.seconds)


def _one_by_one(server: Server, plan: Plan) -> Sequence[Measured]:
    uncounted, found = plan.part(_UNCOUNTED), list[float]()
    client, values = transacting(server, "one-by-one", **SMALL), random_values(SMALL_BYTES)
    count = plan.part(_SAMPLES) + uncounted
    with all_committed(server, TOPIC, *sizes(count, 1)):
        for value in values[:count]:
            began = perf_counter()
            transact(client, TOPIC, [value], 1, 1)
            found.append(perf_counter() - began)
    return in_ms(found[uncounted:])


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    produced = [_produced(server, plan, client, each) for client in _CLIENTS for each in _RECORDS]
    return [*produced, *_one_by_one(server, plan)]


WORKLOAD = Workload(
    "produce in transactions",
    [
        *(
            Row(f"transactions of {each:,} records, {client}", "records/s", at_least(1.0), f"{_CPU_PER:,} records")
            for client in _CLIENTS
            for each in _RECORDS
        ),
        *(Row(f"begin, one record, commit, {part}", "ms", at_most(1.0)) for part in ("p50", "p99")),
    ],
    _run,
    _prepare,
)
