"""
confluent-kafka, and so librdkafka.
"""

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from kgateway.testing.kafka import Kafka
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


class TestConfluentGroupConfigs:
    """
    What its administrator sets for a group.
    """

    name = "consumer.session.timeout.ms"

    @pytest.fixture
    def admin(self, group_kafka: Kafka) -> AdminClient:
        return AdminClient({"bootstrap.servers": group_kafka.bootstrap})

    def alter(self, admin: AdminClient, group_id: str, operation: AlterConfigOpType, value: str) -> None:
        entry = ConfigEntry(self.name, value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.GROUP, group_id, incremental_configs=[entry])
        (done,) = admin.incremental_alter_configs([resource]).values()
        done.result()

    def described(self, admin: AdminClient, group_id: str) -> tuple[str, int]:
        resource = ConfigResource(ResourceType.GROUP, group_id)
        (found,) = admin.describe_configs([resource]).values()
        entry = found.result()[self.name]
        return entry.value, entry.source

    def test_set_and_delete(self, admin: AdminClient, name: str) -> None:
        """
        A config is set, described and deleted, and refused where it cannot be.
        """
        before = self.described(admin, name)
        self.alter(admin, name, AlterConfigOpType.SET, "50000")
        assert self.described(admin, name) == ("50000", 8)
        with pytest.raises(KafkaException, match="must be at most 60000"):
            self.alter(admin, name, AlterConfigOpType.SET, "60001")
        assert self.described(admin, name) == ("50000", 8)
        self.alter(admin, name, AlterConfigOpType.DELETE, "")
        assert self.described(admin, name) == before != ("50000", 8)
