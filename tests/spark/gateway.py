"""
Topics of a gateway that runs, and Spark's view of them.
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
    Makes topics and fills them, and has Spark read them.
    """

    kafka: Kafka
    spark: Any
    admin: AdminClient = field(init=False)

    def __post_init__(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap})

    def make(self, *rows: Row, partitions: int = PARTITIONS, name: str = "") -> str:
        """
        A topic with these records, which may be as old as they like; its name.
        """
        name = name or next(_names)
        self.admin.create_topics([NewTopic(name, partitions, 1, config={"retention.ms": "-1"})])[name].result()
        self.fill(name, rows)
        return name

    def fill(self, topic: str, rows: Iterable[Row]) -> None:
        """
        More records.
        """
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap, "linger.ms": 5})
        for row in rows:
            producer.produce(topic, **row)
        assert producer.flush(30) == 0

    def delete(self, topic: str) -> None:
        """
        Have it gone.
        """
        self.admin.delete_topics([topic])[topic].result()

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """
        Have the first records gone.
        """
        place = TopicPartition(topic, partition, before)
        self.admin.delete_records([place])[place].result()

    def options(self, topic: str, **more: str) -> dict[str, str]:
        """
        What a query of the topic says.
        """
        return {"kafka.bootstrap.servers": self.kafka.bootstrap, "subscribe": topic} | more

    def read(self, topic: str, schema: str | None = None, **more: str) -> Any:
        """
        The topic as a DataFrame.
        """
        reader = self.spark.read.format("kgateway").options(**self.options(topic, **more))
        return (reader.schema(schema) if schema else reader).load()

    def stream(self, topic: str, **more: str) -> Any:
        """
        The topic as a stream.
        """
        return self.spark.readStream.format("kgateway").options(**self.options(topic, **more)).load()


def numbered(count: int, first: int = 0) -> list[Row]:
    """
    Records that tell their numbers, one in the one partition, the next in the other.
    """
    return [
        {"value": b"%d" % number, "key": b"k%d" % number, "partition": number % PARTITIONS, "timestamp": 1_000 + number}
        for number in range(first, first + count)
    ]


def numbers(rows: Sequence[Any]) -> list[int]:
    """
    The numbers that these rows tell.
    """
    return sorted(int(row["value"]) for row in rows)


def refused(words: str) -> Any:
    """
    Expects that a query fails, and says so in these words.
    """
    from pyspark.errors import PySparkException

    return pytest.raises(PySparkException, match=re.escape(words))
