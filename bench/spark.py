"""
How fast Spark reads topics: `python -m bench.spark`, with the extra `spark` and Java 17.

`count(*), sum(length(value)), max(offset)` over all columns of a topic in two partitions, on `local[2]`, warm: once
over Kafka's protocol, with the gateway on the same two processors, and once from the files of its log. Then the same
with a schema of two columns, and into Parquet. `--records 100=4000000` measures larger topics. On a machine that does
other things, the processor time says more than the time. The last column compares with Spark's own source, once.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its stubs pass it on unnamed

from bench.pairing import provenance
from bench.records import TEXT
from kgateway.testing.kafka import Kafka

PARTITIONS = 2
RECORDS = {100: 2_000_000, 1_000: 500_000}
ROUNDS = 5
WARM_UPS = 2
_BATCHES = {"linger.ms": 20, "batch.num.messages": 1_000, "batch.size": 1 << 17, "queue.buffering.max.messages": 50_000}
_QUERY = ("count(*)", "sum(length(value))", "max(offset)")
_SPARKS_OWN = {100: 0.69, 1_000: 0.29}  # M records/s, on such a machine: docs/benchmarks.md


def produce(kafka: Kafka, topic: str, value_bytes: int, count: int) -> None:
    """
    Fill a topic, its partitions evenly, with values that repeat seldom.
    """
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": kafka.bootstrap, **_BATCHES})
    for number in range(count):
        at = number * 97 % (len(TEXT) - value_bytes)
        key, value = b"key-%08d" % number, TEXT[at : at + value_bytes]
        while True:
            try:
                producer.produce(topic, value, key, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


@contextmanager
def session() -> Iterator[Any]:
    """
    Spark on both processors, with little memory.
    """
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "2g")
    for key, value in {"ui.enabled": "false", "log.level": "ERROR", "ui.showConsoleProgress": "false"}.items():
        builder = builder.config(f"spark.{key}", value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


class Took(NamedTuple):
    """
    How long a round took, and how much of the processors: of Java, Python's workers and the gateway.
    """

    seconds: float
    cpu: float


def rounds(work: Callable[[], object]) -> list[Took]:
    """
    What each warm round took, the fastest first.
    """
    took = []
    for _ in range(WARM_UPS + ROUNDS):
        began, used = monotonic(), _cpu()
        work()
        took.append(Took(monotonic() - began, _cpu() - used))
    return sorted(took[WARM_UPS:])


def _cpu() -> float:
    """
    What this process and all below it have used of the processors. Workers live on between rounds.
    """
    parents, used = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = path.read_text().rpartition(")")[2].split()
            pid = int(path.parent.name)
            parents[pid], used[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(used.get(pid, 0) for pid in below) / os.sysconf("SC_CLK_TCK")


def _row(what: str, value_bytes: int, count: int, took: list[Took]) -> str:
    millions = count / 1e6
    best, usual = millions / took[0].seconds, millions / median(one.seconds for one in took)
    of_cpu = millions / min(one.cpu for one in took)
    ratio = f"{best / _SPARKS_OWN[value_bytes]:.1f} x" if value_bytes in _SPARKS_OWN else ""
    return (
        f"| {what} | {value_bytes:,} | {best:.2f} | {usual:.2f} | {best * value_bytes:,.0f} | {of_cpu:.2f} | {ratio} |"
    )


def measure(spark: Any, where: dict[str, dict[str, str]], topic: str, value_bytes: int, count: int) -> Iterator[str]:
    """
    The rows of the table.
    """

    def reading(name: str) -> Any:
        return spark.read.format("kgateway").options(**where[name]).option("subscribe", topic)

    def aggregate(name: str) -> None:
        [row] = reading(name).load().selectExpr(*_QUERY).collect()
        assert row[:2] == (count, count * value_bytes), row

    def two_columns(name: str) -> None:
        [row] = reading(name).schema("offset long, value binary").load().selectExpr(*_QUERY).collect()
        assert row[0] == count, row

    for name in where:
        yield _row(f"{name}, all columns", value_bytes, count, rounds(partial(aggregate, name)))
        yield _row(f"{name}, two columns", value_bytes, count, rounds(partial(two_columns, name)))
    with tempfile.TemporaryDirectory() as folder:
        took = rounds(lambda: reading("files").load().write.mode("overwrite").parquet(f"{folder}/archive"))
        yield _row("files, to Parquet", value_bytes, count, took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", action="append", default=[], metavar="BYTES=COUNT")
    given = dict(one.split("=") for one in parser.parse_args().records)
    wanted = {int(size): int(count) for size, count in given.items()} or RECORDS
    print(provenance("pyspark", "numpy", "pyarrow"))
    print("\n| way | value bytes | best M records/s | median | MB/s of values | M a CPU second | to Spark's own |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    with Kafka() as kafka:
        server = {"kafka.bootstrap.servers": kafka.bootstrap}
        where = {"protocol": server, "files": server | {"kgateway.log.folder": str(_data(kafka))}}
        for value_bytes, count in wanted.items():
            produce(kafka, f"records-{value_bytes}", value_bytes, count)
        with session() as spark:
            for value_bytes, count in wanted.items():
                for row in measure(spark, where, f"records-{value_bytes}", value_bytes, count):
                    print(row, flush=True)


def _data(kafka: Kafka) -> Path:
    return kafka.folder / "kgateway-data"


if __name__ == "__main__":
    main()
