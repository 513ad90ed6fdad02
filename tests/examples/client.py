"""
A client with one connection that can send the messages of any tables.
"""

import socket
from types import TracebackType
from typing import Self, TypeVar

from kgateway.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from kgateway.wire.codec import decode, decoder
from kgateway.wire.errors import ErrorCode
from kgateway.wire.headers import ResponseHeader, request_frame, response_header_version
from kgateway.wire.schema import Message
from kgateway.wire.uuids import Uuid

M = TypeVar("M", bound=Message)
CLIENT_ID = "example"
PATIENCE_S = 20


class Client:
    """
    Sends requests, and waits for responses.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), PATIENCE_S)
        self._asked = 0

    def ask(self, request: Message, response: type[M], version: int) -> M:
        """
        The response to a request.
        """
        self.tell(request, version)
        size = int.from_bytes(self._read(4), "big")
        frame = self._read(size)
        header, start = decoder(ResponseHeader, response_header_version(response, version))(frame, 0)
        assert header.correlation_id == self._asked
        return decode(response, version, frame[start:])

    def tell(self, request: Message, version: int) -> None:
        """
        Send a request without waiting.
        """
        self._asked += 1
        self._socket.sendall(b"".join(request_frame(request, version, self._asked, CLIENT_ID)))

    def is_sent_away(self) -> bool:
        """
        Whether the server closes the connection without sending more.
        """
        return self._socket.recv(1) == b""

    def create(self, *names: str) -> list[int]:
        """
        Create topics with one partition; returns the error codes.
        """
        topics = [
            CreateTopicsRequest.Topic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
            for name in names
        ]
        created = self.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), CreateTopicsResponse, 7).topics
        return [topic.error_code for topic in created]

    def id_of(self, name: str) -> Uuid | None:
        """
        The id of a topic, or None.
        """
        request = MetadataRequest(topics=[MetadataRequest.Topic(name=name)], allow_auto_topic_creation=False)
        [topic] = self.ask(request, MetadataResponse, 12).topics
        return topic.topic_id if topic.error_code == ErrorCode.NONE else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._socket.close()

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            assert piece, "the server closed the connection instead of an answer"
            data += piece
        return bytes(data)
