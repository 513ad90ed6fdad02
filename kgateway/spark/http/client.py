"""
Blocking HTTP requests: a range of a file, or a page of a folder.

A request is sent again, until patience ends, where the server is away or overloaded or the answer breaks off; not where
the server refuses it.

A filer of SeaweedFS takes signatures that expire after some seconds, so each task signs its own requests: a
`security.toml`, as SeaweedFS's own programs have it, names the key and the certificates. These files have to be on all
machines.
"""

import errno
import os
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import (
    BadStatusLine,
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
    RemoteDisconnected,
)
from pathlib import Path, PurePosixPath
from typing import TypeVar
from urllib.parse import quote, unquote, urlsplit

from kgateway.client.backoff import retry
from kgateway.spark.errors import WrongOption

SCHEMES = ("http", "https")
_READ = "jwt.filer_signing.read"
T = TypeVar("T")
_WHOLE, _REDIRECTED, _REFUSED, _FAILED = 200, 300, 400, 500
_NOT_ALLOWED = (401, 403)
_NOT_FOUND = (404, 410)
_PASSING = (408, 425, 429)
_BEYOND_ITS_END = 416
_REASON_BYTES = 300
_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")


class UrlPath(PurePosixPath):
    """
    A URL that other paths are joined to as to a folder. Its names are not percent-encoded.
    """

    @property
    def origin(self) -> str:
        scheme, server = self.parts[:2]
        return f"{scheme}//{server}"

    @property
    def target(self) -> str:
        """
        The path of the request, percent-encoded.
        """
        return quote("/" + "/".join(self.parts[2:]))

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)


def is_url(text: str) -> bool:
    return urlsplit(text).scheme.lower() in SCHEMES


def url_path(text: str) -> UrlPath:
    parts = urlsplit(text)
    if not is_url(text) or not parts.hostname or parts.query or parts.fragment or parts.username is not None:
        raise ValueError(f"{text!r} is not http://HOST:PORT/PATH")
    _ = parts.port  # raises ValueError where it is no number
    return UrlPath(f"{parts.scheme}:", parts.netloc, *unquote(parts.path).strip("/").split("/"))


@dataclass(frozen=True, slots=True)
class Access:
    """
    How to reach HTTP servers: credentials and timeouts. It is sent to tasks with the query.
    """

    answer_s: float = 30.0  # the longest that a server may take for an answer
    patience_s: float = 120.0  # how long failing attempts are made again
    authorization: str = ""  # a header, as it is
    security_file: str = ""

    def check(self) -> None:
        """
        Raise WrongOption if the security file cannot be used.
        """
        self.context()
        self.headers()

    def headers(self) -> Mapping[str, str]:
        if self.authorization:
            return {"Authorization": self.authorization}
        if not self.security_file:
            return {}
        from kgateway.broker.seaweed.security.security_toml import BadSecurity, SecurityFile, jwt

        try:
            key = SecurityFile(Path(self.security_file)).signing_key(_READ)
        except BadSecurity as error:
            raise WrongOption(str(error)) from error
        if key is None:
            return {}
        claims = {"exp": int(time.time()) + key.expires_s} if key.expires_s else {}
        return {"Authorization": f"Bearer {jwt(key.secret, claims)}"}

    def context(self) -> ssl.SSLContext:
        if not self.security_file:
            return ssl.create_default_context()
        from kgateway.broker.seaweed.security.security_toml import BadSecurity, SecurityFile

        try:
            tls = SecurityFile(Path(self.security_file)).https()
            if tls is None:
                return ssl.create_default_context()
            context = ssl.create_default_context(cafile=tls.authorities.path if tls.authorities else None)
            context.check_hostname = tls.checks_names
            context.verify_mode = ssl.CERT_REQUIRED if tls.authorities else ssl.CERT_NONE
            if tls.identity:
                context.load_cert_chain(tls.identity.certificate.path, tls.identity.key.path)
        except (BadSecurity, OSError) as error:  # OSError where a certificate is unusable
            raise WrongOption(f"{self.security_file} cannot be used: {error}") from error
        return context

    @property
    def why_refused(self) -> str:
        """
        Advice for when a server denies access.
        """
        if self.authorization:
            return "it does not accept the value of kgateway.http.authorization"
        if self.security_file:
            return f"it does not accept signatures made with `key` under [{_READ}] of {self.security_file}"
        return "set kgateway.http.authorization to what it requires, or kgateway.seaweed.security to a security.toml"


class RemoteError(OSError):
    """
    A server has refused a request, or has not answered until patience ended; the message is for whoever runs the query.
    """


class FileUnavailable(RemoteError):
    """
    The server answers, but cannot deliver this file or a part of it, which may be lost.
    """


class _Transient(Exception):
    """
    A failure that a retry may cure.
    """


_FINAL = (RemoteError, FileNotFoundError, socket.gaierror)  # although they are kinds of OSError
_RETRIED = (_Transient, HTTPException, OSError)
# A filer closes the connection where a volume lacks the first bytes, and breaks off where it lacks later ones.
_UNDELIVERED = (_Transient, IncompleteRead, RemoteDisconnected)


class HttpServer:
    """
    One server, over a connection that is opened when it is needed.
    """

    def __init__(self, origin: str, access: Access) -> None:
        self.access = access
        self._origin = urlsplit(origin)
        self._connection: HTTPConnection | None = None

    def part(self, path: UrlPath, start: int, size: int) -> bytes:
        """
        The bytes at a position, fewer at the end of the file.
        """
        if size <= 0:
            return b""
        wanted = {"Range": f"bytes={start}-{start + size - 1}"}
        return self._retry(path, path.target, wanted, lambda answer: _part(path, answer, start, size))

    def size(self, path: UrlPath) -> int:
        return self._retry(path, path.target, {"Range": "bytes=0-0"}, lambda answer: _size(path, answer))

    def page(self, path: UrlPath, query: str, bytes_max: int) -> bytes:
        wanted = {"Accept": "application/json"}
        target = f"{path.target.rstrip('/')}/?{query}"
        return self._retry(path, target, wanted, lambda answer: _page(path, answer, bytes_max))

    def close(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    def _retry(self, path: UrlPath, target: str, wanted: Mapping[str, str], read: Callable[[HTTPResponse], T]) -> T:
        """
        Read an answer, and retry failures that may pass until patience ends.
        """
        began = time.monotonic()
        try:
            return retry(lambda: self._asked(path, target, wanted, read), self._patience_s)
        except _FINAL:
            raise
        except _RETRIED as error:
            reason, waited_s = str(error) or type(error).__name__, time.monotonic() - began
            kind = FileUnavailable if isinstance(error, _UNDELIVERED) else RemoteError
            raise kind(f"cannot get {path}, tried for {waited_s:.0f} s: {reason}") from error

    def _patience_s(self, error: Exception) -> float:
        if isinstance(error, _FINAL) or not isinstance(error, _RETRIED):
            return 0
        self._check_passing(error)
        return self.access.patience_s

    def _asked(self, path: UrlPath, target: str, wanted: Mapping[str, str], read: Callable[[HTTPResponse], T]) -> T:
        connection = self._connected()
        try:
            connection.request("GET", target, headers={**wanted, **self.access.headers()})
            with closing(connection.getresponse()) as answer:
                self._check(path, answer)
                found = read(answer)
                if not answer.isclosed():  # the rest would be taken for the next answer
                    self.close()
                return found
        except BaseException:
            self.close()
            raise

    def _connected(self) -> HTTPConnection:
        if self._connection is None:
            host, port, timeout = self._origin.hostname or "", self._origin.port, self.access.answer_s
            if self._origin.scheme == "https":
                self._connection = HTTPSConnection(host, port, timeout=timeout, context=self.access.context())
            else:
                self._connection = HTTPConnection(host, port, timeout=timeout)
        return self._connection

    def _check_passing(self, error: Exception) -> None:
        """
        Refuse a server that does not speak the protocol of its URL.
        """
        origin = self._origin.geturl()
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            raise RemoteError(f"no TLS with {origin}: {error}") from error
        if isinstance(error, BadStatusLine) and not isinstance(error, RemoteDisconnected):
            raise RemoteError(f"{origin} does not respond with HTTP: is it another port of the server?") from error

    def _check(self, path: UrlPath, answer: HTTPResponse) -> None:
        status = answer.status
        if status < _REDIRECTED or status == _BEYOND_ITS_END:
            return
        if status in _NOT_FOUND:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        words = f"HTTP {status} {answer.read(_REASON_BYTES).decode(errors='replace').strip()}".rstrip()
        if status in _NOT_ALLOWED:
            raise RemoteError(f"{path}: {words}: {self.access.why_refused}")
        if status < _REFUSED:
            raise RemoteError(f"{path}: {words}: it is at {answer.getheader('Location')}, so name that address")
        if status in _PASSING or status >= _FAILED:
            raise _Transient(words)
        raise RemoteError(f"{path}: {words}")


def _part(path: UrlPath, answer: HTTPResponse, start: int, size: int) -> bytes:
    if answer.status == _BEYOND_ITS_END:
        return b""
    length = _length_of_part(path, answer, start, size)
    data = answer.read(length)
    if len(data) != length:
        raise _Transient(f"the response ended after {len(data):,} of {length:,} bytes")
    return data


def _size(path: UrlPath, answer: HTTPResponse) -> int:
    match = _RANGE.fullmatch(answer.getheader("Content-Range", ""))
    if match and match[3].isdecimal():
        answer.read()
        return int(match[3])
    if answer.status != _WHOLE or answer.length is None:
        raise RemoteError(f"{path.origin} does not say how large {path} is")
    return answer.length


def _length_of_part(path: UrlPath, answer: HTTPResponse, start: int, size: int) -> int:
    """
    The number of bytes to come. A server that does not know ranges sends the whole file, however large.
    """
    if answer.status == _WHOLE and start == 0 and answer.length is not None and answer.length <= size:
        return answer.length
    match = _RANGE.fullmatch(answer.getheader("Content-Range", ""))
    if not match or match[1] is None:
        raise RemoteError(
            f"{path.origin} does not support ranges: {size:,} bytes of {path} were requested, but it sent all"
        )
    first, last = int(match[1]), int(match[2])
    if first != start or not start <= last < start + size:
        raise RemoteError(f"{path.origin} sent bytes {first} to {last} of {path} instead of {size:,} from {start} on")
    return last - first + 1


def _page(path: UrlPath, answer: HTTPResponse, bytes_max: int) -> bytes:
    kind = answer.getheader("Content-Type", "")
    if answer.status != _WHOLE or not kind.startswith("application/json"):
        raise RemoteError(f"{path.origin} does not list {path} as a filer lists a folder: it sent {kind or 'no JSON'}")
    data = answer.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise RemoteError(f"{path.origin} lists more than {bytes_max:,} bytes of {path} at once")
    if answer.length:
        raise _Transient(f"the response ended {answer.length:,} bytes too early")
    return data
