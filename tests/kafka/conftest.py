"""
A process with Kafka's record classes, for all tests here that need them.
"""

from collections.abc import Iterator

import pytest

from tests.kafka.batches import Kafka


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    today = Kafka()
    yield today
    today.close()
