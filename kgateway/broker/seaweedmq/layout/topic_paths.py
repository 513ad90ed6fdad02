"""
The names of SeaweedMQ's folders and files in the filer.

    /topics/kafka/orders/                     a topic
        topic.conf                            its partitions and columns
        v2026-08-22-10-00-00/                 a generation of partitions, named by the second in which it was made
            0000-0630/                        a partition: its range of the ring, without the end
                2026-08-22-10-00-05           a log file, named by the second of the first message in it
                2026-08-22-10-00-05.parquet   an archive that an operator made of log files
                checkpoint.offset             the last offset that the broker gave
                shifts.offset                 ours: how offsets continue after a broker was killed, if it matters
                consumers/                    positions of the broker's own consumers

All times are UTC. A generation is known by nanoseconds, of which its folder tells only the second.
"""

from calendar import timegm
from time import gmtime, strftime, strptime
from typing import NamedTuple

from kgateway.coordination.placement import STATE_TOPICS
from kgateway.wire.errors import ErrorCode, KafkaError

NAMESPACE = "kafka"
TOPIC_CONF = "topic.conf"
CHECKPOINT = "checkpoint.offset"
RING_SIZE = 2520  # also the most partitions that a topic can have
SECOND_NS = 1_000_000_000

_SECOND = "%Y-%m-%d-%H-%M-%S"


class RingRange(NamedTuple):
    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.start:04}-{self.stop:04}"


def namespace_folder(namespace: str = NAMESPACE) -> str:
    return f"/topics/{namespace}"


def topic_folder(topic: str, namespace: str = NAMESPACE) -> str:
    return f"{namespace_folder(namespace)}/{topic}"


def partition_folder(topic: str, unix_time_ns: int, part: RingRange, namespace: str = NAMESPACE) -> str:
    """
    The folder of a partition of one generation.
    """
    return f"{topic_folder(topic, namespace)}/{generation_name(unix_time_ns)}/{part}"


def side_folder(topic: str, index: int, namespace: str = NAMESPACE) -> str:
    """
    The folder of what SeaweedMQ does not store of a partition.
    """
    return f"{topic_folder(topic, namespace)}/.kgateway/{index}"


def generation_name(unix_time_ns: int) -> str:
    return "v" + _second_name(unix_time_ns // SECOND_NS)


def log_name(ts_ns: int) -> str:
    """
    The name of the log file that begins with a message of this time.
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


def ring_range(index: int, count: int) -> RingRange:
    """
    The range of a partition of a topic with this many partitions.
    """
    size = RING_SIZE // count
    return RingRange(index * size, (index + 1) * size if index < count - 1 else RING_SIZE)


def ring_ranges(count: int) -> list[RingRange]:
    check_count(count)
    return [ring_range(index, count) for index in range(count)]


def check_count(count: int) -> None:
    """
    Refuse a number of partitions that would end a broker of SeaweedMQ, or by which it cannot divide its ring.
    """
    if not 1 <= count <= RING_SIZE:
        reason = f"a topic on SeaweedMQ has 1 to {RING_SIZE} partitions, not {count}"
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, reason)


def may_be_topic(name: str) -> bool:
    """
    Whether Kafka's clients may have a topic of this name: no name of ours, and none with a dot at its front.
    """
    return not name.startswith(".") and name not in STATE_TOPICS.values()


def check_name(name: str) -> None:
    """
    Refuse a name that is ours, or SeaweedMQ's.
    """
    if not may_be_topic(name):
        reason = (
            f"clients cannot create a topic {name} on SeaweedMQ: the name is reserved for the gateway, or begins with "
            "a dot"
        )
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)


def _second_name(second: int) -> str:
    return strftime(_SECOND, gmtime(second))


def _second(name: str) -> int | None:
    try:
        second = timegm(strptime(name, _SECOND))
    except ValueError:
        return None
    return second if _second_name(second) == name else None
