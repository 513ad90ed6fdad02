"""
kgateway beside SeaweedFS's own Kafka gateway, before the same cluster: `python -m bench.seaweedmq`, or with names of
what to measure.

Needs `weed`, which the extra `test` brings. Each workload is a module of its own beside this one. Tables go to the
standard output, what happens meanwhile to the standard error.
"""

import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

from bench.kafka.page_cache import write_back
from bench.kafka.rounds import Plan, Workload, alternate
from bench.kafka.table import Compared
from bench.machine import keep_bytecode
from bench.results import Origin, Results
from bench.seaweedmq.servers import running
from bench.workloads import Comparison, asked, measure_all, parser
from kgateway.broker.seaweed.dev.weed_process import weed_program

MEASURED = (
    "throughput_batch",
    "throughput_record",
    "throughput_plain",
    "one_record",
    "latency",
    "waiting",
    "other_programs",
)
_USUAL = Plan(rounds=3, warm_ups=1)


def _workload(name: str, plan: Plan) -> tuple[str, Comparison]:
    workload: Workload = import_module(f"bench.seaweedmq.{name}").WORKLOAD
    return workload.title, partial(_compare, workload, plan)


def _compare(workload: Workload, plan: Plan) -> Sequence[Compared]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, running(Path(folder)) as servers:
        for server in servers:
            workload.prepare(server, plan)
            write_back(server.data)
        return alternate(workload, plan, servers)


def main(arguments: list[str]) -> int:
    """
    Print the tables of docs/benchmarks.md.
    """
    options = parser("bench.seaweedmq", "kgateway beside SeaweedFS's own Kafka gateway", MEASURED, _USUAL)
    chosen, plan = asked(arguments, options)
    told = subprocess.run([weed_program(), "version"], capture_output=True, text=True, check=True).stdout
    weed = re.findall(r"\b\d+\.\d+\b", told)[0]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the servers end with it
    keep_bytecode()
    packages = ("Twisted", "h2", "protobuf", "confluent-kafka")
    origin = Origin.now(*packages, conditions=str(plan), weed=weed)
    results = Results(origin, "Compared with SeaweedFS's Go gateway", "the Go gateway")
    return measure_all(chosen, lambda name: _workload(name, plan), results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
