"""
The current contents of a topic, as a consumer reads them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition

_PATIENCE_S = 60


class Row(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes


@dataclass(frozen=True)
class Views:
    """
    A topic as readers of committed records and readers of all records see it.
    """

    committed: Sequence[Row]
    everything: Sequence[Row]


def read_both(bootstrap: str, topic: str, partitions: int) -> Views:
    """
    Both views of a topic that nobody writes to any more.
    """
    return Views(*(read(bootstrap, topic, partitions, f"read_{which}") for which in ("committed", "uncommitted")))


def read(bootstrap: str, topic: str, partitions: int, isolation: str) -> list[Row]:
    """
    All existing records, in order within each partition.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    found, ended = list[Row](), set[int]()
    deadline = monotonic() + _PATIENCE_S
    while len(ended) < partitions:
        assert monotonic() < deadline, "the end does not come"
        message = consumer.poll(1)
        if message is None:
            continue
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        if message.error():
            ended.add(partition)
        else:
            assert offset is not None
            found.append(Row(partition, offset, message.key(), message.value() or b""))
    consumer.close()
    return found
