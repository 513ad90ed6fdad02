"""
What a request costs in several trees of the repository, in turns: `python -m bench.trees COMMIT...`.

A commit may be a range, which stands for its two ends and some commits between them: so the search for what made a
request dearer is one command. Each tree is exported into a temporary folder and serves from there, with this Python and
its packages. The client is the same for all. The processor time of the server is that of its process, which a busy
machine disturbs less than the time that passes.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, sleep

from bench.kafka.latency import SMALL, Acks, percentile
from bench.produce import ONE_RECORD, SMALL_BYTES, TOPIC, producer, send
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
class Tree:
    """
    A tree whose server runs.
    """

    name: str
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


@dataclass(frozen=True, slots=True)
class Found:
    """
    What one round of a workload found: a second's requests, and the server's microseconds for one; or milliseconds.
    """

    values: tuple[float, ...]


def _cost(tree: Tree, count: int, work: Callable[[], object]) -> Found:
    began, used = perf_counter(), tree.cpu_seconds()
    work()
    seconds, cpu = perf_counter() - began, tree.cpu_seconds() - used
    return Found((count / seconds, cpu / count * 1e6))


def produce_librdkafka(tree: Tree) -> Found:
    """
    One record a request by confluent-kafka, which waits for none.
    """
    client = producer(tree.bootstrap, **ONE_RECORD)
    return _cost(tree, _REQUESTS, lambda: send(client, _REQUESTS, bytes(SMALL_BYTES), 1))


def _ask_again(tree: Tree, frame: bytes, count: int, at_once: int) -> Found:
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


def produce_one(tree: Tree) -> Found:
    return _ask_again(tree, _produce(), _REQUESTS // 4, 1)


def produce_many(tree: Tree) -> Found:
    return _ask_again(tree, _produce(), _REQUESTS, _MANY)


def fetch_one(tree: Tree) -> Found:
    return _ask_again(tree, _fetch(), _REQUESTS // 4, 1)


def fetch_many(tree: Tree) -> Found:
    return _ask_again(tree, _fetch(), _REQUESTS, _MANY)


def acks_while_one_waits(tree: Tree) -> Found:
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
    return Found(tuple(percentile(found, part) * 1e3 for found in (acked, arrived) for part in (50, 99)))


def acks_of_librdkafka(tree: Tree) -> Found:
    """
    Milliseconds until a record is acknowledged, with nobody waiting for it.
    """
    acks = Acks(producer(tree.bootstrap, TOPIC, **SMALL), TOPIC)
    found = [acks.seconds(bytes(SMALL_BYTES)) for _ in range(_ACKS)]
    return Found((percentile(found, 50) * 1e3, percentile(found, 99) * 1e3))


def _produce() -> bytes:
    return frame_of(produce_request(TOPIC, batch_of(bytes(SMALL_BYTES))), PRODUCE_VERSION)


def _fetch() -> bytes:
    return frame_of(fetch_request(TOPIC, max_bytes=1), FETCH_VERSION)


_RATE = ("requests/s", "µs of server CPU")
WORKLOADS: dict[str, tuple[Callable[[Tree], Found], Sequence[str]]] = {
    "produce": (produce_librdkafka, _RATE),
    "produce-one": (produce_one, _RATE),
    "produce-many": (produce_many, _RATE),
    "fetch-one": (fetch_one, _RATE),
    "fetch-many": (fetch_many, _RATE),
    "acks": (acks_of_librdkafka, ("ack p50, ms", "p99")),
    "acks-awaited": (acks_while_one_waits, ("ack p50, ms", "p99", "arrival p50, ms", "p99")),
}


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def commits(wanted: str, most: int) -> list[str]:
    """
    The commits that are meant: of a range its ends and, evenly, some of those between that touch the server.
    """
    if ".." not in wanted:
        return [wanted]
    first, _, last = wanted.partition("..")
    between = _git("log", "--reverse", "--format=%h", "--no-merges", wanted, "--", "kgateway", "handlers").split()
    line = [first, *between, last] if _git("rev-parse", "--short", last).strip() not in between else [first, *between]
    step = max(1, (len(line) - 1) / max(1, most - 1))
    return list(dict.fromkeys(line[min(round(number * step), len(line) - 1)] for number in range(most)))


def _export(commit: str, folder: Path) -> Path:
    if commit == WORKING_TREE or Path(commit, "kgateway").is_dir():
        return Path(commit).resolve()
    folder.mkdir(parents=True)
    packed = subprocess.Popen(["git", "archive", commit], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", str(folder)], stdin=packed.stdout, check=True)
    assert packed.wait() == 0
    return folder


def _started(commit: str, folder: Path, running: ExitStack) -> Tree:
    tree = _export(commit, folder / "tree")
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
    return Tree(commit, pid, port)


def measure(trees: Sequence[Tree], names: Sequence[str], rounds: int) -> None:
    for name in names:
        run, units = WORKLOADS[name]
        found: dict[str, list[Found]] = {tree.name: [] for tree in trees}
        for number in range(rounds + 1):
            for tree in trees if number % 2 else reversed(trees):
                one = run(tree)
                if number:  # the first round warms up
                    found[tree.name].append(one)
        _print(name, units, found)


def _print(name: str, units: Sequence[str], found: dict[str, list[Found]]) -> None:
    print(f"\n| {name} | {' | '.join(f'{unit} | ratio' for unit in units)} | commit |")
    print(f"|---|{'---:|---:|' * len(units)}---|")
    first = next(iter(found.values()))
    for commit, rounds in found.items():
        cells = []
        for column in range(len(units)):
            middle = median(one.values[column] for one in rounds)
            ratio = median(one.values[column] / base.values[column] for one, base in zip(rounds, first, strict=True))
            cells.append(f"{middle:,.{0 if middle > 100 else 3}f} | {ratio:.2f}")
        subject = "" if Path(commit).exists() else _git("log", "-1", "--format=%s", commit).strip()
        print(f"| {commit} | {' | '.join(cells)} | {subject} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.trees", description=__doc__)
    parser.add_argument("commits", nargs="+", metavar="COMMIT", help="a commit, a range of them, or a folder")
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS), metavar="WORKLOAD")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--of-range", type=int, default=COMMITS, help="how many commits stand for a range")
    asked = parser.parse_args()
    names = [commit for wanted in asked.commits for commit in commits(wanted, asked.of_range)]
    with tempfile.TemporaryDirectory(prefix="trees-") as folder, ExitStack() as running:
        trees = [_started(name, Path(folder, str(number)), running) for number, name in enumerate(names)]
        measure(trees, asked.workloads, asked.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
