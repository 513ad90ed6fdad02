"""
confluent-kafka, and so librdkafka.
"""

import pytest
from confluent_kafka import OFFSET_END, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from kgateway.testing.kafka import Kafka
from tests.clients.behaviour import Behaviour, read, rows
from tests.clients.client import Connect
from tests.clients.confluent_client import Confluent
from tests.clients.groups.behaviour import StaticGrouping
from tests.clients.groups.kinds import CONFLUENT
from tests.clients.raw import Raw


@pytest.fixture(scope="module")
def connect() -> Connect:
    return Confluent


class TestConfluent(Behaviour):
    pass


class TestConfluentGroups(StaticGrouping):
    kind = CONFLUENT


class TestConfluentGroupConfigs:
    """
    An administrator sets configs of a group.
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
        A config is set, described and deleted; invalid ones are refused.
        """
        before = self.described(admin, name)
        self.alter(admin, name, AlterConfigOpType.SET, "50000")
        assert self.described(admin, name) == ("50000", 8)
        with pytest.raises(KafkaException, match="must be less than or equal to group"):
            self.alter(admin, name, AlterConfigOpType.SET, "60001")
        assert self.described(admin, name) == ("50000", 8)
        self.alter(admin, name, AlterConfigOpType.DELETE, "")
        assert self.described(admin, name) == before != ("50000", 8)


class TestConfluentTopicConfigs:
    """
    An administrator sets configs of a topic.
    """

    @pytest.fixture
    def admin(self, shared_kafka: Kafka) -> AdminClient:
        return AdminClient({"bootstrap.servers": shared_kafka.bootstrap})

    def alter(self, admin: AdminClient, topic: str, *changes: tuple[str, AlterConfigOpType, str]) -> None:
        entries = [ConfigEntry(name, value, incremental_operation=operation) for name, operation, value in changes]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        (done,) = admin.incremental_alter_configs([resource]).values()
        done.result()

    def described(self, admin: AdminClient, topic: str, name: str) -> tuple[str, int]:
        (found,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
        entry = found.result()[name]
        return entry.value, entry.source

    def test_single_configs(self, admin: AdminClient, topic: str) -> None:
        """
        Configs are set, appended to, and deleted; invalid ones are refused.
        """
        before = self.described(admin, topic, "segment.ms")
        self.alter(
            admin,
            topic,
            ("segment.ms", AlterConfigOpType.SET, "77"),
            ("cleanup.policy", AlterConfigOpType.APPEND, "compact"),
        )
        assert self.described(admin, topic, "segment.ms") == ("77", 1)
        assert self.described(admin, topic, "cleanup.policy") == ("delete,compact", 1)
        with pytest.raises(KafkaException, match="Not a number of type"):
            self.alter(admin, topic, ("segment.ms", AlterConfigOpType.SET, "no"))
        assert self.described(admin, topic, "segment.ms") == ("77", 1)
        self.alter(
            admin,
            topic,
            ("segment.ms", AlterConfigOpType.DELETE, ""),
            ("cleanup.policy", AlterConfigOpType.SUBTRACT, "compact"),
        )
        assert self.described(admin, topic, "segment.ms") == before
        assert self.described(admin, topic, "cleanup.policy") == ("delete", 1)

    def test_all_configs(self, admin: AdminClient, topic: str) -> None:
        """
        All configs are set at once; the others return to their defaults.
        """
        before = self.described(admin, topic, "segment.ms")
        for configs in ({"segment.ms": "77"}, {"retention.ms": "88"}):
            resource = ConfigResource(ResourceType.TOPIC, topic, set_config=configs)
            with pytest.deprecated_call():
                (done,) = admin.alter_configs([resource]).values()
            done.result()
        assert self.described(admin, topic, "retention.ms") == ("88", 1)
        assert self.described(admin, topic, "segment.ms") == before


class TestConfluentDeletions:
    """
    An administrator deletes records.
    """

    def test_records(self, shared_kafka: Kafka, raw: Raw, topic: str) -> None:
        """
        Records before an offset are deleted, then all; an offset beyond the end is refused.
        """
        admin = AdminClient({"bootstrap.servers": shared_kafka.bootstrap})
        raw.append(topic, rows(5))

        def delete(offset: int) -> int:
            (done,) = admin.delete_records([TopicPartition(topic, 0, offset)]).values()
            low: int = done.result().low_watermark
            return low

        assert delete(3) == 3
        assert [record.offset for record in read(Confluent(shared_kafka.bootstrap), topic, 2)] == [3, 4]
        with pytest.raises(KafkaException, match="OFFSET_OUT_OF_RANGE"):
            delete(6)
        assert delete(OFFSET_END) == 5
        raw.append(topic, rows(1))
        assert [record.offset for record in read(Confluent(shared_kafka.bootstrap), topic, 1)] == [5]
