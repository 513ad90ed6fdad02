"""
What consumers cost that wait for records: `python -m bench.waiting`.

Each reads an empty topic of its own with the usual long polls of 500 ms. Some are confluent-kafka's. The others are
connections that send nothing but the fetches of a consumer, and no heartbeat or metadata between them.

On a busy machine the connections may fetch less often than they would; so the processor time of one fetch is told too.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from time import monotonic, sleep

from confluent_kafka import Consumer, TopicPartition

from kgateway.testing.kafka import Kafka
from tests.faults.long_polls import (
    CONNECTIONS,
    WAIT_MS,
    Fetching,
    First,
    like_java,
    like_librdkafka,
    make_topics,
    topic_of,
)
from tests.faults.process import cpu_seconds

CONSUMERS = 100  # of confluent-kafka, each of which has several threads
SECONDS = 20
_SETTLE_S = 5
_WINDOWS = 4


@dataclass(frozen=True, slots=True)
class Window:
    share: float  # of a core that the server used
    fetches: float  # a second
    us_each: float


def _watched(kafka: Kafka, answered: Callable[[], int]) -> list[Window]:
    sleep(_SETTLE_S)
    return [_window(kafka, answered) for _ in range(_WINDOWS)]


def _window(kafka: Kafka, answered: Callable[[], int]) -> Window:
    began, used, before = monotonic(), cpu_seconds(kafka.pid), answered()
    sleep(SECONDS / _WINDOWS)
    seconds, used, fetches = monotonic() - began, cpu_seconds(kafka.pid) - used, answered() - before
    return Window(used / seconds, fetches / seconds, used / fetches * 1e6)


def _consumers(kafka: Kafka) -> list[Window]:
    """
    Consumers do not tell how often they fetch, so the usual number is assumed.
    """
    began = monotonic()
    with ExitStack() as open_ones:
        for number in range(CONSUMERS):
            consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "waiting", "log_level": 0})
            open_ones.callback(consumer.close)
            consumer.assign([TopicPartition(topic_of(number), 0, 0)])
        return _watched(kafka, lambda: int((monotonic() - began) * CONSUMERS * 1_000 / WAIT_MS))


def _connections(kafka: Kafka, first: First) -> list[Window]:
    with Fetching(kafka.port, first) as fetching:
        return _watched(kafka, lambda: fetching.answered)


# Who waits, how many they are, and how they are watched.
_KINDS: list[tuple[str, int, Callable[[Kafka], list[Window]]]] = [
    ("confluent-kafka", CONSUMERS, _consumers),
    ("connections that fetch like librdkafka", CONNECTIONS, lambda kafka: _connections(kafka, like_librdkafka)),
    ("connections that fetch like Java's consumer", CONNECTIONS, lambda kafka: _connections(kafka, like_java)),
]


def main() -> None:
    print(f"| who waits, {WAIT_MS} ms | number | best of {_WINDOWS} | whole {SECONDS} s | fetches/s | µs a fetch |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, count, wait in _KINDS:
        with Kafka("--log-level", "warn", "--broker", "memory:") as kafka:
            make_topics(kafka)
            found = wait(kafka)
        best, usual = min(window.share for window in found), sum(window.share for window in found) / len(found)
        rate, each = (sum(window.fetches for window in found) / len(found), min(window.us_each for window in found))
        print(f"| {name} | {count:,} | {best:.1%} | {usual:.1%} | {rate:,.0f} | {each:.0f} |", flush=True)


if __name__ == "__main__":
    main()
