"""
What consumers cost that wait for records: `python -m bench.waiting`.

Each reads an empty topic of its own with the usual long polls of 500 ms. Some are confluent-kafka's. The others are
connections that send nothing but the fetches of a consumer, and no heartbeat or metadata between them: those of
librdkafka name the partition in each fetch; those of Java's consumer name it once, in a fetch session (KIP-227).

On a busy machine the connections may fetch less often than they would; so the processor time of one fetch is told too.
"""

import selectors
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Event, Thread
from time import monotonic, sleep

from confluent_kafka import Consumer, TopicPartition

from kgateway.messages.fetch import FetchRequest
from kgateway.messages.metadata import MetadataRequest
from kgateway.testing.kafka import Kafka
from tests.faults.client import FETCH_VERSION, Client, fetch_request
from tests.faults.process import cpu_seconds

CONSUMERS = 100  # of confluent-kafka, each of which has several threads
CONNECTIONS = 1_000
SECONDS = 20
WAIT_MS = 500
_SETTLE_S = 5
_WINDOWS = 4

First = Callable[[Client, str], FetchRequest]


@dataclass(frozen=True, slots=True)
class Window:
    share: float  # of a core that the server used
    fetches: float  # a second
    us_each: float


class Fetching:
    """
    Connections that fetch until they are told to stop.
    """

    def __init__(self, port: int, first: First) -> None:
        self.answered = 0
        self._port = port
        self._first = first
        self._stop = Event()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> "Fetching":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with ExitStack() as open_ones:
            waiting = open_ones.enter_context(selectors.DefaultSelector())
            for number in range(CONNECTIONS):
                client = open_ones.enter_context(Client(self._port))
                request = self._first(client, _topic(number))
                waiting.register(client.socket, selectors.EVENT_READ, (client, request))
                client.send(request, FETCH_VERSION)
            while not self._stop.is_set():
                for key, _ in waiting.select():
                    client, request = key.data
                    client.receive()
                    self.answered += 1
                    request.session_epoch += bool(request.session_id)
                    client.send(request, FETCH_VERSION)


def like_librdkafka(client: Client, topic: str) -> FetchRequest:
    return fetch_request(topic, max_wait_ms=WAIT_MS)


def like_java(client: Client, topic: str) -> FetchRequest:
    """
    Open a session. The fetches after it name no partition.
    """
    opening = fetch_request(topic)
    opening.session_epoch = 0
    opened = client.ask(opening, FETCH_VERSION)
    assert opened.session_id
    return FetchRequest(max_wait_ms=WAIT_MS, min_bytes=1, session_id=opened.session_id, session_epoch=1, topics=[])


def _topic(number: int) -> str:
    return f"empty-{number}"


def _make_topics(kafka: Kafka) -> None:
    topics = [MetadataRequest.Topic(name=_topic(number)) for number in range(CONNECTIONS)]
    with Client(kafka.port) as client:
        client.ask(MetadataRequest(topics=topics), 9)


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
            consumer.assign([TopicPartition(_topic(number), 0, 0)])
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
            _make_topics(kafka)
            found = wait(kafka)
        best, usual = min(window.share for window in found), sum(window.share for window in found) / len(found)
        rate, each = (sum(window.fetches for window in found) / len(found), min(window.us_each for window in found))
        print(f"| {name} | {count:,} | {best:.1%} | {usual:.1%} | {rate:,.0f} | {each:.0f} |", flush=True)


if __name__ == "__main__":
    main()
