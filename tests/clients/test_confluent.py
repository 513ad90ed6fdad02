"""
confluent-kafka, and so librdkafka.
"""

import pytest

from tests.clients.behaviour import Behaviour
from tests.clients.client import Connect
from tests.clients.confluent_client import Confluent
from tests.clients.groups.behaviour import StaticGrouping
from tests.clients.groups.kinds import CONFLUENT


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


class TestConfluentGroups(StaticGrouping):
    """
    What members of every client do.
    """

    kind = CONFLUENT
