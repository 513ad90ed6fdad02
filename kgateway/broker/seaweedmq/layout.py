"""
Where SeaweedMQ keeps a topic in the filer, and what the names there say.

    /topics/kafka/orders/                     a topic
        topic.conf                            its partitions and columns
        v2026-08-22-10-00-00/                 a generation of partitions, named by the second in which it was made
            0000-0630/                        a partition: its range of the ring, without the end
                2026-08-22-10-00-05           a log file, named by the second of the first message in it
                2026-08-22-10-00-05.parquet   an archive that an operator made of log files
                checkpoint.offset             the last offset that the broker gave
                consumers/                    positions of the broker's own consumers

All times are UTC. A generation is known by nanoseconds, of which its folder tells only the second.
"""

import re
from calendar import timegm
from time import gmtime, strftime, strptime
from typing import NamedTuple

from kgateway.coordinating.places import STATE_TOPICS
from kgateway.wire.errors import ErrorCode, KafkaError

NAMESPACE = "kafka"
TOPIC_CONF = "topic.conf"
CHECKPOINT = "checkpoint.offset"
RING_SIZE = 2520  # also the most partitions that a topic can have
SECOND_NS = 1_000_000_000
SLOTS = 32  # of the ledger's ring for each partition

_SECOND = "%Y-%m-%d-%H-%M-%S"
_RANGE = re.compile("([0-9]{4})-([0-9]{4})")


class Range(NamedTuple):
    """
    A part of the ring, without its end.
    """

    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.start:04}-{self.stop:04}"


def namespace_folder(namespace: str = NAMESPACE) -> str:
    """
    The folder of all topics.
    """
    return f"/topics/{namespace}"


def topic_folder(topic: str, namespace: str = NAMESPACE) -> str:
    """
    The folder of a topic.
    """
    return f"{namespace_folder(namespace)}/{topic}"


def partition_folder(topic: str, unix_time_ns: int, part: Range, namespace: str = NAMESPACE) -> str:
    """
    The folder of a partition of one generation.
    """
    return f"{topic_folder(topic, namespace)}/{generation_name(unix_time_ns)}/{part}"


def generation_name(unix_time_ns: int) -> str:
    """
    The folder of a generation, within that of the topic.
    """
    return "v" + _second_name(unix_time_ns // SECOND_NS)


def generation_second(name: str) -> int | None:
    """
    The second in which the generation of this folder was made; `None` if it is no generation's.
    """
    return _second(name[1:]) if name.startswith("v") else None


def range_named(name: str) -> Range | None:
    """
    The range of the partition that has this folder in one of a generation; `None` if it is no partition's.
    """
    named = _RANGE.fullmatch(name)
    return Range(int(named[1]), int(named[2])) if named else None


def log_name(ts_ns: int) -> str:
    """
    The log file that begins with a message of this time.
    """
    return _second_name(ts_ns // SECOND_NS)


def log_second(name: str) -> int | None:
    """
    The second of the first message in the log file of this name; `None` if it is no log file.
    """
    return _second(name)


def is_log_file(name: str) -> bool:
    """
    Whether this file of a partition holds messages as the broker wrote them.
    """
    return log_second(name) is not None


def ring_range(index: int, count: int) -> Range:
    """
    The range of a partition where a topic has this many.
    """
    size = RING_SIZE // count
    return Range(index * size, (index + 1) * size if index < count - 1 else RING_SIZE)


def ring_ranges(count: int) -> list[Range]:
    """
    The ranges of all partitions, by Kafka's index.
    """
    check_count(count)
    return [ring_range(index, count) for index in range(count)]


def check_count(count: int) -> None:
    """
    Refuse a number of partitions that a broker of SeaweedMQ would not survive, or could not divide its ring by.
    """
    if not 1 <= count <= RING_SIZE:
        reason = f"a topic on SeaweedMQ has 1 to {RING_SIZE} partitions, not {count}"
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, reason)


def may_be_topic(name: str) -> bool:
    """
    Whether Kafka's clients may have a topic of this name: one of its folder, and not of what is ours.
    """
    return not name.startswith(".") and name not in STATE_TOPICS.values()


def check_name(name: str) -> None:
    """
    Refuse a name that is ours, or SeaweedMQ's.
    """
    if not may_be_topic(name):
        reason = (
            f"no client can have a topic {name} on SeaweedMQ: such a name is the gateway's own, or begins with a dot"
        )
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)


def slots(index: int) -> Range:
    """
    The part of its own ring under which the ledger keeps a partition, whatever range the cluster gave it.
    """
    return Range(SLOTS * index, SLOTS * (index + 1))


def _second_name(second: int) -> str:
    return strftime(_SECOND, gmtime(second))


def _second(name: str) -> int | None:
    try:
        second = timegm(strptime(name, _SECOND))
    except ValueError:
        return None
    return second if _second_name(second) == name else None
