"""
Fixtures for anyone's tests: `kafka` is a fresh gateway a test, `shared_kafka` one for the whole run, `start_kafka`
starts one with options.

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
    Starts gateways with the given options, and stops them after the test.
    """
    with ExitStack() as running:
        yield lambda *options, **settings: running.enter_context(Kafka(*options, **settings))


@pytest.fixture
def kafka(start_kafka: StartKafka) -> Kafka:
    """
    A gateway of this test alone.
    """
    return start_kafka()


@pytest.fixture(scope="session")
def shared_kafka() -> Iterator[Kafka]:
    """
    One gateway for all tests of the run: give each test topics of its own.
    """
    with Kafka() as kafka:
        yield kafka
