"""
A client that blocks, and says on the wire exactly what a test has it say.
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

PATIENCE_S = 20  # after it a test fails instead of waiting on
PRODUCE_VERSION = 9
FETCH_VERSION = 12
_RESET = struct.pack("ii", 1, 0)  # linger for no time: the connection ends with a reset
_RESPONSES = {api.request: api.response for api in apis().values()}


class Client:
    """
    One connection.
    """

    def __init__(
        self, port: int, *, host: str = "127.0.0.1", patience_s: float = PATIENCE_S, client_id: str | None = "test"
    ) -> None:
        self.socket = socket.create_connection((host, port), patience_s)
        self._client_id = client_id
        self._correlation_id = 0

    def send(self, request: Message, version: int) -> int:
        """
        Send a request; its correlation id.
        """
        self._correlation_id += 1
        self.socket.sendall(frame_of(request, version, self._correlation_id, self._client_id))
        return self._correlation_id

    def receive(self) -> bytes | None:
        """
        The next answer without its size; nothing where the server has closed the connection.
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
        The next answer, which must be to this request.
        """
        frame = self.receive()
        assert frame is not None, f"the connection was closed instead of an answer to {request.__name__} v{version}"
        response = _RESPONSES[request]
        header, start = decoder(ResponseHeader, response_header_version(response, version))(frame, 0)
        assert header.correlation_id == correlation_id
        return decode(response, version, frame[start:])

    def ask(self, request: Message, version: int) -> Any:
        """
        The answer to a request.
        """
        return self.answer(type(request), version, self.send(request, version))

    def reset(self) -> None:
        """
        End the connection as a crash of the client's machine does.
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
        So many bytes, or fewer where the connection ends.
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
    A request as it travels.
    """
    return b"".join(request_frame(request, version, correlation_id, client_id))


def batch_of(*values: bytes) -> bytes:
    """
    The values as a record batch.
    """
    builder, now_ms = BatchBuilder(), int(time() * 1_000)  # what is old may go while a test runs
    for value in values:
        builder.append(None, value, timestamp=now_ms)
    return builder.build()


def produce_request(topic: str, records: Buffer, *, acks: int = -1, partition: int = 0) -> ProduceRequest:
    """
    A record batch for a partition.
    """
    data = ProduceRequest.TopicData.PartitionData(index=partition, records=records)
    topic_data = ProduceRequest.TopicData(name=topic, partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[topic_data])


def produced(response: ProduceResponse) -> ProduceResponse.Response.PartitionResponse:
    """
    What is said of the one partition of an answer.
    """
    [topic] = response.responses
    [partition] = topic.partition_responses
    return partition


def fetch_request(
    topic: str, *, offset: int = 0, max_wait_ms: int = 0, partition: int = 0, max_bytes: int = 1 << 20
) -> FetchRequest:
    """
    A fetch from one partition, without a session.
    """
    wanted = FetchRequest.Topic.Partition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    topics = [FetchRequest.Topic(topic=topic, partitions=[wanted])]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=max_bytes, topics=topics)
