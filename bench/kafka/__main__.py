"""
kgateway beside Apache Kafka: `python -m bench.kafka`, or with names of what to measure.

Needs Java 17, and Kafka's jars in the folder that KAFKA_JARS names: `tox -e bench-kafka` brings them. Each workload is
a module of its own beside this one. Tables go to the standard output, what happens meanwhile to the standard error.
"""

import argparse
import os
import signal
import sys
import tempfile
import traceback
from importlib import import_module
from pathlib import Path

from bench.kafka.java import NoJars, java_version, kafka_version
from bench.kafka.rounds import NotMeasurable, Plan, Workload, compare, progress
from bench.kafka.table import table
from bench.pairing import provenance

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
)
_SHORT = Plan(rounds=1, warm_ups=0, share=0.05)


def _parser() -> argparse.ArgumentParser:
    usual = Plan()
    parser = argparse.ArgumentParser(prog="python -m bench.kafka", description="kgateway beside Apache Kafka")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"what to measure, of {', '.join(MEASURED)}")
    parser.add_argument("--rounds", type=int, help=f"how many are counted; {usual.rounds} unless told otherwise")
    parser.add_argument("--warm-ups", type=int, help=f"how many are not, before them; {usual.warm_ups}")
    parser.add_argument("--short", action="store_true", help="one round without a warm-up, and a twentieth of the work")
    parser.add_argument("--broker", default="log:{data}", help="kgateway's; {data} is its data folder; %(default)s")
    parser.add_argument("--folder", type=Path, help="where both servers keep their data; a temporary one")
    return parser


def _plan(chosen: argparse.Namespace) -> Plan:
    usual = _SHORT if chosen.short else Plan()
    rounds = usual.rounds if chosen.rounds is None else chosen.rounds
    warm_ups = usual.warm_ups if chosen.warm_ups is None else chosen.warm_ups
    return Plan(rounds, warm_ups, usual.share)


def _measure(name: str, plan: Plan, broker: str, folder: Path) -> bool:
    """
    Print the table of a workload; whether it could be measured. One that fails does not take the others with it.
    """
    workload: Workload = import_module(f"bench.kafka.{name}").WORKLOAD
    print(f"\n{workload.title}\n", flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="bench-", dir=folder) as own:
            print(table(compare(workload, plan, broker, Path(own))), flush=True)
    except NotMeasurable as why:
        print(f"Not measured: {why}", flush=True)
    except Exception as failure:
        progress(traceback.format_exc())
        print(f"Failed: {failure!r}", flush=True)
        return False
    return True


def main(arguments: list[str]) -> int:
    """
    Print the tables of docs/benchmarks.md.
    """
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.workloads) - set(MEASURED):
        parser.error(f"there is no {', '.join(sorted(unknown))}: it is one of {', '.join(MEASURED)}")
    plan = _plan(chosen)
    if plan.rounds < 1 or plan.warm_ups < 0:
        parser.error("there must be a round, and no fewer than no warm-ups")
    try:
        apache = f"Apache Kafka {kafka_version()} on Java {java_version()}"
    except NoJars as missing:
        parser.error(str(missing))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the servers end with it
    print(f"Measured {provenance('kgateway', 'Twisted', 'confluent-kafka')}; {apache}; {os.cpu_count()} cores.")
    print(
        f"kgateway with --broker {chosen.broker}. {plan.warm_ups} rounds to warm up, then {plan.rounds} that count, "
        f"{plan.share:.0%} of the full size: the median, and from least to most.",
        flush=True,
    )
    if chosen.short:
        print("A trial of whether all of it works: what it measures means nothing.", flush=True)
    done = [_measure(name, plan, chosen.broker, chosen.folder) for name in chosen.workloads or MEASURED]
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
