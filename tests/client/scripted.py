"""
A server whose responses a test writes.
"""

import socketserver
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from kgateway.client.cluster import Cluster
from kgateway.client.connection import Address
from kgateway.messages.api_versions import ApiVersionsResponse
from kgateway.messages.catalogue import apis
from kgateway.wire.codec import decode, decoder
from kgateway.wire.errors import ErrorCode
from kgateway.wire.headers import RequestHeader, peek, request_header_version, response_frame
from kgateway.wire.schema import Message

API_VERSIONS = 18
Say = Callable[
    [bytes], bytes | None
]  # from a request's frame to the bytes to send; None is silence, empty bytes are the end


class ScriptedServer(socketserver.ThreadingTCPServer):
    """
    Answers each API from a queue, repeating the last response, and records the requests.
    """

    daemon_threads = True

    def __init__(self, offered: dict[int, tuple[int, int]]) -> None:
        super().__init__(("127.0.0.1", 0), _Asked)
        self.offered = {API_VERSIONS: (0, 4), **offered}
        self.answers: dict[int, deque[Message]] = {}
        self.asked: list[tuple[Any, int]] = []  # requests and their versions
        self.say: Say = self.answer  # may be replaced by a test

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self.socket.getsockname()[1])

    def will(self, *answers: Message) -> None:
        self.answers.setdefault(answers[0].__spec__.key or 0, deque()).extend(answers)

    def answer(self, frame: bytes) -> bytes:
        key, version, correlation_id = peek(frame)
        if key == API_VERSIONS and version > self.offered[key][1]:
            return _sent(self._versions(ErrorCode.UNSUPPORTED_VERSION), 0, correlation_id)
        request = apis()[key].request
        _, start = decoder(RequestHeader, request_header_version(request, version))(frame, 0)
        self.asked.append((decode(request, version, frame[start:]), version))
        if key == API_VERSIONS:
            return _sent(self._versions(ErrorCode.NONE), version, correlation_id)
        queue = self.answers[key]
        return _sent(queue.popleft() if len(queue) > 1 else queue[0], version, correlation_id)

    def _versions(self, code: ErrorCode) -> ApiVersionsResponse:
        keys = [
            ApiVersionsResponse.ApiKey(api_key=key, min_version=lowest, max_version=highest)
            for key, (lowest, highest) in self.offered.items()
        ]
        return ApiVersionsResponse(error_code=code, api_keys=keys)


class _Asked(socketserver.StreamRequestHandler):
    server: ScriptedServer

    def handle(self) -> None:
        while head := self.rfile.read(4):
            told = self.server.say(self.rfile.read(int.from_bytes(head, "big")))
            if told == b"":
                return
            self.wfile.write(told or b"")


def _sent(response: Message, version: int, correlation_id: int) -> bytes:
    return b"".join(response_frame(response, version, correlation_id))


@contextmanager
def scripted(**offered: tuple[int, int]) -> Iterator[ScriptedServer]:
    """
    A server with these versions of APIs, by name.
    """
    keys = {api.name: api.key for api in apis().values()}
    with ScriptedServer({keys[name]: versions for name, versions in offered.items()}) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class Pair(NamedTuple):
    first: ScriptedServer
    second: ScriptedServer
    cluster: Cluster
