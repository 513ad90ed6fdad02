"""
How the gateway parts from clients that ask for what it does not have, over TCP: as Kafka does, so that each client
knows what to do next.
"""

import struct
from collections.abc import Iterator

import pytest

from kgateway.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgateway.messages.fetch import FetchRequest
from kgateway.messages.metadata import MetadataRequest
from kgateway.messages.produce import ProduceRequest
from kgateway.testing.kafka import Kafka
from kgateway.wire.codec import decode
from kgateway.wire.errors import ErrorCode
from tests.faults.client import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    Client,
    batch_of,
    fetch_request,
    frame_of,
    produce_request,
)

_MAX_BYTES = 100 << 20


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    """
    One gateway for all these tests.
    """
    with Kafka() as kafka:
        yield kafka


@pytest.fixture
def client(kafka: Kafka) -> Iterator[Client]:
    """
    A fresh connection.
    """
    with Client(kafka.port) as client:
        yield client


def create(client: Client, topic: str) -> None:
    """
    Have the topic made as a producer does.
    """
    answer = client.ask(MetadataRequest(topics=[MetadataRequest.Topic(name=topic)]), 9)
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.NONE]


def framed(data: bytes) -> bytes:
    """
    The data behind its size.
    """
    return struct.pack(">i", len(data)) + data


def test_api_versions_of_the_future(client: Client) -> None:
    """
    ApiVersions in a version that is not served, whatever its body, is answered in the form of v0 with the versions that
    are; the connection goes on.
    """
    client.socket.sendall(framed(struct.pack(">hhihB", 18, 99, 7, -1, 0) + b"what this means is not known yet"))
    frame = client.receive()
    assert frame
    assert frame[:4] == struct.pack(">i", 7)
    told = decode(ApiVersionsResponse, 0, frame[4:])
    assert told.error_code == ErrorCode.UNSUPPORTED_VERSION
    [own] = told.api_keys
    assert own.api_key == 18
    again = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    assert client.ask(again, own.max_version).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    "request_bytes",
    [
        struct.pack(">hhih", 9_999, 0, 2, -1),
        struct.pack(">hhih", 3, 99, 2, -1),
        struct.pack(">hhih", 3, -1, 2, -1),
        struct.pack(">hhi", 3, 0, 2),
        b"\0\3\0",
        b"",
    ],
    ids=["unknown key", "version too new", "negative version", "half a header", "three bytes", "empty"],
)
def test_what_cannot_be_answered(client: Client, request_bytes: bytes) -> None:
    """
    What came before is answered, then the connection is closed.
    """
    client.socket.sendall(frame_of(ApiVersionsRequest(), 0) + framed(request_bytes))
    assert client.answer(ApiVersionsRequest, 0, 1).error_code == ErrorCode.NONE
    assert client.receive() is None


@pytest.mark.parametrize("size", [_MAX_BYTES + 1, (1 << 31) - 1, -1], ids=["one too many", "largest", "negative"])
def test_sizes_that_may_not_be(client: Client, size: int) -> None:
    """
    A size that no request may have closes the connection before anything of it comes.
    """
    client.socket.sendall(frame_of(ApiVersionsRequest(), 0) + struct.pack(">i", size))
    assert client.answer(ApiVersionsRequest, 0, 1).error_code == ErrorCode.NONE
    assert client.receive() is None


def test_no_acks(client: Client) -> None:
    """
    A produce with acks=0 has no answer: the next one is that to the next request, which sees the records.
    """
    create(client, "no-acks")
    for number in range(10):
        client.send(produce_request("no-acks", batch_of(b"%d" % number), acks=0), PRODUCE_VERSION)
    read = client.ask(fetch_request("no-acks"), FETCH_VERSION).responses[0].partitions[0]
    assert read.error_code == ErrorCode.NONE
    assert read.high_watermark == 10


def test_no_acks_refused(client: Client) -> None:
    """
    A produce with acks=0 that is refused ends the connection: the producer hears of it in no other way.
    """
    create(client, "no-acks")
    client.send(produce_request("no-acks", batch_of(b"value"), acks=0, partition=10_000), PRODUCE_VERSION)
    client.send(ApiVersionsRequest(), 0)
    assert client.receive() is None


def test_other_acks(client: Client) -> None:
    """
    Acks of neither all, one nor none are refused for each partition, and the connection goes on.
    """
    create(client, "no-acks")
    answer = client.ask(produce_request("no-acks", batch_of(b"value"), acks=2), PRODUCE_VERSION)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert client.ask(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE


def test_answers_are_in_order(client: Client) -> None:
    """
    Of many requests sent at once the answers come in the order of the requests, though one has to wait.
    """
    create(client, "order")
    asked = [
        client.send(fetch_request("order", max_wait_ms=200), FETCH_VERSION),
        *(client.send(produce_request("order", batch_of(b"value")), PRODUCE_VERSION) for _ in range(50)),
    ]
    assert client.answer(FetchRequest, FETCH_VERSION, asked[0]).error_code == ErrorCode.NONE
    offsets = [
        client.answer(ProduceRequest, PRODUCE_VERSION, number).responses[0].partition_responses[0].base_offset
        for number in asked[1:]
    ]
    assert offsets == list(range(50))


def test_what_clients_choose_in_the_log() -> None:
    """
    A name with signs that begin a line, or move a terminal's cursor, forges no entry of the log.
    """
    signs = ["\r", "\n", "\x1b[2J", "\x85", "\u2028"]
    with Kafka() as kafka:
        for sign in signs:
            with Client(kafka.port) as client:
                client.send(produce_request(f"orders{sign}forged", batch_of(b"value"), acks=0), PRODUCE_VERSION)
                assert client.receive() is None
    lines = [line for line in kafka.log.splitlines() if "forged" in line]
    assert len(lines) == len(signs)
    assert all(" closed: " in line and line.isprintable() for line in lines), lines
