"""
A well-behaved client beside hostile ones: it produces and reads on one connection and remembers what was
acknowledged.
"""

from threading import Event, Thread
from time import monotonic
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, TopicPartition

from kgateway.messages.metadata import MetadataRequest
from tests.faults.client import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    Client,
    batch_of,
    fetch_request,
    produce_request,
    produced,
)

WAIT_S = 5.0  # for any response, on a busy machine
_PAUSE_S = 0.005
_READ_EVERY = 50


class Witness:
    """
    Runs in a thread of its own while entered.
    """

    def __init__(self, port: int, topic: str) -> None:
        self.acknowledged: list[bytes] = []  # by offset
        self.longest_wait_s = 0.0
        self.failure: BaseException | None = None
        self._port = port
        self._topic = topic
        self._stop = Event()
        self._thread = Thread(target=self._run)

    def read_back(self) -> list[bytes]:
        """
        The values in the topic as another client reads them.
        """
        consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{self._port}", "group.id": "unused"})
        try:
            consumer.assign([TopicPartition(self._topic, 0, 0)])
            found: list[bytes] = []
            while len(found) < len(self.acknowledged):
                messages = consumer.consume(10_000, timeout=WAIT_S)
                assert messages, f"{len(found)} records of {len(self.acknowledged)} came back"
                assert not any(message.error() for message in messages), messages[0].error()
                found += [message.value() or b"" for message in messages]
            return found
        finally:
            consumer.close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with Client(self._port, patience_s=WAIT_S) as client:
                while not self._stop.wait(_PAUSE_S):
                    began = monotonic()
                    self._work(client)
                    self.longest_wait_s = max(self.longest_wait_s, monotonic() - began)
        except BaseException as failure:
            self.failure = failure

    def _work(self, client: Client) -> None:
        offset = len(self.acknowledged)
        value = b"promised %d " % offset + bytes(range(256))
        answer = produced(client.ask(produce_request(self._topic, batch_of(value)), PRODUCE_VERSION))
        assert (answer.error_code, answer.base_offset) == (0, offset), f"{answer} is no answer to offset {offset}"
        self.acknowledged.append(value)
        if offset % _READ_EVERY == 0:
            read = client.ask(fetch_request(self._topic, offset=offset), FETCH_VERSION)
            assert value in bytes(read.responses[0].partitions[0].records)
            known = client.ask(MetadataRequest(topics=[MetadataRequest.Topic(name=self._topic)]), 9)
            assert [topic.error_code for topic in known.topics] == [0]
