"""
Topics of an Apache Kafka, with every kind of record.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its stubs do not pass it on

PARTITIONS = 3
START_MS = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
Row = dict[str, Any]
_names = (f"topic-{number}" for number in itertools.count())


@dataclass
class Topics:
    """
    Creates topics and fills them.
    """

    bootstrap: str
    admin: AdminClient = field(init=False)

    def __post_init__(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})

    def make(self, *rows: Row, name: str = "", **config: str) -> str:
        """
        Create a topic with these records; returns its name.
        """
        name = name or next(_names)
        new = NewTopic(name, PARTITIONS, 1, config={"retention.ms": "-1"} | config)
        self.admin.create_topics([new])[name].result()
        self.fill(name, rows)
        return name

    def fill(self, topic: str, rows: Iterable[Row], **settings: Any) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5} | settings)
        for row in rows:
            producer.produce(topic, **row)
        assert producer.flush(30) == 0

    def transact(self, topic: str, rows: Iterable[Row], *, commits: bool) -> None:
        """
        Append records in a transaction with this outcome.
        """
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": topic})
        producer.init_transactions(30)
        producer.begin_transaction()
        for row in rows:
            producer.produce(topic, **row)
        assert producer.flush(30) == 0
        (producer.commit_transaction if commits else producer.abort_transaction)(30)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        place = TopicPartition(topic, partition, before)
        self.admin.delete_records([place])[place].result()


def numbered(count: int, first: int = 0) -> list[Row]:
    """
    Numbered records, a second apart, in the partitions by turns.
    """
    return [
        {
            "value": b"%d" % number,
            "key": b"k%d" % (number % 7),
            "partition": number % PARTITIONS,
            "timestamp": START_MS + number * 1_000,
        }
        for number in range(first, first + count)
    ]


def odd() -> list[Row]:
    """
    Records without key, value or both, empty ones, bytes that are no text, and headers of all kinds.
    """
    headers: list[list[tuple[str, bytes | None]]] = [
        [],
        [("one", b"1")],
        [("none", None), ("empty", b""), ("", b"nameless")],
        [("same", b"a"), ("same", b"b"), ("été", bytes(range(256)))],
    ]
    contents = [(None, None), (b"", b""), (None, b"value"), (b"key", None), (b"\xff\xfe", b"\x00" * 300)]
    return [
        {"key": key, "value": value, "headers": each, "partition": index % PARTITIONS, "timestamp": START_MS + index}
        for index, ((key, value), each) in enumerate(itertools.product(contents, headers))
    ]
