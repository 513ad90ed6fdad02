"""
What a consumer gets of a topic by now.
"""

from time import monotonic
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition

_PATIENCE_S = 60


class Row(NamedTuple):
    """
    A record.
    """

    partition: int
    key: bytes | None
    value: bytes


def read(bootstrap: str, topic: str, partitions: int, isolation: str) -> list[Row]:
    """
    All records that are there, in order within each partition.
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
        partition = message.partition()
        assert partition is not None
        if message.error():
            ended.add(partition)
        else:
            found.append(Row(partition, message.key(), message.value() or b""))
    consumer.close()
    return found
