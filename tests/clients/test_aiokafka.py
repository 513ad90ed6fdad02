"""
aiokafka.
"""

import pytest

from tests.clients.aiokafka_client import AioKafka
from tests.clients.behaviour import Behaviour
from tests.clients.client import Connect
from tests.clients.groups.behaviour import StaticGrouping
from tests.clients.groups.kinds import AIOKAFKA


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


class TestAioKafkaGroups(StaticGrouping):
    """
    What members of every client do.
    """

    kind = AIOKAFKA
