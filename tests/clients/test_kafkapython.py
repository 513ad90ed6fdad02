"""
kafka-python.
"""

from contextlib import closing

import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from kgateway.records.record import Header, Record
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode
from tests.clients.behaviour import START_MS, Behaviour, read, rows
from tests.clients.client import Client, Connect
from tests.clients.groups.behaviour import StaticGrouping
from tests.clients.groups.kinds import KAFKA_PYTHON
from tests.clients.kafkapython_client import KafkaPython
from tests.clients.raw import Raw


@pytest.fixture(scope="module")
def connect() -> Connect:
    return KafkaPython


class TestKafkaPython(Behaviour):
    """
    The tests of every client pass, except for what the library lacks.
    """

    unknown_topic = ErrorCode.REQUEST_TIMED_OUT  # it waits for the topic to appear

    def test_null_headers_are_kept(self, client: Client, raw: Raw, topic: str) -> None:
        """
        The library refuses to send a header without a value; it can read one.
        """
        with pytest.raises(TypeError):
            client.send(topic, [Record(0, START_MS, b"key", b"value", (Header("null", None),))])
        assert raw.records(topic) == []


class TestKafkaPythonGroups(StaticGrouping):
    kind = KAFKA_PYTHON


class TestKafkaPythonConfigs:
    """
    An administrator sets configs of a topic.
    """

    def configs(self, admin: KafkaAdminClient, topic: str) -> dict[str, str]:
        described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        return {name: found["value"] for name, found in described["topic"][topic].items()}

    @pytest.mark.parametrize("incremental", [True, False])
    def test_set_and_reset(self, incremental: bool, shared_kafka: Kafka, topic: str) -> None:
        """
        Configs are set and reset to their defaults, one by one or all at once; invalid ones are refused.
        """
        with closing(KafkaAdminClient(bootstrap_servers=shared_kafka.bootstrap)) as admin:
            before = self.configs(admin, topic)

            def alter(**configs: str) -> str:
                named = {name.replace("_", "."): value for name, value in configs.items()}
                resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=named)
                answered: str = admin.alter_configs([resource], incremental=incremental)["topic"][topic]
                return answered

            assert [alter(segment_ms="77"), alter(flush_ms="88")] == ["OK", "OK"]
            assert self.configs(admin, topic) == before | {"segment.ms": "77", "flush.ms": "88"}
            assert "InvalidConfigurationError" in alter(segment_ms="no")
            resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"segment.ms": ""})
            admin.reset_configs([resource], incremental=incremental)
            assert self.configs(admin, topic) == before | {"flush.ms": "88"}


class TestKafkaPythonDeletions:
    """
    An administrator deletes records.
    """

    def test_records(self, shared_kafka: Kafka, raw: Raw, topic: str) -> None:
        """
        Records before an offset are deleted, then all.
        """
        raw.append(topic, rows(5))
        place = TopicPartition(topic, 0)
        with closing(KafkaAdminClient(bootstrap_servers=shared_kafka.bootstrap)) as admin:
            assert admin.delete_records({place: 3})[place]["low_watermark"] == 3
            assert [record.offset for record in read(KafkaPython(shared_kafka.bootstrap), topic, 2)] == [3, 4]
            assert admin.delete_records({place: -1})[place]["low_watermark"] == 5
