"""
kafka-python.
"""

import pytest

from kgateway.records.record import Header, Record
from kgateway.wire.errors import ErrorCode
from tests.clients.behaviour import START_MS, Behaviour
from tests.clients.client import Client, Connect
from tests.clients.groups.behaviour import StaticGrouping
from tests.clients.groups.kinds import KAFKA_PYTHON
from tests.clients.kafkapython_client import KafkaPython
from tests.clients.raw import Raw


@pytest.fixture(scope="module")
def connect() -> Connect:
    """
    A client of this library.
    """
    return KafkaPython


class TestKafkaPython(Behaviour):
    """
    What every client does, but for what the library leaves out.
    """

    unknown_topic = ErrorCode.REQUEST_TIMED_OUT  # it waits for the topic to come

    def test_null_headers_are_kept(self, client: Client, raw: Raw, topic: str) -> None:
        """
        The library refuses to send a header without a value; it reads one.
        """
        with pytest.raises(TypeError):
            client.send(topic, [Record(0, START_MS, b"key", b"value", (Header("null", None),))])
        assert raw.records(topic) == []


class TestKafkaPythonGroups(StaticGrouping):
    """
    What members of every client do.
    """

    kind = KAFKA_PYTHON
