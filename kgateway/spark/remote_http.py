"""
Requests by HTTP that wait for their answers: a range of a file, or a page of a folder.

A server that is away, is overloaded or breaks off in the middle is asked again, for a time with an end. What it refuses
is not asked for again.
"""

import errno
import os
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from http.client import (
    BadStatusLine,
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
    RemoteDisconnected,
)
from typing import TypeVar
from urllib.parse import urlsplit

from kgateway.spark.remote_access import Access
from kgateway.spark.remote_paths import UrlPath

T = TypeVar("T")

_PAUSE_S, _PAUSE_MAX_S = 0.05, 2.0
_WHOLE, _REDIRECTED, _REFUSED, _FAILED = 200, 300, 400, 500
_NOT_ALLOWED = (401, 403)
_NOT_FOUND = (404, 410)
_PASSING = (408, 425, 429)
_BEYOND_ITS_END = 416
_REASON_BYTES = 300
_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")


class RemoteError(OSError):
    """
    What a server has refused, or has not answered for too long; in words for whoever runs the query.
    """


class Undelivered(RemoteError):
    """
    The server is there, but this file, or a part of it, does not come: it may have lost it.
    """


class _Passing(Exception):
    """
    What may work when it is tried again.
    """


# A filer hangs up where a volume does not have the first bytes, and breaks off where it misses later ones.
_UNDELIVERED = (_Passing, IncompleteRead, RemoteDisconnected)


class HttpServer:
    """
    One server. The connection is made when it is needed, and again when it broke.
    """

    def __init__(self, origin: str, access: Access) -> None:
        self.access = access
        self._origin = urlsplit(origin)
        self._connection: HTTPConnection | None = None

    def part(self, path: UrlPath, start: int, size: int) -> bytes:
        """
        The bytes there, fewer at the end of the file.
        """
        if size <= 0:
            return b""
        wanted = {"Range": f"bytes={start}-{start + size - 1}"}
        return self._settled(path, path.target, wanted, lambda answer: _part(path, answer, start, size))

    def size(self, path: UrlPath) -> int:
        """
        How many bytes a file has.
        """
        return self._settled(path, path.target, {"Range": "bytes=0-0"}, lambda answer: _size(path, answer))

    def page(self, path: UrlPath, query: str, bytes_max: int) -> bytes:
        """
        A page of a folder, in JSON.
        """
        wanted = {"Accept": "application/json"}
        target = f"{path.target.rstrip('/')}/?{query}"
        return self._settled(path, target, wanted, lambda answer: _page(path, answer, bytes_max))

    def close(self) -> None:
        """
        End the connection.
        """
        if self._connection:
            self._connection.close()
            self._connection = None

    def _settled(self, path: UrlPath, target: str, wanted: Mapping[str, str], read: Callable[[HTTPResponse], T]) -> T:
        """
        What is read of an answer, which is asked for again for as long as it may work yet.
        """
        began, pause = time.monotonic(), _PAUSE_S
        while True:
            try:
                return self._asked(path, target, wanted, read)
            except (RemoteError, FileNotFoundError, socket.gaierror):
                raise
            except (_Passing, HTTPException, OSError) as error:
                self._check_passing(error)
                problem: Exception = error
            waited = time.monotonic() - began
            if waited + pause > self.access.patience_s:
                reason = str(problem) or type(problem).__name__
                kind = Undelivered if isinstance(problem, _UNDELIVERED) else RemoteError
                raise kind(f"{path} cannot be had, tried for {waited:.0f} s: {reason}") from problem
            time.sleep(pause)
            pause = min(2 * pause, _PAUSE_MAX_S)

    def _asked(self, path: UrlPath, target: str, wanted: Mapping[str, str], read: Callable[[HTTPResponse], T]) -> T:
        connection = self._connected()
        try:
            connection.request("GET", target, headers={**wanted, **self.access.headers()})
            with closing(connection.getresponse()) as answer:
                self._check(path, answer)
                found = read(answer)
                if not answer.isclosed():  # what is left of it would be taken for the next answer
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
        Refuse a server that does not speak as its URL says.
        """
        origin = self._origin.geturl()
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            raise RemoteError(f"no TLS with {origin}: {error}") from error
        if isinstance(error, BadStatusLine) and not isinstance(error, RemoteDisconnected):
            raise RemoteError(f"what {origin} answers is no HTTP: is it another port of the server?") from error

    def _check(self, path: UrlPath, answer: HTTPResponse) -> None:
        """
        Raise what an answer says, unless it is that all went well.
        """
        status = answer.status
        if status < _REDIRECTED or status == _BEYOND_ITS_END:
            return
        if status in _NOT_FOUND:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        words = f"HTTP {status} {answer.read(_REASON_BYTES).decode(errors='replace').strip()}".rstrip()
        if status in _NOT_ALLOWED:
            raise RemoteError(f"{path}: {words}: {self.access.why_refused}")
        if status < _REFUSED:
            raise RemoteError(f"{path}: {words}: it is at {answer.getheader('Location')}, so name that")
        if status in _PASSING or status >= _FAILED:
            raise _Passing(words)
        raise RemoteError(f"{path}: {words}")


def _part(path: UrlPath, answer: HTTPResponse, start: int, size: int) -> bytes:
    if answer.status == _BEYOND_ITS_END:
        return b""
    length = _length_of_part(path, answer, start, size)
    data = answer.read(length)
    if len(data) != length:
        raise _Passing(f"the answer broke off after {len(data):,} of {length:,} bytes")
    return data


def _size(path: UrlPath, answer: HTTPResponse) -> int:
    told = _RANGE.fullmatch(answer.getheader("Content-Range", ""))
    if told and told[3].isdecimal():
        answer.read()
        return int(told[3])
    if answer.status != _WHOLE or answer.length is None:
        raise RemoteError(f"{path.origin} does not say how large {path} is")
    return answer.length


def _length_of_part(path: UrlPath, answer: HTTPResponse, start: int, size: int) -> int:
    """
    How many bytes are to come. A server that does not know ranges sends the whole file, however large.
    """
    if answer.status == _WHOLE and start == 0 and answer.length is not None and answer.length <= size:
        return answer.length
    told = _RANGE.fullmatch(answer.getheader("Content-Range", ""))
    if not told or told[1] is None:
        raise RemoteError(f"{path.origin} does not answer ranges: {size:,} bytes of {path} were wanted, and all came")
    first, last = int(told[1]), int(told[2])
    if first != start or not start <= last < start + size:
        raise RemoteError(f"{path.origin} sent bytes {first} to {last} of {path} instead of {size:,} from {start} on")
    return last - first + 1


def _page(path: UrlPath, answer: HTTPResponse, bytes_max: int) -> bytes:
    kind = answer.getheader("Content-Type", "")
    if answer.status != _WHOLE or not kind.startswith("application/json"):
        raise RemoteError(f"{path} is no folder that {path.origin} lists as a filer does: it sent {kind or 'no JSON'}")
    data = answer.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise RemoteError(f"{path.origin} lists more than {bytes_max:,} bytes of {path} at once")
    if answer.length:
        raise _Passing(f"the answer broke off {answer.length:,} bytes before its end")
    return data
