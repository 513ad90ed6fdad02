"""
A connection to a server, with one request at a time.

The first request is ApiVersions. Each later request uses the newest version that both sides know. A request that gets
no answer closes the connection.
"""

import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Self, TypeVar

from kgateway import __version__
from kgateway.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgateway.wire.codec import decode, decoder
from kgateway.wire.errors import ErrorCode, Malformed
from kgateway.wire.frames import HEAD_BYTES, Framer
from kgateway.wire.headers import ResponseHeader, request_frame, response_header_version
from kgateway.wire.schema import Message

DEFAULT_PORT = 9092
_PORT_MAX = 65_535
_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[^\[\]\s]*:[^\[\]\s]*)\]|(?P<host>[^\[\]:/\s]+))(?::(?P<port>[0-9]{1,5}))?")
R = TypeVar("R", bound=Message)
CLIENT_ID = "kgateway-command"
_CHUNK_BYTES = 256 * 1024
_OLDEST = 0
_TICK_S = 0.5
_TOO_NEW = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")


class Address(NamedTuple):
    """
    HOST:PORT, or HOST for Kafka's port; an IPv6 address has brackets.
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        found = _ADDRESS.fullmatch(text.strip())
        port = int(found["port"] or DEFAULT_PORT) if found else 0
        if not found or not 0 < port <= _PORT_MAX:
            raise ValueError(f"{text!r} must be HOST or HOST:PORT{_problem(text)}")
        return cls(found["ipv6"] or found["host"], port)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _problem(text: str) -> str:
    if "://" in text:
        return ", without a protocol"
    if text.count(":") > 1 or "[" in text:
        return ": an IPv6 address has brackets, as in [::1]:9092"
    return f": a port is a number from 1 to {_PORT_MAX}" if ":" in text.strip(":") else ""


class Unanswered(Exception):
    """
    The server cannot be reached or has not answered; the message is for the operator.
    """


class NothingListens(Unanswered):
    """
    The machine refuses connections to the address.
    """


class Connection:
    def __init__(self, address: Address, patience_s: float) -> None:
        self.address = address
        self._patience_s = patience_s
        self._correlation_id = 0
        self._framer = Framer()
        self._offered: dict[int | None, range] = {}
        with self._raising_unanswered("a connection"):
            self._socket = socket.create_connection(address, patience_s)
        try:
            self._offered = self._versions_offered()
        except BaseException:
            self.close()
            raise

    def serves(self, request: type[Message]) -> bool:
        return bool(self._common(request))

    def ask(self, request: Message, response: type[R], newest: int | None = None, patience_s: float | None = None) -> R:
        """
        Send a request and return the answer. `newest` limits the version; `patience_s` is for slow requests.
        """
        version = self._version(request, newest)
        return self._read(self._exchange(request, response, version, patience_s), response, version)

    def send_only(self, request: Message, newest: int | None = None) -> None:
        """
        Send a request that has no answer.
        """
        version = self._version(request, newest)
        with self._closing_if_broken():
            self._send(request, version)

    def check(self) -> None:
        """
        Raise Unanswered if the server has closed the connection, which is how it refuses a request that has no answer.
        """
        self._versions_offered()

    def limit_patience(self, patience_s: float) -> None:
        self._patience_s = min(self._patience_s, patience_s)

    def close(self) -> None:
        self._socket.close()

    @property
    def _stranger(self) -> str:
        return f"what listens at {self.address} does not speak Kafka's protocol"

    @property
    def is_open(self) -> bool:
        return self._socket.fileno() >= 0

    def _version(self, request: Message, newest: int | None) -> int:
        common = [version for version in self._common(type(request)) if newest is None or version <= newest]
        if not common:
            raise Unanswered(f"{self.address} does not serve {_name(request)} in a version that this client knows")
        return common[-1]

    def _common(self, request: type[Message]) -> range:
        known, offered = request.__spec__.versions, self._offered.get(request.__spec__.key, range(0))
        return range(max(known.start, offered.start), min(known.stop, offered.stop))

    def _versions_offered(self) -> dict[int | None, range]:
        request = ApiVersionsRequest(client_software_name="kgateway", client_software_version=__version__)
        version = ApiVersionsRequest.__spec__.versions[-1]
        body = self._exchange(request, ApiVersionsResponse, version)
        if body.startswith(_TOO_NEW):  # an older server answers in version 0
            version = _OLDEST
            body = self._exchange(request, ApiVersionsResponse, version)
        answer = self._read(body, ApiVersionsResponse, version)
        return {api.api_key: range(api.min_version, api.max_version + 1) for api in answer.api_keys}

    def _exchange(
        self, request: Message, response: type[Message], version: int, patience_s: float | None = None
    ) -> bytes:
        with self._closing_if_broken():
            self._send(request, version)
            with self._raising_unanswered(f"a response to {_name(request)}"):
                frame = self._received(patience_s or self._patience_s)
                header, start = decoder(ResponseHeader, response_header_version(response, version))(frame, 0)
            if header.correlation_id != self._correlation_id:
                raise Unanswered(f"{self.address} sent an unexpected response (correlation id mismatch)")
            return frame[start:]

    def _send(self, request: Message, version: int) -> None:
        self._correlation_id += 1
        asked = b"".join(request_frame(request, version, self._correlation_id, CLIENT_ID))
        with self._raising_unanswered(f"a response to {_name(request)}"):
            self._socket.settimeout(self._patience_s)
            self._socket.sendall(asked)

    def _read(self, body: bytes, response: type[R], version: int) -> R:
        with self._raising_unanswered(f"a {response.__spec__.name}"):
            return decode(response, version, body)

    def _received(self, patience_s: float) -> bytes:
        deadline = time.monotonic() + patience_s
        while True:
            left_s = deadline - time.monotonic()
            self._socket.settimeout(max(min(left_s, _TICK_S), 0.001))
            try:
                data = self._socket.recv(_CHUNK_BYTES)
            except TimeoutError:
                if left_s <= _TICK_S:
                    raise
                continue  # a signal that came just before the wait began is handled now
            if not data:
                raise ConnectionResetError
            frames = self._framer.feed(data)
            if frames:
                return frames[0]
            if self._framer.failure:
                self._refuse_text(data)
                raise self._framer.failure

    def _refuse_text(self, data: bytes) -> None:
        """
        Raise Unanswered if a server of another protocol, such as HTTP, has sent a text where a frame has its size.
        """
        begins = data[:HEAD_BYTES].decode("ascii", errors="replace")
        if begins.isascii() and begins.isprintable():
            raise Unanswered(f"{self._stranger}: its response begins with {begins!r}")

    @contextmanager
    def _closing_if_broken(self) -> Iterator[None]:
        """
        Close the connection if a request is not sent completely, or its answer has not come: that one would be taken
        for the answer to the next request.
        """
        try:
            yield
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _raising_unanswered(self, wanted: str) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise Unanswered(f"{self.address} did not send {wanted} within {self._patience_s:g} s") from error
        except ConnectionRefusedError as error:
            raise NothingListens(f"nothing listens at {self.address}") from error
        except (ConnectionResetError, BrokenPipeError) as error:
            problem = f"{self.address} closed the connection without {wanted}"
            advice = "" if self._offered else ": it may require TLS or a login, which this command does not support"
            raise Unanswered(f"{problem}{advice}") from error
        except (socket.gaierror, UnicodeError) as error:  # UnicodeError: names with an empty part
            raise Unanswered(f"the host {self.address.host} is unknown") from error
        except Malformed as error:
            raise Unanswered(f"{self._stranger}: {error}") from error
        except OSError as error:
            raise Unanswered(f"{self.address} cannot be reached: {error.strerror or error}") from error


def _name(request: Message) -> str:
    return request.__spec__.name.removesuffix("Request")
