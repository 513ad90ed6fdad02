"""
A gateway that clients of all kinds use, and topics on it.

Tests of a client need the client, so they run only when they are named, as in `tox -e NAME`.
"""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from bench.kafka.servers import free_port
from kgateway.testing.kafka import Kafka
from tests.clients.groups.chaos import SERVER_OPTIONS
from tests.clients.raw import Raw
from tests.clients.seaweedmq import gateway, owner

collect_ignore_glob = ["test_*.py", "connect/test_*.py", "streams/test_*.py"]

pytest.register_assert_rewrite("tests.clients.behaviour", "tests.clients.groups.behaviour")


@pytest.fixture(autouse=True)
def no_traceback(request: pytest.FixtureRequest) -> Iterator[None]:
    """
    No client causes a traceback in the gateway.
    """
    used = {"shared_kafka", "group_kafka"} & {*request.fixturenames}
    gateways = [request.getfixturevalue(name) for name in used]
    yield
    for kafka in gateways:
        assert "Traceback" not in kafka.log, kafka.log


@pytest.fixture
def raw(shared_kafka: Kafka) -> Iterator[Raw]:
    """
    Access to the stored bytes.
    """
    with Raw(owner(shared_kafka.bootstrap), shared_kafka.bootstrap) as raw:
        yield raw


@pytest.fixture
def name() -> str:
    """
    A new topic name.
    """
    return f"t-{uuid4()}"


@pytest.fixture
def topic(raw: Raw, name: str) -> str:
    """
    An empty topic with one partition.
    """
    raw.create(name)
    return name


@pytest.fixture
def wide_topic(raw: Raw, name: str) -> str:
    """
    An empty topic with four partitions.
    """
    raw.create(name, 4)
    return name


@pytest.fixture(scope="session")
def shared_kafka() -> Iterator[Kafka]:
    """
    A gateway for all tests.
    """
    with gateway() as kafka:
        yield kafka


@pytest.fixture(scope="session")
def strict_kafka() -> Iterator[Kafka]:
    """
    A gateway that creates no topic unasked.
    """
    with gateway("--auto-create-topics", "no") as kafka:
        yield kafka


@pytest.fixture(scope="session")
def group_kafka() -> Iterator[Kafka]:
    """
    A gateway whose groups rebalance quickly.
    """
    with gateway(*SERVER_OPTIONS) as kafka:
        yield kafka


@pytest.fixture
def lasting_kafka(tmp_path: Path) -> Iterator[Kafka]:
    """
    A gateway that keeps its address and its data after each kill.
    """
    listen = f"tcp:{free_port()}:interface=127.0.0.1"
    kafka = Kafka("--listen", listen, "--broker", f"log:{tmp_path / 'data'}", "--log-level", "warn", folder=tmp_path)
    kafka.start()
    yield kafka
    kafka.stop()
    assert "Traceback" not in kafka.log, kafka.log
