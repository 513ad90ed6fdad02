"""
Topics of a running gateway, and Spark's view of them.
"""

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its stubs do not pass it on

from kgateway.testing.kafka import Kafka

Row = dict[str, Any]
PARTITIONS = 2
_names = (f"topic-{number}" for number in itertools.count())


@dataclass
class Topics:
    """
    Creates topics, fills them, and has Spark read them.
    """

    kafka: Kafka
    spark: Any
    admin: AdminClient = field(init=False)

    def __post_init__(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap})

    def make(self, *rows: Row, partitions: int = PARTITIONS, name: str = "") -> str:
        """
        Create a topic with these records, whatever their age; returns its name.
        """
        name = name or next(_names)
        self.admin.create_topics([NewTopic(name, partitions, 1, config={"retention.ms": "-1"})])[name].result()
        self.fill(name, rows)
        return name

    def fill(self, topic: str, rows: Iterable[Row]) -> None:
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap, "linger.ms": 5})
        for row in rows:
            producer.produce(topic, **row)
        assert producer.flush(30) == 0

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result()

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        place = TopicPartition(topic, partition, before)
        self.admin.delete_records([place])[place].result()

    def options(self, topic: str, **more: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.kafka.bootstrap, "subscribe": topic} | more

    def read(self, topic: str, schema: str | None = None, **more: str) -> Any:
        reader = self.spark.read.format("kgateway").options(**self.options(topic, **more))
        return (reader.schema(schema) if schema else reader).load()

    def stream(self, topic: str, **more: str) -> Any:
        return self.spark.readStream.format("kgateway").options(**self.options(topic, **more)).load()


def numbered(count: int, first: int = 0) -> list[Row]:
    """
    Numbered records, in the two partitions by turns.
    """
    return [
        {"value": b"%d" % number, "key": b"k%d" % number, "partition": number % PARTITIONS, "timestamp": 1_000 + number}
        for number in range(first, first + count)
    ]


def numbers(rows: Sequence[Any]) -> list[int]:
    return sorted(int(row["value"]) for row in rows)


def refused(words: str) -> Any:
    """
    Expects that a query fails with these words.
    """
    from pyspark.errors import PySparkException

    return pytest.raises(PySparkException, match=re.escape(words))
