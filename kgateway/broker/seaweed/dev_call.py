"""
One gRPC call that waits for its answer, for a cluster to try things out on: who starts one runs in no reactor yet.
"""

import socket
import time
from contextlib import closing
from ssl import SSLContext, SSLSocket

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, ResponseReceived, StreamEnded, StreamReset, TrailersReceived
from h2.exceptions import ProtocolError

from kgateway.broker.seaweed.grpc.answer import Answer
from kgateway.broker.seaweed.grpc.incoming import Incoming
from kgateway.broker.seaweed.grpc.limits import Limits
from kgateway.broker.seaweed.grpc.method import Method, RequestT, ResponseT
from kgateway.broker.seaweed.grpc.outgoing import Outgoing
from kgateway.broker.seaweed.grpc.request import Request
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.cluster.view import Address

_STREAM = 1
_CHUNK_BYTES = 65_536
_BYTES_MAX = Limits().message_bytes_max


def call(
    address: Address,
    method: Method[RequestT, ResponseT],
    request: RequestT,
    timeout_s: float,
    tls: SSLContext | None = None,
) -> ResponseT:
    """
    The answer to one message, over a connection of its own; an RpcError where there is none in time.
    """
    deadline = time.monotonic() + timeout_s
    try:
        plain = socket.create_connection((address.host, address.port), timeout_s)
        with closing(tls.wrap_socket(plain) if tls else plain) as connection:
            exchange = _Exchange(connection, Request(method.path, (), deadline), str(address))
            return method.response.FromString(exchange.answer(request.SerializeToString(), deadline))
    except (OSError, ProtocolError) as error:
        raise RpcError(Status.UNAVAILABLE, f"{address}: {error}") from error


class _Exchange:
    """
    A small message on its way, and its answer as far as it has come.
    """

    def __init__(self, connection: socket.socket, request: Request, authority: str) -> None:
        self._connection = connection
        self._request = request
        self._authority = authority
        self._scheme = "https" if isinstance(connection, SSLSocket) else "http"
        self._http = H2Connection(H2Configuration(client_side=True))
        self._answer = Answer()
        self._incoming = Incoming(_BYTES_MAX)
        self._messages: list[bytes] = []
        self._is_over = False

    def answer(self, message: bytes, deadline: float) -> bytes:
        """
        The message that is the answer to this one.
        """
        self._send(message)
        while not self._is_over:
            self._connection.settimeout(max(deadline - time.monotonic(), 0.001))
            data = self._connection.recv(_CHUNK_BYTES)
            if not data:
                raise ConnectionResetError("the connection was closed")
            for event in self._http.receive_data(data):
                self._take(event)
            self._connection.sendall(self._http.data_to_send())
        error = self._answer.outcome()
        if error:
            raise error
        return self._messages[0]

    def _send(self, message: bytes) -> None:
        outgoing = Outgoing(_BYTES_MAX)
        outgoing.put([message])
        self._http.initiate_connection()
        self._http.send_headers(_STREAM, self._request.headers(self._scheme, self._authority, time.monotonic()))
        self._http.send_data(_STREAM, outgoing.take(outgoing.size), end_stream=True)
        self._connection.sendall(self._http.data_to_send())

    def _take(self, event: Event) -> None:
        match event:
            case ResponseReceived() | TrailersReceived():
                self._answer.add(event.headers)
            case DataReceived():
                self._messages += self._incoming.feed(event.data)
                self._http.acknowledge_received_data(event.flow_controlled_length, _STREAM)
            case StreamEnded() | StreamReset():
                self._is_over = True
