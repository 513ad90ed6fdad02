"""
The bytes of files. A filer serves them by HTTP, because it knows in which volumes they are. They can be put straight
onto volume servers before an entry says that they are there.
"""

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple
from urllib.parse import quote

from twisted.internet.defer import Deferred

from kgateway.broker.seaweed.calls.addresses import ServerAddress
from kgateway.broker.seaweed.calls.breaker import GuardedChannel
from kgateway.broker.seaweed.calls.http_client import HttpClient, HttpResponse
from kgateway.broker.seaweed.calls.retries import FilerRefused, Precondition, Retries, no_precondition
from kgateway.broker.seaweed.grpc.call_headers import Method
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.protos.filer_pb2 import AssignVolumeRequest, AssignVolumeResponse, FileChunk
from kgateway.cluster.view import Address

_ANSWER_S = 20.0
_ALL_S = 40.0  # with all attempts
_REASON_BYTES_MAX = 1 << 16
_PART = 206
_REFUSALS = range(400, 500)
_NOT_FOUND = 404
_BEYOND_ITS_END = 416
_PASSING_REFUSALS = (408, 429)


class FileNotFound(FilerRefused):
    """
    A file does not exist, or is shorter than it was.
    """


class FileContents:
    def __init__(self, address: Address, http: HttpClient, retries: Retries) -> None:
        self._address = address
        self._http = http
        self._retries = retries

    def read(self, path: str, start: int, stop: int, timeout_s: float = _ALL_S) -> Deferred[bytes]:
        """
        The bytes from `start` up to `stop`, or up to the end of the file if that is before.
        """
        return self._retries.run(lambda seconds: self._read(path, start, stop, seconds), timeout_s)

    def put(self, path: str, data: bytes, precondition: Precondition = no_precondition) -> Deferred[None]:
        def attempt(seconds: float) -> Awaitable[None]:
            precondition()
            return self._put(path, data, seconds)

        return self._retries.run(attempt, _ALL_S)

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


def check(path: str, answer: HttpResponse) -> None:
    """
    Raise the error that a response describes, unless it is a success.
    """
    if answer.status < _REFUSALS.start:
        return
    words = f"HTTP {answer.status} {answer.body[:300].decode(errors='replace').strip()}".rstrip()
    if answer.status in _REFUSALS and answer.status not in _PASSING_REFUSALS:
        raise (FileNotFound if answer.status == _NOT_FOUND else FilerRefused)(path, words)
    raise RpcError(Status.UNAVAILABLE, f"{path}: {words}")


_ASSIGN = Method("/filer_pb.SeaweedFiler/AssignVolume", AssignVolumeRequest, AssignVolumeResponse)
_ALL_S = 40.0  # with all attempts


class UploadedChunk(NamedTuple):
    """
    Bytes on a volume server, perhaps without an entry yet.
    """

    chunk: FileChunk
    server: ServerAddress
    permit: str  # a token, if the cluster has such; it expires soon


class Volumes:
    def __init__(
        self, channel: GuardedChannel, http: HttpClient, retries: Retries, now_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._channel = channel
        self._http = http
        self._retries = retries
        self._now_ns = now_ns

    def upload(self, path: str, data: bytes) -> Deferred[UploadedChunk]:
        """
        Put the bytes where those of a file with this path belong: there, and on all replicas of that place.
        """
        return self._retries.run(lambda seconds: self._upload(path, data, min(seconds, _ANSWER_S)), _ALL_S)

    def remove(self, uploaded: UploadedChunk) -> Deferred[None]:
        return self._retries.run(lambda seconds: self._remove(uploaded, min(seconds, _ANSWER_S)), _ALL_S)

    async def _upload(self, path: str, data: bytes, seconds: float) -> UploadedChunk:
        assigned = await self._channel.call(_ASSIGN, AssignVolumeRequest(count=1, path=path), seconds)
        if assigned.error:
            raise FilerRefused(path, assigned.error)
        server = ServerAddress.parse(assigned.location.url)
        headers = _permitted(assigned.auth)
        path_there = f"/{assigned.file_id}"
        answer = await self._http.ask("PUT", server.http, path_there, headers=headers, body=data, timeout_s=seconds)
        check(path, answer)
        chunk = FileChunk(
            file_id=assigned.file_id,
            size=len(data),
            modified_ts_ns=self._now_ns(),
            e_tag=json.loads(answer.body).get("eTag", ""),
        )
        return UploadedChunk(chunk, server, assigned.auth)

    async def _remove(self, uploaded: UploadedChunk, seconds: float) -> None:
        path = f"/{uploaded.chunk.file_id}"
        headers = _permitted(uploaded.permit)
        check(path, await self._http.ask("DELETE", uploaded.server.http, path, headers=headers, timeout_s=seconds))


def _permitted(token: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}
