"""
The limits of memory and patience that keep some clients from taking the gateway away from the others.
"""

import selectors
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Thread
from typing import cast

import pytest

from kgateway.messages.api_versions import ApiVersionsRequest
from kgateway.messages.fetch import FetchRequest
from kgateway.messages.metadata import MetadataRequest
from kgateway.messages.produce import ProduceRequest
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode
from tests.faults.client import (
    FETCH_VERSION,
    PATIENCE_S,
    PRODUCE_VERSION,
    Client,
    batch_of,
    fetch_request,
    frame_of,
    produce_request,
    produced,
)
from tests.faults.process import MIB, peak_resident_bytes

MEMORY_BYTES = 256 * MIB
LARGEST_BYTES = 100 * MIB  # of a request, by default
# By default the system keeps 50 connections for who does not accept them fast enough, and has others try again later.
_FOR_CROWDS = "tcp:0:interface=127.0.0.1:backlog=2000"


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    """
    A gateway that holds few requests at once.
    """
    with Kafka("--request-memory-bytes", str(MEMORY_BYTES), "--listen", _FOR_CROWDS) as kafka:
        yield kafka


def check_served(client: Client, topic: str) -> None:
    """
    The client gets back the record it produces.
    """
    answer = produced(client.ask(produce_request(topic, batch_of(b"value")), PRODUCE_VERSION))
    assert answer.error_code == ErrorCode.NONE
    read = client.ask(fetch_request(topic, offset=answer.base_offset), FETCH_VERSION).responses[0].partitions[0]
    assert b"value" in bytes(read.records)


def create(client: Client, topic: str) -> None:
    """
    Have the topic made as a producer does.
    """
    answer = client.ask(MetadataRequest(topics=[MetadataRequest.Topic(name=topic)]), 9)
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.NONE]


def test_a_client_that_sends_byte_by_byte(kafka: Kafka) -> None:
    """
    Between any two bytes of a slow client another one is served, and the slow one in the end.
    """
    with Client(kafka.port) as slow, Client(kafka.port) as other:
        create(other, "slow")
        for byte in frame_of(ApiVersionsRequest(), 0):
            slow.socket.sendall(bytes([byte]))
            check_served(other, "slow")
        assert slow.answer(ApiVersionsRequest, 0, 1).api_keys


@pytest.mark.parametrize(("size", "count"), [(LARGEST_BYTES, 10), (64 << 10, 500)], ids=["large", "small"])
def test_sizes_that_are_only_declared(kafka: Kafka, size: int, count: int) -> None:
    """
    More memory than there is for requests is declared, in large frames or in small ones, and never sent: clients whose
    requests come at once do not notice.
    """
    with declared(kafka, size, count), Client(kafka.port) as other:
        create(other, "declared")
        for _ in range(100):
            check_served(other, "declared")


def test_small_requests_have_memory_of_their_own(kafka: Kafka) -> None:
    """
    Nor do, where large frames are declared, those whose small requests come in parts.
    """
    with declared(kafka, LARGEST_BYTES, 10), Client(kafka.port) as other, Client(kafka.port) as slow:
        create(other, "declared")
        frame = frame_of(ApiVersionsRequest(), 0)
        slow.socket.sendall(frame[:-1])
        check_served(other, "declared")
        slow.socket.sendall(frame[-1:])
        assert slow.answer(ApiVersionsRequest, 0, 1).api_keys


@contextmanager
def declared(kafka: Kafka, size: int, count: int) -> Iterator[None]:
    """
    Connections that have begun a frame of this size, and say nothing more.
    """
    with ExitStack() as open_ones:
        for _ in range(count):
            silent = open_ones.enter_context(Client(kafka.port))
            silent.socket.sendall(struct.pack(">ihhi", size, 0, PRODUCE_VERSION, 1))
        yield


def test_large_requests_at_once() -> None:
    """
    Ten clients send 100 MB each at the same time: all are answered, and memory stays within bounds.

    The bound: what an idle gateway has; the memory for requests; and of the one frame that is just complete a copy, for
    its pieces are joined. It holds although the requests are four times that much together.
    """
    # Ten batches, each too large for its topic.
    part = batch_of(bytes(10 * MIB - 1_000))
    request = produce_request("large", part)
    [topic] = request.topic_data
    topic.partition_data *= 10
    frame = frame_of(request, PRODUCE_VERSION)
    assert 0.95 * LARGEST_BYTES < len(frame) < LARGEST_BYTES
    answers: list[list[int]] = []

    def send(client: Client) -> None:
        client.socket.sendall(frame)
        response = client.answer(ProduceRequest, PRODUCE_VERSION, 1)
        answers.append([partition.error_code for partition in response.responses[0].partition_responses])

    with Kafka("--request-memory-bytes", str(MEMORY_BYTES)) as kafka, ExitStack() as open_ones:
        clients = [open_ones.enter_context(Client(kafka.port)) for _ in range(10)]
        create(clients[0], "large")
        idle_bytes = peak_resident_bytes(kafka.pid)
        threads = [Thread(target=send, args=[client]) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        grown = peak_resident_bytes(kafka.pid) - idle_bytes
    assert answers == [[ErrorCode.MESSAGE_TOO_LARGE] * 10] * 10
    assert grown < MEMORY_BYTES + LARGEST_BYTES + 16 * MIB, f"{grown / MIB:.0f} MiB"


def test_a_batch_as_large_as_a_request(kafka: Kafka) -> None:
    """
    A batch above the limit of its topic is refused by its name, and the connection goes on.
    """
    with Client(kafka.port) as client:
        create(client, "batch")
        answer = produced(client.ask(produce_request("batch", batch_of(bytes(90 * MIB))), PRODUCE_VERSION))
        assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
        check_served(client, "batch")


@pytest.fixture(scope="module")
def tight() -> Iterator[Kafka]:
    """
    A gateway that holds one large request at a time.
    """
    with Kafka("--max-request-bytes", "8MiB", "--request-memory-bytes", "8MiB") as kafka:
        yield kafka


_DIES_HALF_WAY = """
import socket, sys, time
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall((8 << 20).to_bytes(4, "big") + bytes(4 << 20))
print("sent", flush=True)
time.sleep(60)
"""


def test_a_client_that_is_killed_half_way(tight: Kafka) -> None:
    """
    What a request reserved that never became whole is free for others as soon as its client is gone.
    """
    command = [sys.executable, "-c", _DIES_HALF_WAY, str(tight.port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as dying:
        assert dying.stdout
        assert dying.stdout.readline() == "sent\n"
        with waiting_for_memory(tight.port):
            dying.send_signal(signal.SIGKILL)


def test_a_connection_that_is_reset_half_way(tight: Kafka) -> None:
    """
    The same where the connection is reset.
    """
    with Client(tight.port) as broken:
        broken.socket.sendall((8 * MIB).to_bytes(4, "big") + bytes(4 * MIB))
        with waiting_for_memory(tight.port):
            broken.reset()


@contextmanager
def waiting_for_memory(port: int) -> Iterator[None]:
    """
    A client that meanwhile sends a large request, and must be answered.
    """
    codes: list[int] = []
    with Client(port) as client:
        create(client, "half")  # the server has seen by now what was sent before

        def ask() -> None:
            codes.append(produced(client.ask(produce_request("half", bytes(7 * MIB)), PRODUCE_VERSION)).error_code)

        thread = Thread(target=ask)
        thread.start()
        yield
        thread.join()
    assert codes == [ErrorCode.INVALID_RECORD]


def test_a_client_that_does_not_read(kafka: Kafka) -> None:
    """
    Who asks for more and more and reads nothing is not read from any more, so memory stays bounded; others are served.
    """
    with Client(kafka.port) as deaf, Client(kafka.port) as other:
        create(other, "deaf")
        batch = batch_of(bytes(MIB // 2))
        for _ in range(8):
            other.ask(produce_request("deaf", batch), PRODUCE_VERSION)
        before = peak_resident_bytes(kafka.pid)
        asking = frame_of(fetch_request("deaf", max_bytes=4 * MIB), FETCH_VERSION)
        deaf.socket.setblocking(False)
        sent = 0
        while sent < 10_000:
            try:
                deaf.socket.send(asking)
            except BlockingIOError:
                break
            sent += 1
            if sent % 100 == 0:
                check_served(other, "deaf")
        check_served(other, "deaf")
        assert peak_resident_bytes(kafka.pid) - before < 64 * MIB
        deaf.socket.settimeout(20)
        answer = deaf.answer(FetchRequest, FETCH_VERSION, 1)
        assert len(answer.responses[0].partitions[0].records) > MIB, "of which a log gives two at once"


def test_a_crowd(kafka: Kafka) -> None:
    """
    Two thousand clients that connect at the same moment are all served.
    """
    with ExitStack() as open_ones:
        waiting = open_ones.enter_context(selectors.DefaultSelector())
        for _ in range(2_000):
            connection = open_ones.enter_context(socket.socket())
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", kafka.port))
            waiting.register(connection, selectors.EVENT_WRITE)
        answered = 0
        while answered < 2_000:
            events = waiting.select(PATIENCE_S)
            assert events, f"{answered} are served, and then no more"
            for key, event in events:
                connection = cast(socket.socket, key.fileobj)
                if event & selectors.EVENT_WRITE:
                    connection.send(frame_of(ApiVersionsRequest(), 0))
                    waiting.modify(connection, selectors.EVENT_READ)
                else:
                    assert connection.recv(1 << 16)[4:8] == bytes([0, 0, 0, 1])
                    waiting.unregister(connection)
                    answered += 1
