"""
What consumers cost that wait for records: `python -m bench.waiting`.

Each reads an empty topic of its own with the usual long polls of 500 ms. Once they are confluent-kafka's; once they are
connections that send nothing but those fetches, and no heartbeat or metadata between them.
"""

import selectors
from contextlib import ExitStack
from threading import Event, Thread
from time import monotonic, sleep

from confluent_kafka import Consumer, TopicPartition

from kgateway.messages.metadata import MetadataRequest
from kgateway.testing.kafka import Kafka
from tests.faults.client import FETCH_VERSION, Client, fetch_request
from tests.faults.process import cpu_seconds

CONSUMERS = 100
SECONDS = 20
WAIT_MS = 500
_SETTLE_S = 3
_WINDOWS = 4


def _make_topics(kafka: Kafka) -> None:
    topics = [MetadataRequest.Topic(name=f"empty-{number}") for number in range(CONSUMERS)]
    with Client(kafka.port) as client:
        client.ask(MetadataRequest(topics=topics), 9)


def _watched(kafka: Kafka) -> list[float]:
    """
    Parts of a core that the server used, window by window.
    """
    found = []
    for _ in range(_WINDOWS):
        began, used = monotonic(), cpu_seconds(kafka.pid)
        sleep(SECONDS / _WINDOWS)
        found.append((cpu_seconds(kafka.pid) - used) / (monotonic() - began))
    return found


def consumers(kafka: Kafka) -> list[float]:
    with ExitStack() as open_ones:
        for number in range(CONSUMERS):
            consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "waiting", "log_level": 0})
            open_ones.callback(consumer.close)
            consumer.assign([TopicPartition(f"empty-{number}", 0, 0)])
        sleep(_SETTLE_S)
        return _watched(kafka)


def connections(kafka: Kafka) -> list[float]:
    stop = Event()
    thread = Thread(target=_fetch_on, args=[kafka.port, stop])
    thread.start()
    try:
        sleep(_SETTLE_S)
        return _watched(kafka)
    finally:
        stop.set()
        thread.join()


def _fetch_on(port: int, stop: Event) -> None:
    with ExitStack() as open_ones:
        answered = open_ones.enter_context(selectors.DefaultSelector())
        asking = [fetch_request(f"empty-{number}", max_wait_ms=WAIT_MS) for number in range(CONSUMERS)]
        for request in asking:
            client = open_ones.enter_context(Client(port))
            answered.register(client.socket, selectors.EVENT_READ, (client, request))
            client.send(request, FETCH_VERSION)
        while not stop.is_set():
            for key, _ in answered.select():
                client, request = key.data
                client.receive()
                client.send(request, FETCH_VERSION)


def main() -> None:
    title = f"{CONSUMERS} waiting consumers, {WAIT_MS} ms"
    print(f"| {title} | best of {_WINDOWS} windows | whole {SECONDS} s | ms a fetch |")
    print("|---|---:|---:|---:|")
    for name, wait in (("confluent-kafka", consumers), ("connections that only fetch", connections)):
        with Kafka("--log-level", "warn", "--broker", "memory:") as kafka:
            _make_topics(kafka)
            shares = wait(kafka)
        usual = sum(shares) / len(shares)
        each_ms = min(shares) * WAIT_MS / CONSUMERS
        print(f"| {name} | {min(shares):.1%} | {usual:.1%} | {each_ms:.2f} |", flush=True)


if __name__ == "__main__":
    main()
