"""
aiokafka.
"""

import pytest

from tests.clients.aiokafka_client import AioKafka
from tests.clients.behaviour import Behaviour
from tests.clients.client import Connect


@pytest.fixture(scope="module")
def connect() -> Connect:
    """
    A client of this library.
    """
    return AioKafka


class TestAioKafka(Behaviour):
    """
    What every client does.
    """
