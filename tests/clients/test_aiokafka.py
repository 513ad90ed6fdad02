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
    return AioKafka


class TestAioKafka(Behaviour):
    pass


class TestAioKafkaGroups(StaticGrouping):
    kind = AIOKAFKA
