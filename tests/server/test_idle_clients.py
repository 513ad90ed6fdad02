"""
What a gateway costs whose clients are silent, or wait for records: the bounds that docs/operations.md names, of a real
process.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kgateway.messages.api_versions import ApiVersionsRequest
from kgateway.testing.kafka import Kafka
from tests.faults.client import Client
from tests.faults.long_polls import CONNECTIONS as CONSUMERS
from tests.faults.long_polls import WAIT_MS, Fetching, like_java, make_topics
from tests.faults.process import MIB, allow_files, cpu_seconds, resident_bytes

CONNECTIONS = 10_000
SPARE_FILES = 500
RESIDENT_MIB_MAX = 60
# Of a core, for a thousand consumers. Tests that run at the same time share caches and cores, so it is more for them.
WAITING_PERCENT_MAX = float(os.environ.get("WAITING_PERCENT", "20"))
FETCHES = 2_000  # for one measurement
MEASUREMENTS = 2


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kafka]:
    """
    A gateway that has not compiled its modules itself, which leaves it larger.
    """
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    with Kafka("--broker", "log:data", "--log-level", "warn"):
        pass
    with Kafka("--broker", "log:data", "--log-level", "warn") as kafka:
        yield kafka


@pytest.mark.pure("compiled modules take more memory")
def test_ten_thousand_silent_connections(gateway: Kafka) -> None:
    """
    The program, the embedded log and the connections fit into the bound together.
    """
    if allow_files(CONNECTIONS + SPARE_FILES) < CONNECTIONS + SPARE_FILES:
        pytest.skip(f"this process may not have {CONNECTIONS + SPARE_FILES:,} files: see `ulimit -Hn`")
    with ExitStack() as connections:
        for _ in range(CONNECTIONS):
            connections.enter_context(Client(gateway.port)).ask(ApiVersionsRequest(), 0)
        resident_mib = resident_bytes(gateway.pid) / MIB
    assert resident_mib < RESIDENT_MIB_MAX


def test_a_thousand_waiting_consumers(gateway: Kafka) -> None:
    """
    The bound is of processor time, for the fetches that so many consumers send each second.
    """
    allow_files(CONSUMERS + SPARE_FILES)
    make_topics(gateway)
    with Fetching(gateway.port, like_java) as fetching:
        fetching.wait_for(CONSUMERS)
        each = min(_seconds_each(gateway, fetching) for _ in range(MEASUREMENTS))
    assert each * CONSUMERS * 1_000 / WAIT_MS * 100 < WAITING_PERCENT_MAX


def _seconds_each(gateway: Kafka, fetching: Fetching) -> float:
    used, answered = cpu_seconds(gateway.pid), fetching.answered
    fetching.wait_for(answered + FETCHES)
    return (cpu_seconds(gateway.pid) - used) / (fetching.answered - answered)
