"""
A blocking client that sends exactly what a test wants on the wire.
"""

import socket
import struct
from time import time
from types import TracebackType
from typing import Any, Self

from kgateway.messages.catalogue import apis
from kgateway.messages.fetch import FetchRequest
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.records.builder import BatchBuilder
from kgateway.wire.codec import decode, decoder
from kgateway.wire.headers import ResponseHeader, request_frame, response_header_version
from kgateway.wire.schema import Message
from kgateway.wire.types import Buffer

PATIENCE_S = 20  # a test fails rather than wait longer
PRODUCE_VERSION = 9
FETCH_VERSION = 12
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER of zero: the connection ends with a reset
_RESPONSES = {api.request: api.response for api in apis().values()}


class Client:
    def __init__(
        self, port: int, *, host: str = "127.0.0.1", patience_s: float = PATIENCE_S, client_id: str | None = "test"
    ) -> None:
        self.socket = socket.create_connection((host, port), patience_s)
        self._client_id = client_id
        self._correlation_id = 0

    def send(self, request: Message, version: int) -> int:
        """
        Send a request and return its correlation id.
        """
        self._correlation_id += 1
        self.socket.sendall(frame_of(request, version, self._correlation_id, self._client_id))
        return self._correlation_id

    def receive(self) -> bytes | None:
        """
        Return the next response without its size, or None once the server has closed the connection.
        """
        head = self._read(4)
        if not head:
            return None
        size = int.from_bytes(head, "big")
        frame = self._read(size)
        assert (len(head), len(frame)) == (4, size), "an answer broke off"
        return frame

    def answer(self, request: type[Message], version: int, correlation_id: int) -> Any:
        """
        Return the next response, which must answer this request.
        """
        frame = self.receive()
        assert frame is not None, f"the connection was closed instead of a response to {request.__name__} v{version}"
        response = _RESPONSES[request]
        header, start = decoder(ResponseHeader, response_header_version(response, version))(frame, 0)
        assert header.correlation_id == correlation_id
        return decode(response, version, frame[start:])

    def ask(self, request: Message, version: int) -> Any:
        """
        Send a request and return its response.
        """
        return self.answer(type(request), version, self.send(request, version))

    def reset(self) -> None:
        """
        Reset the connection, as after a crash of the client's machine.
        """
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.socket.close()

    def _read(self, size: int) -> bytes:
        """
        Read `size` bytes, or fewer if the connection ends.
        """
        pieces = []
        while size:
            try:
                piece = self.socket.recv(min(size, 1 << 20))
            except ConnectionResetError:
                break
            if not piece:
                break
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


def frame_of(request: Message, version: int, correlation_id: int = 1, client_id: str | None = "test") -> bytes:
    """
    A request as bytes on the wire.
    """
    return b"".join(request_frame(request, version, correlation_id, client_id))


def batch_of(*values: bytes) -> bytes:
    """
    A record batch with these values.
    """
    builder, now_ms = BatchBuilder(), int(time() * 1_000)  # retention may delete old records while a test runs
    for value in values:
        builder.append(None, value, timestamp=now_ms)
    return builder.build()


def produce_request(topic: str, records: Buffer, *, acks: int = -1, partition: int = 0) -> ProduceRequest:
    """
    A Produce request with one batch for one partition.
    """
    data = ProduceRequest.TopicData.PartitionData(index=partition, records=records)
    topic_data = ProduceRequest.TopicData(name=topic, partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[topic_data])


def produced(response: ProduceResponse) -> ProduceResponse.Response.PartitionResponse:
    """
    The response for the one partition.
    """
    [topic] = response.responses
    [partition] = topic.partition_responses
    return partition


def fetch_request(
    topic: str, *, offset: int = 0, max_wait_ms: int = 0, partition: int = 0, max_bytes: int = 1 << 20
) -> FetchRequest:
    """
    A Fetch request for one partition, without a session.
    """
    wanted = FetchRequest.Topic.Partition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    topics = [FetchRequest.Topic(topic=topic, partitions=[wanted])]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=max_bytes, topics=topics)
