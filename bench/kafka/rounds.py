"""
The same work on both servers, in turns, so that a machine that slows down slows both.

Each workload has servers of its own, freshly started, so that it tells the same alone as among others. The first rounds
are not counted: in them Java compiles what Kafka runs often. Who begins changes from round to round. After its turn
what a server wrote is put on disk, so that it is not written back while the other one is measured.
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.kafka.page_cache import write_back
from bench.kafka.servers import Apache, Gateway, Server
from bench.kafka.table import Compared, Measured, Row
from kgateway.plurals import counted


@dataclass(frozen=True, slots=True)
class Plan:
    rounds: int = 5
    warm_ups: int = 2
    share: float = 1.0  # of the full size of each workload

    def part(self, full: int) -> int:
        """
        This share of the full amount, at least 1.
        """
        return max(1, round(full * self.share))

    def __str__(self) -> str:
        warm_ups = f"after {counted(self.warm_ups, 'warm-up')}" if self.warm_ups else "without a warm-up"
        rounds = f"{counted(self.rounds, 'round')} {warm_ups}"
        return rounds if self.share == 1 else f"{rounds}, {self.share:.0%} of the work"


class NotMeasurable(Exception):
    """
    A server cannot do this work; the message says which and why.
    """


def _nothing(server: Server, plan: Plan) -> None:
    """
    Prepare nothing.
    """


@dataclass(frozen=True, slots=True)
class Workload:
    """
    Work for a server, and the rows of its measurements, in their order.
    """

    title: str
    rows: Sequence[Row]
    run: Callable[[Server, Plan], Sequence[Measured]]
    prepare: Callable[[Server, Plan], None] = _nothing


def progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def compare(workload: Workload, plan: Plan, broker: str, folder: Path) -> list[Compared]:
    """
    Start both servers, and measure.
    """
    with ExitStack() as running:
        servers: list[Server] = [Apache(folder / "kafka"), Gateway(folder / "kgateway", broker)]
        for server in servers:
            progress(f"{workload.title}: {server.name} starts")
            running.callback(server.stop)
            server.start()
            workload.prepare(server, plan)
            write_back(server.data)
        return alternate(workload, plan, servers)


def alternate(workload: Workload, plan: Plan, servers: Sequence[Server]) -> list[Compared]:
    """
    What Kafka and kgateway, in this order, make of the work.
    """
    found: list[list[Sequence[Measured]]] = [[], []]
    for number in range(plan.warm_ups + plan.rounds):
        turns = list(zip(servers, found, strict=True))
        for server, kept in turns if number % 2 == 0 else reversed(turns):
            measured = workload.run(server, plan)
            write_back(server.data)
            _tell(workload, plan, number, server, measured)
            if number >= plan.warm_ups:
                kept.append(measured)
    kafka, kgateway = (list(zip(*kept, strict=True)) for kept in found)
    return [Compared(*row) for row in zip(workload.rows, kgateway, kafka, strict=True)]


def _tell(workload: Workload, plan: Plan, number: int, server: Server, measured: Sequence[Measured]) -> None:
    warm_up = number < plan.warm_ups
    place = f"warm-up {number + 1}" if warm_up else f"round {number + 1 - plan.warm_ups} of {plan.rounds}"
    values = ", ".join(f"{one.value:.4g} {row.unit}" for row, one in zip(workload.rows, measured, strict=True))
    progress(f"{workload.title}, {place}, {server.name}: {values}")
