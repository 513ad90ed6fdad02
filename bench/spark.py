"""
How fast Spark reads topics: `tox -e bench-spark`.

`count(*), sum(length(value)), max(offset)` over all columns of a topic in two partitions, on `local[2]`, warm: once
over Kafka's protocol, with the gateway on the same two processors, and once from the files of its log. Then the same
with a schema of two columns, and into Parquet. A source that reads nothing comes first: none in Python can be faster.
`--records 100=2000000` measures smaller topics. On a machine that does other things, the processor time says more than
the time.

Spark's own Kafka source reads the same records first, from an Apache Kafka and from the gateway, and the last column
compares with the former. It is in a Spark and a Python of its own, that SPARKS_OWN_PYTHON and SPARKS_OWN_JARS name.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its stubs pass it on unnamed

from bench.kafka.servers import Apache
from bench.recording import add_results, recorded
from bench.records import TEXT
from kgateway.testing.kafka import Kafka

PARTITIONS = 2
RECORDS = {100: 6_000_000, 1_000: 1_500_000}  # of what a query takes its start is a small part then
ROUNDS = 5
WARM_UPS = 2
_BATCHES = {"linger.ms": 20, "batch.num.messages": 1_000, "batch.size": 1 << 17, "queue.buffering.max.messages": 50_000}
_SETTINGS = {
    "ui.enabled": "false",
    "log.level": "ERROR",
    "ui.showConsoleProgress": "false",
    "python.unix.domain.socket.enabled": "true",  # as jobs have them; Spark's own source has no Python
}
_TWO = "offset long, value binary"
_GOALS = {"protocol, all columns": 2, "files, all columns": 4}  # times the speed of Spark's own source
_QUERY = ("count(*)", "sum(length(value))", "max(offset)")


def produce(bootstrap: str, topic: str, value_bytes: int, count: int) -> None:
    """
    Fill a topic evenly with values that seldom repeat.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": bootstrap, **_BATCHES})
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
    Spark on two threads, with little memory.
    """
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    from pyspark import cloudpickle
    from pyspark.sql import SparkSession

    from bench import spark_nothing

    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "2g")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for key, value in (_SETTINGS | {"python.unix.domain.socket.dir": folder}).items():
            builder = builder.config(f"spark.{key}", value)
        spark = builder.getOrCreate()
        cloudpickle.register_pickle_by_value(spark_nothing)  # its tasks know nothing of `bench`
        spark.dataSource.register(spark_nothing.Nothing)
        try:
            yield spark
        finally:
            spark.stop()


class Took(NamedTuple):
    """
    The duration of a round, and the processor time of Java, Python's workers and the gateway.
    """

    seconds: float
    cpu: float


def rounds(work: Callable[[], object]) -> list[Took]:
    """
    The warm rounds, the fastest first.
    """
    took = []
    for _ in range(WARM_UPS + ROUNDS):
        began, used = monotonic(), _cpu()
        work()
        took.append(Took(monotonic() - began, _cpu() - used))
    return sorted(took[WARM_UPS:])


def _cpu() -> float:
    """
    The processor time of this process and its children. Workers live on between rounds.
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


@dataclass
class Table:
    """
    Prints measurements row by row.
    """

    own: dict[int, float] = field(default_factory=dict)  # M records/s by the size of values, of Spark's own source

    def head(self) -> None:
        print(
            "\n| way | value bytes | best M records/s | median | MB/s of values | M per CPU s | to Spark's own | goal |"
        )
        print("|---|---:|---:|---:|---:|---:|---:|---|")

    def row(self, what: str, value_bytes: int, count: int, took: list[Took]) -> None:
        """
        Print a row, compared with the first one of its size.
        """
        millions = count / 1e6
        best, usual = millions / took[0].seconds, millions / median(one.seconds for one in took)
        of_cpu = millions / min(one.cpu for one in took)
        ratio = usual / self.own.setdefault(value_bytes, usual)
        cells = f"{best:.2f} | {usual:.2f} | {best * value_bytes:,.0f} | {of_cpu:.2f} | {ratio:.1f} x"
        print(f"| {what} | {value_bytes:,} | {cells} | {_verdict(what, ratio)} |", flush=True)


def _verdict(what: str, ratio: float) -> str:
    goal = _GOALS.get(what)
    return f"{goal} x, {'met' if ratio >= goal else '**MISSED**'}" if goal else ""


def measure_own(table: Table, servers: dict[str, str], topics: Mapping[str, tuple[int, int]]) -> None:
    program = str(Path(__file__).with_name("spark_own.py"))
    # -P, for what stands beside the program is not for it: Spark would find our `profile` for Python's.
    command = [os.environ["SPARKS_OWN_PYTHON"], "-P", program, os.environ["SPARKS_OWN_JARS"]]
    environment = {key: value for key, value in os.environ.items() if key not in ("SPARK_HOME", "PYTHONPATH")}
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, env=environment) as process:
        questions, answers = process.stdin, process.stdout
        assert questions
        assert answers

        def ask(bootstrap: str, topic: str, *expected: int) -> None:
            questions.write(json.dumps([bootstrap, topic, *_QUERY]) + "\n")
            questions.flush()
            line = answers.readline()
            assert line, "Spark's own source has ended"
            assert json.loads(line)[:2] == list(expected)

        for topic, (value_bytes, count) in topics.items():
            for name, bootstrap in servers.items():
                took = rounds(partial(ask, bootstrap, topic, count, count * value_bytes))
                table.row(f"Spark's own, from {name}", value_bytes, count, took)
        questions.close()


def measure(
    table: Table, spark: Any, where: dict[str, dict[str, str]], topic: str, value_bytes: int, count: int
) -> None:
    """
    Measure our source, by the protocol and from files.
    """

    def reading(name: str) -> Any:
        return spark.read.format("kgateway").options(**where[name]).option("subscribe", topic)

    def aggregate(name: str) -> None:
        [row] = reading(name).load().selectExpr(*_QUERY).collect()
        assert row[:2] == (count, count * value_bytes), row

    def two_columns(name: str) -> None:
        [row] = reading(name).schema(_TWO).load().selectExpr(*_QUERY).collect()
        assert row[0] == count, row

    def nothing(schema: str | None) -> None:
        reader = spark.read.format("nothing").options(count=count, bytes=value_bytes)
        [row] = (reader.schema(schema) if schema else reader).load().selectExpr(*_QUERY).collect()
        assert row[:2] == (count, count * value_bytes), row

    table.row("nothing read, all columns", value_bytes, count, rounds(partial(nothing, None)))
    table.row("nothing read, two columns", value_bytes, count, rounds(partial(nothing, _TWO)))
    for name in where:
        table.row(f"{name}, all columns", value_bytes, count, rounds(partial(aggregate, name)))
        table.row(f"{name}, two columns", value_bytes, count, rounds(partial(two_columns, name)))
    with tempfile.TemporaryDirectory() as folder:
        took = rounds(lambda: reading("files").load().write.mode("overwrite").parquet(f"{folder}/archive"))
        table.row("files, to Parquet", value_bytes, count, took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", action="append", default=[], metavar="BYTES=COUNT")
    add_results(parser)
    options = parser.parse_args()
    given = dict(one.split("=") for one in options.records)
    wanted = {int(size): int(count) for size, count in given.items()} or RECORDS
    conditions = f"{ROUNDS} rounds after {WARM_UPS} warm-ups"
    packages = ("pyspark", "numpy", "pyarrow")
    with recorded(options.results, *packages, conditions=conditions) as recording, recording.of("spark"):
        measure_all(wanted)


def measure_all(wanted: Mapping[int, int]) -> None:
    table = Table()
    table.head()
    topics = {f"records-{value_bytes}": (value_bytes, count) for value_bytes, count in wanted.items()}
    with Kafka() as kafka:
        for topic, (value_bytes, count) in topics.items():
            produce(kafka.bootstrap, topic, value_bytes, count)
        with apache() as peer:
            for topic, (value_bytes, count) in topics.items():
                produce(peer, topic, value_bytes, count)
            measure_own(table, {"Kafka": peer, "kgateway": kafka.bootstrap}, topics)
        server = {"kafka.bootstrap.servers": kafka.bootstrap}
        where = {"protocol": server, "files": server | {"kgateway.log.folder": str(_data(kafka))}}
        with session() as spark:
            for topic, (value_bytes, count) in topics.items():
                measure(table, spark, where, topic, value_bytes, count)


@contextmanager
def apache() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        server = Apache(Path(folder) / "kafka")
        server.start()
        try:
            yield server.bootstrap
        finally:
            server.stop()


def _data(kafka: Kafka) -> Path:
    return kafka.folder / "kgateway-data"


if __name__ == "__main__":
    main()
