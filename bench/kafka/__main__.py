"""
kgateway beside Apache Kafka: `python -m bench.kafka`, or with names of what to measure.

Needs Java 17, and Kafka's jars in the folder that KAFKA_JARS names: `tox -e bench-kafka` brings them. Each workload is
a module of its own beside this one. Tables go to the standard output, what happens meanwhile to the standard error.
"""

import signal
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

from bench.kafka.java import NoJars, java_version, kafka_version
from bench.kafka.rounds import Plan, Workload, compare
from bench.kafka.table import Compared
from bench.machine import keep_bytecode
from bench.results import Origin, Results
from bench.workloads import Comparison, asked, measure_all, parser

MEASURED = (
    "produce_batches",
    "produce_java",
    "consume",
    "produce_one",
    "latency",
    "crowded",
    "synced",
    "start",
    "memory",
    "many",
    "groups_large",
    "groups_many",
    "commits",
    "compaction",
    "compaction_without_numpy",
    "transactions",
    "committed",
)
_BROKER = "log:{data}"


def _workload(name: str, plan: Plan, broker: str, folder: Path | None) -> tuple[str, Comparison]:
    workload: Workload = import_module(f"bench.kafka.{name}").WORKLOAD
    return workload.title, partial(_compare, workload, plan, broker, folder)


def _compare(workload: Workload, plan: Plan, broker: str, folder: Path | None) -> Sequence[Compared]:
    with tempfile.TemporaryDirectory(prefix="bench-", dir=folder) as own:
        return compare(workload, plan, broker, Path(own))


def main(arguments: list[str]) -> int:
    """
    Print the tables of docs/benchmarks.md.
    """
    options = parser("bench.kafka", "kgateway beside Apache Kafka", MEASURED, Plan())
    options.add_argument("--broker", default=_BROKER, help="kgateway's; {data} is its data folder; %(default)s")
    options.add_argument("--folder", type=Path, help="where both servers keep their data; a temporary one")
    chosen, plan = asked(arguments, options)
    try:
        apache = {"Apache Kafka": kafka_version(), "Java": java_version()}
    except NoJars as missing:
        options.error(str(missing))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the servers end with it
    conditions = str(plan) if chosen.broker == _BROKER else f"{plan}, --broker {chosen.broker}"
    keep_bytecode()
    packages = ("Twisted", "confluent-kafka")
    origin = Origin.now(*packages, folder=chosen.folder, conditions=conditions, **apache)
    results = Results(origin, "Compared with Apache Kafka", "Kafka")
    return measure_all(chosen, lambda name: _workload(name, plan, chosen.broker, chosen.folder), results, chosen.folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
