"""
What a request costs in several trees of the repository, in turns: `python -m bench.trees COMMIT...`.

A commit may be a range, which stands for its two ends and some commits between them: so the search for what made a
request dearer is one command. Each tree is exported into a temporary folder and serves from there, with this Python and
its packages; trees after `--compiled` are installed there, with compiled modules. The client is the same for all. The
processor time of the server is that of its process, which a busy machine disturbs less than the time that passes.

`--results` writes a file that compares the last tree with the first one.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import cast

from bench.calibration import calibrate
from bench.kafka import commits as offset_commits
from bench.kafka import groups_large
from bench.kafka.latency import SMALL, Acks, in_ms
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Compared, Goal, Measured, Row, at_least
from bench.produce import ONE_RECORD, SMALL_BYTES, TOPIC, producer, send
from bench.recording import add_results
from bench.results import Origin, Result, Results
from kgateway.messages.metadata import MetadataRequest
from tests.faults.client import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    Client,
    batch_of,
    fetch_request,
    frame_of,
    produce_request,
)

WORKING_TREE = "."
OTHER = "the earlier version"  # in results
ROUNDS = 7
COMMITS = 9  # of a range
_REQUESTS = 20_000
_ACKS = 2_000
_UNTIL_IT_WAITS_S = 0.001
_MANY = 50  # requests that a client sends before it waits for their responses
_SERVE = """
import sys
from kgateway.testing.kafka import Kafka
with Kafka("--log-level", "warn", folder=sys.argv[1]) as kafka:
    print(kafka.pid, kafka.port, flush=True)
    sys.stdin.read()
"""


@dataclass(frozen=True, slots=True)
class Version:
    """
    A commit, or a folder, and whether its modules are compiled.
    """

    commit: str
    is_compiled: bool = False

    def __str__(self) -> str:
        return f"{self.commit} (compiled)" if self.is_compiled else self.commit

    @property
    def subject(self) -> str:
        """
        Of the commit.
        """
        return "" if Path(self.commit).exists() else _git("log", "-1", "--format=%s", self.commit).strip()


@dataclass(frozen=True, slots=True)
class Tree:
    """
    A version whose server runs.
    """

    version: Version
    pid: int
    port: int

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def cpu_seconds(self) -> float:
        """
        Of all threads of its server.
        """
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def _nothing(tree: Tree) -> None:
    """
    Prepare nothing.
    """


@dataclass(frozen=True, slots=True)
class Work:
    """
    What is measured of each tree, and the rows of what one round finds.
    """

    run: Callable[[Tree], Sequence[Measured]]
    rows: Sequence[Row]
    prepare: Callable[[Tree], None] = _nothing


Rounds = Sequence[Sequence[Measured]]


def _cost(tree: Tree, count: int, work: Callable[[], object]) -> Sequence[Measured]:
    began, used = perf_counter(), tree.cpu_seconds()
    work()
    seconds, cpu = perf_counter() - began, tree.cpu_seconds() - used
    return [Measured(count / seconds), Measured(cpu / count * 1e6)]


def produce_librdkafka(tree: Tree) -> Sequence[Measured]:
    """
    One record a request by confluent-kafka, which waits for none.
    """
    client = producer(tree.bootstrap, **ONE_RECORD)
    return _cost(tree, _REQUESTS, lambda: send(client, _REQUESTS, bytes(SMALL_BYTES), 1))


def _ask_again(tree: Tree, frame: bytes, count: int, at_once: int) -> Sequence[Measured]:
    """
    The same request over and over, a number of them at once.
    """

    def work() -> None:
        for _ in range(count // at_once):
            client.socket.sendall(frame * at_once)
            for _ in range(at_once):
                assert client.receive()

    with Client(tree.port) as client:
        return _cost(tree, count, work)


def produce_one(tree: Tree) -> Sequence[Measured]:
    return _ask_again(tree, _produce(), _REQUESTS // 4, 1)


def produce_many(tree: Tree) -> Sequence[Measured]:
    return _ask_again(tree, _produce(), _REQUESTS, _MANY)


def fetch_one(tree: Tree) -> Sequence[Measured]:
    return _ask_again(tree, _fetch(), _REQUESTS // 4, 1)


def fetch_many(tree: Tree) -> Sequence[Measured]:
    return _ask_again(tree, _fetch(), _REQUESTS, _MANY)


def acks_while_one_waits(tree: Tree) -> Sequence[Measured]:
    """
    Milliseconds until a record is acknowledged and until a client has it that waits for it: medians and 99th
    percentiles.
    """
    with Client(tree.port) as sender, Client(tree.port) as reader:
        frame = _produce()
        sender.socket.sendall(frame)
        assert sender.receive()
        offset = reader.ask(fetch_request(TOPIC, max_bytes=1), FETCH_VERSION).responses[0].partitions[0].high_watermark
        acked, arrived = [], []
        for _ in range(_ACKS):
            reader.send(fetch_request(TOPIC, offset=offset, max_wait_ms=5_000), FETCH_VERSION)
            sleep(_UNTIL_IT_WAITS_S)
            began = perf_counter()
            sender.socket.sendall(frame)
            assert sender.receive()
            acked.append(perf_counter() - began)
            assert reader.receive()
            arrived.append(perf_counter() - began)
            offset += 1
    return [*in_ms(acked), *in_ms(arrived)]


def acks_of_librdkafka(tree: Tree) -> Sequence[Measured]:
    """
    Milliseconds until a record is acknowledged, with nobody waiting for it.
    """
    acks = Acks(producer(tree.bootstrap, TOPIC, **SMALL), TOPIC)
    found = [acks.seconds(bytes(SMALL_BYTES)) for _ in range(_ACKS)]
    return in_ms(found)


def _produce() -> bytes:
    return frame_of(produce_request(TOPIC, batch_of(bytes(SMALL_BYTES))), PRODUCE_VERSION)


def _fetch() -> bytes:
    return frame_of(fetch_request(TOPIC, max_bytes=1), FETCH_VERSION)


def _rate(work: str, goal: Goal | None = None) -> Sequence[Row]:
    return [Row(work, "requests/s", goal), Row(f"{work}: processor time of each", "µs")]


def _times(work: str) -> Sequence[Row]:
    return [Row(f"{work}, {part}", "ms") for part in ("p50", "p99")]


def _of_kafka(workload: Workload) -> Work:
    """
    A workload that is also run beside Kafka, and that needs no more of a server than its process and its port. Its
    goals are those for Kafka, except for memory.
    """

    def prepare(tree: Tree) -> None:
        workload.prepare(cast(Server, tree), Plan())

    def run(tree: Tree) -> Sequence[Measured]:
        return workload.run(cast(Server, tree), Plan())

    rows = [replace(row, goal=None) if row.unit == "MiB" else row for row in workload.rows]
    return Work(run, rows, prepare)


WORKLOADS = {
    "produce": Work(produce_librdkafka, _rate("produce, confluent-kafka, one record a request", at_least(1.6))),
    "produce-one": Work(produce_one, _rate("Produce requests, one after the other")),
    "produce-many": Work(produce_many, _rate(f"Produce requests, {_MANY} at once")),
    "fetch-one": Work(fetch_one, _rate("Fetch requests, one after the other")),
    "fetch-many": Work(fetch_many, _rate(f"Fetch requests, {_MANY} at once")),
    "acks": Work(acks_of_librdkafka, _times("one record until its ack")),
    "acks-awaited": Work(
        acks_while_one_waits,
        [
            *_times("one record until its ack, while a client waits for it"),
            *_times("one record until a waiting client has it"),
        ],
    ),
    "commits": _of_kafka(offset_commits.WORKLOAD),
    "rebalances": _of_kafka(groups_large.WORKLOAD),
}


class UnknownCommit(Exception):
    """
    Git does not know what was asked for. The message is Git's.
    """


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], check=False, capture_output=True, text=True)
    if done.returncode:
        raise UnknownCommit(done.stderr.strip().partition("\n")[0])
    return done.stdout


def commits(wanted: str, most: int) -> list[str]:
    """
    The commits that are meant: of a range its ends and, evenly, some of those between that touch the server.
    """
    if _is_folder(wanted):
        return [wanted]
    if ".." not in wanted:
        return [_short(wanted)]
    first, _, last = wanted.partition("..")
    between = _git("log", "--reverse", "--format=%h", "--no-merges", wanted, "--", "kgateway", "handlers").split()
    line = list(dict.fromkeys([_short(first), *between, _short(last)]))
    step = max(1, (len(line) - 1) / max(1, most - 1))
    return list(dict.fromkeys(line[min(round(number * step), len(line) - 1)] for number in range(most)))


def _is_folder(commit: str) -> bool:
    return commit == WORKING_TREE or Path(commit, "kgateway").is_dir()


def _short(commit: str) -> str:
    return _git("rev-parse", "--short", commit).strip()


def _export(commit: str, folder: Path) -> Path:
    if _is_folder(commit):
        return Path(commit).resolve()
    folder.mkdir(parents=True)
    packed = subprocess.Popen(["git", "archive", commit], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", str(folder)], stdin=packed.stdout, check=True)
    assert packed.wait() == 0
    return folder


def _install(tree: Path, folder: Path) -> Path:
    """
    Install the tree's wheel, with compiled modules, in this folder.
    """
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), str(tree)]
    subprocess.run(command, env={**os.environ, "KGATEWAY_COMPILE": "1"}, check=True)
    assert any(folder.rglob(f"*{EXTENSION_SUFFIXES[0]}")), f"{tree} has no modules that can be compiled"
    return folder


def _started(version: Version, folder: Path, running: ExitStack) -> Tree:
    tree = _export(version.commit, folder / "tree")
    if version.is_compiled:
        tree = _install(tree, folder / "installed")
    data = Path(folder / "data")
    data.mkdir(parents=True)
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    server = running.enter_context(
        subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(data)],
            env=environment,
            cwd=data,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    )
    assert server.stdin
    assert server.stdout
    running.callback(server.stdin.close)
    pid, port = map(int, server.stdout.readline().split())
    with Client(port) as client:
        client.ask(MetadataRequest(topics=[MetadataRequest.Topic(name=TOPIC)]), 9)
    return Tree(version, pid, port)


def measure(trees: Sequence[Tree], work: Work, rounds: int) -> list[Rounds]:
    """
    What each tree has shown in each round.
    """
    found: list[list[Sequence[Measured]]] = [[] for _ in trees]
    for tree in trees:
        work.prepare(tree)
    for number in range(rounds + 1):
        turns = list(zip(trees, found, strict=True))
        for tree, kept in turns if number % 2 else reversed(turns):
            one = work.run(tree)
            if number:  # the first round warms up
                kept.append(one)
    return list(found)


def compared(rows: Sequence[Row], tree: Rounds, other: Rounds) -> Iterator[Compared]:
    """
    Each row of one tree beside that of another one.
    """
    for row, ours, theirs in zip(rows, zip(*tree, strict=True), zip(*other, strict=True), strict=True):
        yield Compared(row, ours, theirs)


def _print(work: Work, trees: Sequence[Tree], found: Sequence[Rounds]) -> None:
    against_first = zip(*(compared(work.rows, rounds, found[0]) for rounds in found), strict=True)
    for row, of_row in zip(work.rows, against_first, strict=True):
        print(f"\n| {row.work} | {row.unit} | ratio | commit |\n|---|---:|---:|---|")
        for tree, one in zip(trees, of_row, strict=True):
            middle = median(measured.value for measured in one.kgateway)
            value = f"{middle:,.{0 if middle > 100 else 3}f} | {median(one.ratios):.2f}"
            print(f"| {tree.version} | {value} | {tree.version.subject} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.trees", description=__doc__)
    parser.add_argument("commits", nargs="+", metavar="COMMIT", help="a commit, a range of them, or a folder")
    parser.add_argument("--compiled", nargs="+", default=[], metavar="COMMIT", help="more of them, which are compiled")
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS), metavar="WORKLOAD")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--of-range", type=int, default=COMMITS, help="how many commits stand for a range")
    add_results(parser)
    asked = parser.parse_args()
    if asked.rounds < 1:
        parser.error("--rounds must be at least 1")
    try:
        versions = [
            Version(commit, is_compiled)
            for is_compiled, all_wanted in ((False, asked.commits), (True, asked.compiled))
            for wanted in all_wanted
            for commit in commits(wanted, asked.of_range)
        ]
    except UnknownCommit as why:
        parser.error(str(why))
    rows = list[Result]()
    with tempfile.TemporaryDirectory(prefix="trees-") as folder, ExitStack() as running:
        trees = [_started(version, Path(folder, str(number)), running) for number, version in enumerate(versions)]
        conditions = f"{Plan(asked.rounds, warm_ups=1)}, in turns with {versions[0]}"
        origin = Origin.now("Twisted", "confluent-kafka", conditions=conditions, kgateway=str(versions[-1]))
        print(f"Measured {origin}", flush=True)
        for name in asked.workloads:
            work = WORKLOADS[name]
            found = measure(trees, work, asked.rounds)
            _print(work, trees, found)
            rows += map(Result.of, compared(work.rows, found[-1], found[0]))
        origin = replace(origin, after=calibrate())
    if asked.results:
        Results(origin, f"Compared with {versions[0]}", OTHER, rows=rows).write(asked.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
