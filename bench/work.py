"""
What a piece of work cost: time, and processor time of the server and of the client, which is this process.

On a machine that is busy with other things the time says little, the processor time more.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import monotonic

from kgateway.testing.kafka import Kafka
from tests.faults.process import cpu_seconds

ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Cost:
    seconds: float
    server_cpu: float
    client_cpu: float


def costs(kafka: Kafka, work: Callable[[], object], rounds: int = ROUNDS) -> list[Cost]:
    """
    The cost of each round, the fastest first.
    """
    return sorted((cost(kafka.pid, work) for _ in range(rounds)), key=lambda cost: cost.seconds)


def cost(pid: int, work: Callable[[], object]) -> Cost:
    """
    The cost, if the server is this process.
    """
    began, server, client = monotonic(), cpu_seconds(pid), own_cpu()
    work()
    return Cost(monotonic() - began, cpu_seconds(pid) - server, own_cpu() - client)


def own_cpu() -> float:
    """
    Of this process, and of clients in processes of their own once they have ended.
    """
    return sum(os.times()[:4])


def row(name: str, unit: str, amount: float, found: list[Cost]) -> str:
    """
    A line of a table: how much a second in the best round and in the middle one, and of the best one who computed how
    long.
    """
    best = found[0]
    rate, usual = amount / best.seconds, amount / median(cost.seconds for cost in found)
    ceiling = amount / min(cost.server_cpu for cost in found)
    shares = f"{best.server_cpu / best.seconds:.0%} | {best.client_cpu / best.seconds:.0%}"
    return f"| {name} | {unit} | {rate:,.0f} | {usual:,.0f} | {ceiling:,.0f} | {shares} |"


HEADING = """\
| work | unit | best | median | per second of server CPU | server busy | client busy |
|---|---|---:|---:|---:|---:|---:|"""
