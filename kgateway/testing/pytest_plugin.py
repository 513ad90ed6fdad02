"""
The fixtures that pytest has wherever kgateway is installed.

    def test_orders(kafka):
        producer = Producer({"bootstrap.servers": kafka.bootstrap})
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kgateway.testing.kafka import Kafka

StartKafka = Callable[..., Kafka]


@pytest.fixture
def start_kafka() -> Iterator[StartKafka]:
    """
    A function that starts gateways, with the arguments of `kgateway.testing.Kafka`. The gateways are stopped after the
    test.
    """
    with ExitStack() as running:
        yield lambda *options, **settings: running.enter_context(Kafka(*options, **settings))


@pytest.fixture
def kafka(start_kafka: StartKafka) -> Kafka:
    """
    A new gateway for each test.
    """
    return start_kafka()


@pytest.fixture(scope="session")
def shared_kafka() -> Iterator[Kafka]:
    """
    One gateway for all tests of the run. It saves a third of a second per test, but tests must use different topics.
    """
    with Kafka() as kafka:
        yield kafka
