"""
Kafka's own clients in Java, driven by `java/Client.java`, and its command line tools.
"""

import re
from collections.abc import Iterator

import pytest

from kgateway.records.compression import Codec
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode
from tests.clients.behaviour import Behaviour, rows
from tests.clients.client import Connect
from tests.clients.groups import kinds
from tests.clients.groups.behaviour import StaticGrouping
from tests.clients.java_tools import SOURCES, java, tool
from tests.clients.program import Program
from tests.clients.raw import Raw
from tests.clients.seaweedmq import ALWAYS_SET, owner


@pytest.fixture(scope="module")
def connect() -> Iterator[Connect]:
    with Program(java(str(SOURCES / "Client.java"))) as program:
        yield program.connect


class TestJava(Behaviour):
    unknown_topic = ErrorCode.REQUEST_TIMED_OUT  # it waits for the topic to appear


class TestJavaGroups(StaticGrouping):
    kind = kinds.java()


class TestTools:
    def test_topics(self, shared_kafka: Kafka, name: str) -> None:
        """
        kafka-topics creates, describes, widens, lists and deletes a topic.
        """
        named = ("--topic", name)
        tool("TopicCommand", shared_kafka, "--create", *named, "--partitions", "3", "--config", "retention.ms=1000000")
        described = tool("TopicCommand", shared_kafka, "--describe", *named)
        configs = re.search(r"PartitionCount: 3\tReplicationFactor: 1\tConfigs: (\S+)$", described, re.M)
        assert configs
        assert {*configs[1].split(",")} == {"retention.ms=1000000", *ALWAYS_SET}
        assert re.findall(r"Partition: (\d)\tLeader: 1\tReplicas: 1\tIsr: 1", described) == ["0", "1", "2"]
        tool("TopicCommand", shared_kafka, "--alter", *named, "--partitions", "5")
        assert "PartitionCount: 5" in tool("TopicCommand", shared_kafka, "--describe", *named)
        assert name in tool("TopicCommand", shared_kafka, "--list").splitlines()
        tool("TopicCommand", shared_kafka, "--delete", *named)
        assert name not in tool("TopicCommand", shared_kafka, "--list").splitlines()

    def test_configs(self, shared_kafka: Kafka, topic: str) -> None:
        """
        kafka-configs sets configs of a topic, appends to lists, describes, and deletes; invalid ones are refused.
        """
        named = ("--entity-type", "topics", "--entity-name", topic)

        def configs(*arguments: str, fails: bool = False) -> str:
            return tool("ConfigCommand", shared_kafka, *arguments, *named, package="kafka.admin", fails=fails)

        configs("--alter", "--add-config", "retention.ms=77,cleanup.policy=[delete,compact]")
        described = configs("--describe")
        synonyms = r"retention\.ms=77 sensitive=false synonyms=\{DYNAMIC_TOPIC_CONFIG:retention\.ms=77, "
        assert re.search(synonyms, described)
        assert "cleanup.policy=delete,compact" in described
        assert "Not a number of type LONG" in configs("--alter", "--add-config", "retention.ms=no", fails=True)
        configs("--alter", "--delete-config", "retention.ms")
        assert "retention.ms" not in configs("--describe")

    def test_api_versions(self, shared_kafka: Kafka) -> None:
        """
        kafka-broker-api-versions finds a common version of each API, and the newest of the main ones.
        """
        told = tool("BrokerApiVersionsCommand", shared_kafka)
        assert "UNKNOWN" not in told
        newest = dict(re.findall(r"(\w+)\(\d+\): .*\[usable: (\d+)\]", told))
        assert (newest["Produce"], newest["Fetch"], newest["Metadata"]) == ("13", "18", "13")

    def test_producer_performance(self, shared_kafka: Kafka, raw: Raw, wide_topic: str) -> None:
        """
        All records of kafka-producer-perf-test are stored, by one idempotent producer.
        """
        told = tool(
            "ProducerPerformance",
            shared_kafka,
            *("--topic", wide_topic, "--num-records", "20000", "--record-size", "500", "--throughput", "-1"),
            *("--command-property", "acks=all", "compression.type=lz4"),
        )
        assert "20000 records sent" in told
        headers = [batch.header for index in range(4) for batch in raw.batches(wide_topic, index)]
        assert sum(header.records_count for header in headers) == 20_000
        assert {header.codec for header in headers} == {Codec.LZ4}
        assert len({header.producer_id for header in headers}) == 1

    def test_offsets(self, shared_kafka: Kafka, raw: Raw, wide_topic: str) -> None:
        """
        kafka-get-offsets shows both ends of each partition, and the offset of the largest timestamp.
        """
        raw.append(wide_topic, rows(7), 2)
        for time, offset in [("latest", 7), ("earliest", 0), ("max-timestamp", 6)]:
            told = tool("GetOffsetShell", shared_kafka, "--topic-partitions", f"{wide_topic}:2", "--time", time)
            assert told == f"{wide_topic}:2:{offset}\n"

    def test_console(self, shared_kafka: Kafka, topic: str) -> None:
        """
        kafka-console-consumer shows what kafka-console-producer sends.
        """
        tool(
            "ConsoleProducer",
            shared_kafka,
            *("--topic", topic, "--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
            text="h:1,i:2\tkey 1\tvalue 1\nh:3\tkey 2\tvalue 2\n",
        )
        shown = tool(
            "consumer.ConsoleConsumer",
            shared_kafka,
            *("--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "2"),
            *("--formatter-property", "print.key=true", "--formatter-property", "print.headers=true"),
        )
        assert shown == "h:1,i:2\tkey 1\tvalue 1\nh:3\tkey 2\tvalue 2\n"

    def test_cluster(self, shared_kafka: Kafka) -> None:
        """
        kafka-cluster shows the address of the gateway, and the one that leads the topics if that is another.
        """
        rows = [row.split()[:3] for row in tool("ClusterTool", shared_kafka, "list-endpoints").splitlines()[1:]]
        nodes = dict.fromkeys([owner(shared_kafka.bootstrap), shared_kafka.bootstrap])
        assert [[number, f"{host}:{port}"] for number, host, port in rows] == [
            [str(number), bootstrap] for number, bootstrap in enumerate(nodes, 1)
        ]
