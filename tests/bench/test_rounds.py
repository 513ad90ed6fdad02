"""
Rounds of two servers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.kafka.rounds import Plan, Workload, alternate
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row


@dataclass
class Counting:
    """
    A server that counts its measurements.
    """

    name: str
    data: Path
    asked: list[str]
    synced: Mapping[str, str] = field(default_factory=dict)
    bootstrap: str = ""
    port: int = 0
    pid: int = 0

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    assert isinstance(server, Counting)
    server.asked.append(server.name)
    turn = server.asked.count(server.name)
    return [Measured(turn if server.name == "kgateway" else -turn), Measured(100 + turn)]


WORKLOAD = Workload("counting", [Row("turn", ""), Row("turn and a hundred", "")], _run)


@pytest.fixture
def asked() -> list[str]:
    """
    The servers in the order of their measurements.
    """
    return []


@pytest.fixture
def servers(asked: list[str], tmp_path: Path) -> Sequence[Server]:
    """
    The servers in the order of `alternate`.
    """
    return [Counting(name, tmp_path, asked) for name in ("Kafka", "kgateway")]


def test_the_first_server_alternates(servers: Sequence[Server], asked: list[str]) -> None:
    """
    The first server of a round is the last one of the next round.
    """
    alternate(WORKLOAD, Plan(rounds=2, warm_ups=1), servers)
    assert asked == ["Kafka", "kgateway", "kgateway", "Kafka", "Kafka", "kgateway"]


def test_warm_ups_do_not_count(servers: Sequence[Server]) -> None:
    """
    Only later rounds are kept, with each measurement under its server and row.
    """
    turns, hundreds = alternate(WORKLOAD, Plan(rounds=2, warm_ups=1), servers)
    assert turns.row.work == "turn"
    assert [found.value for found in turns.kgateway] == [2, 3]
    assert [found.value for found in turns.kafka] == [-2, -3]
    assert [found.value for found in hundreds.kafka] == [102, 103]


def test_a_measurement_for_each_row(servers: Sequence[Server]) -> None:
    """
    A workload without one fails.
    """
    with pytest.raises(ValueError, match="zip"):
        alternate(Workload("forgetful", WORKLOAD.rows[:1], _run), Plan(rounds=1, warm_ups=0), servers)


def test_the_plan_in_words() -> None:
    """
    A results file says how often, and how much of the work.
    """
    assert str(Plan(rounds=5, warm_ups=2)) == "5 rounds after 2 warm-ups"
    assert str(Plan(rounds=1, warm_ups=0, share=0.05)) == "1 round without a warm-up, 5% of the work"


def test_a_share_is_never_nothing() -> None:
    """
    However short the run is, each share is at least one.
    """
    assert [Plan(share=0.1).part(full) for full in (1_000, 10, 1)] == [100, 1, 1]
