"""
Connections that fetch as consumers do that wait for records, each from an empty topic of its own: those of librdkafka
name the partition in each fetch; those of Java's consumer name it once, in a fetch session (KIP-227).
"""

import selectors
from collections.abc import Callable
from contextlib import ExitStack
from threading import Condition, Event, Thread

from kgateway.messages.fetch import FetchRequest
from kgateway.messages.metadata import MetadataRequest
from kgateway.testing.kafka import Kafka
from tests.faults.client import FETCH_VERSION, Client, fetch_request

CONNECTIONS = 1_000
WAIT_MS = 500
_PATIENCE_S = 60

First = Callable[[Client, str], FetchRequest]


class Fetching:
    """
    Connections that fetch until they are told to stop.
    """

    def __init__(self, port: int, first: First) -> None:
        self.answered = 0
        self._port = port
        self._first = first
        self._stop = Event()
        self._progress = Condition()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> "Fetching":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def wait_for(self, answered: int) -> None:
        """
        Wait until so many fetches have been answered.
        """
        with self._progress:
            assert self._progress.wait_for(lambda: self.answered >= answered, _PATIENCE_S), self.answered

    def _run(self) -> None:
        with ExitStack() as open_ones:
            waiting = open_ones.enter_context(selectors.DefaultSelector())
            for number in range(CONNECTIONS):
                client = open_ones.enter_context(Client(self._port))
                request = self._first(client, topic_of(number))
                waiting.register(client.socket, selectors.EVENT_READ, (client, request))
                client.send(request, FETCH_VERSION)
            while not self._stop.is_set():
                for key, _ in waiting.select():
                    client, request = key.data
                    client.receive()
                    self.answered += 1
                    request.session_epoch += bool(request.session_id)
                    client.send(request, FETCH_VERSION)
                with self._progress:
                    self._progress.notify_all()


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


def topic_of(number: int) -> str:
    return f"empty-{number}"


def make_topics(kafka: Kafka) -> None:
    topics = [MetadataRequest.Topic(name=topic_of(number)) for number in range(CONNECTIONS)]
    with Client(kafka.port) as client:
        client.ask(MetadataRequest(topics=topics), 9)
