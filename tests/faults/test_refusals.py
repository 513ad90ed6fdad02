"""
How the gateway refuses unsupported requests over TCP: as Kafka does, so that each client knows what to do next.
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
    with Client(kafka.port) as client:
        yield client


def create(client: Client, topic: str) -> None:
    """
    Create the topic as a producer does.
    """
    answer = client.ask(MetadataRequest(topics=[MetadataRequest.Topic(name=topic)]), 9)
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.NONE]


def framed(data: bytes) -> bytes:
    """
    The data with its size in front.
    """
    return struct.pack(">i", len(data)) + data


def test_future_api_versions_get_the_supported_ones(client: Client) -> None:
    """
    An unsupported version of ApiVersions, whatever its body, is answered in v0 with the supported versions, and the
    connection is kept.
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
def test_unanswerable_requests_close_the_connection(client: Client, request_bytes: bytes) -> None:
    """
    Earlier requests are answered first.
    """
    client.socket.sendall(frame_of(ApiVersionsRequest(), 0) + framed(request_bytes))
    assert client.answer(ApiVersionsRequest, 0, 1).error_code == ErrorCode.NONE
    assert client.receive() is None


@pytest.mark.parametrize(
    "size", [_MAX_BYTES + 1, (1 << 31) - 1, -1], ids=["one argument too many", "largest", "negative"]
)
def test_invalid_sizes_close_the_connection(client: Client, size: int) -> None:
    """
    It is closed before anything of the request arrives.
    """
    client.socket.sendall(frame_of(ApiVersionsRequest(), 0) + struct.pack(">i", size))
    assert client.answer(ApiVersionsRequest, 0, 1).error_code == ErrorCode.NONE
    assert client.receive() is None


def test_acks_0_has_no_response(client: Client) -> None:
    """
    The next response answers the next request, which sees the records.
    """
    create(client, "no-acks")
    for number in range(10):
        client.send(produce_request("no-acks", batch_of(b"%d" % number), acks=0), PRODUCE_VERSION)
    read = client.ask(fetch_request("no-acks"), FETCH_VERSION).responses[0].partitions[0]
    assert read.error_code == ErrorCode.NONE
    assert read.high_watermark == 10


def test_a_refused_produce_with_acks_0_closes_the_connection(client: Client) -> None:
    """
    The producer can learn of it in no other way.
    """
    create(client, "no-acks")
    client.send(produce_request("no-acks", batch_of(b"value"), acks=0, partition=10_000), PRODUCE_VERSION)
    client.send(ApiVersionsRequest(), 0)
    assert client.receive() is None


def test_invalid_acks_are_refused(client: Client) -> None:
    """
    The error is in each partition, and the connection is kept.
    """
    create(client, "no-acks")
    answer = client.ask(produce_request("no-acks", batch_of(b"value"), acks=2), PRODUCE_VERSION)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert client.ask(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE


def test_responses_have_the_order_of_requests(client: Client) -> None:
    """
    This holds for requests sent at once of which one has to wait.
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


def test_client_names_forge_no_log_lines() -> None:
    """
    A client id may contain characters that begin a line or move a terminal's cursor.
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
