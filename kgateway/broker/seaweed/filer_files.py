"""
The bytes of files, which a filer serves by HTTP: it knows in which volumes they are.
"""

from collections.abc import Awaitable
from urllib.parse import quote

from twisted.internet.defer import Deferred

from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.http_client import Answer, HttpClient
from kgateway.broker.seaweed.refused import FilerRefused
from kgateway.broker.seaweed.retrying import Demand, Retrying, demand_nothing
from kgateway.cluster.view import Address

_ANSWER_S = 20.0
_ALL_S = 40.0  # with all attempts
_REASON_BYTES_MAX = 1 << 16
_PART = 206
_REFUSALS = range(400, 500)
_NOT_FOUND = 404
_BEYOND_ITS_END = 416
_PASSING_REFUSALS = (408, 429)


class NotThere(FilerRefused):
    """
    There is no such file, or not as much of it as there was.
    """


class FilerFiles:
    """
    By one filer.
    """

    def __init__(self, address: Address, http: HttpClient, retrying: Retrying) -> None:
        self._address = address
        self._http = http
        self._retrying = retrying

    def read(self, path: str, start: int, stop: int, timeout_s: float = _ALL_S) -> Deferred[bytes]:
        """
        The bytes from the one place to the other, or to the end of the file where that comes before.
        """
        return self._retrying.run(lambda seconds: self._read(path, start, stop, seconds), timeout_s)

    def put(self, path: str, data: bytes, demand: Demand = demand_nothing) -> Deferred[None]:
        """
        Make this the bytes of the file.
        """

        def attempt(seconds: float) -> Awaitable[None]:
            demand()
            return self._put(path, data, seconds)

        return self._retrying.run(attempt, _ALL_S)

    async def _read(self, path: str, start: int, stop: int, seconds: float) -> bytes:
        if start >= stop:
            return b""
        answer = await self._http.ask(
            "GET",
            self._address,
            quote(path),
            headers={"Range": f"bytes={start}-{stop - 1}"},
            answer_bytes_max=max(stop - start, _REASON_BYTES_MAX),
            timeout_s=min(seconds, _ANSWER_S),
        )
        if answer.status == _BEYOND_ITS_END:
            return b""
        check(path, answer)
        return answer.body if answer.status == _PART else answer.body[start:stop]

    async def _put(self, path: str, data: bytes, seconds: float) -> None:
        timeout_s = min(seconds, _ANSWER_S)
        check(path, await self._http.ask("PUT", self._address, quote(path), body=data, timeout_s=timeout_s))


def check(path: str, answer: Answer) -> None:
    """
    Raise what an answer says, unless it is that all went well.
    """
    if answer.status < _REFUSALS.start:
        return
    words = f"HTTP {answer.status} {answer.body[:300].decode(errors='replace').strip()}".rstrip()
    if answer.status in _REFUSALS and answer.status not in _PASSING_REFUSALS:
        raise (NotThere if answer.status == _NOT_FOUND else FilerRefused)(path, words)
    raise RpcError(Status.UNAVAILABLE, f"{path}: {words}")
