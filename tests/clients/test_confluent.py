"""
confluent-kafka, and so librdkafka.
"""

import pytest

from tests.clients.behaviour import Behaviour
from tests.clients.client import Connect
from tests.clients.confluent_client import Confluent


@pytest.fixture(scope="module")
def connect() -> Connect:
    """
    A client of this library.
    """
    return Confluent


class TestConfluent(Behaviour):
    """
    What every client does.
    """
