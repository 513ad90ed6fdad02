"""
Bytes that are put straight onto volume servers, before an entry says that they are there.
"""

import json
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from twisted.internet.defer import Deferred

from kgateway.broker.seaweed.addresses import ServerAddress
from kgateway.broker.seaweed.filer_files import check
from kgateway.broker.seaweed.grpc.method import Method
from kgateway.broker.seaweed.guarded import GuardedChannel
from kgateway.broker.seaweed.http_client import HttpClient
from kgateway.broker.seaweed.protos.filer_pb2 import AssignVolumeRequest, AssignVolumeResponse, FileChunk
from kgateway.broker.seaweed.refused import FilerRefused
from kgateway.broker.seaweed.retrying import Retrying

_ASSIGN = Method("/filer_pb.SeaweedFiler/AssignVolume", AssignVolumeRequest, AssignVolumeResponse)
_ANSWER_S = 20.0
_ALL_S = 40.0  # with all attempts


class Uploaded(NamedTuple):
    """
    What stands on a volume server; no entry need know of it yet.
    """

    chunk: FileChunk
    server: ServerAddress
    permit: str  # a token, where the cluster has such; soon it has expired


class Volumes:
    """
    Found through one filer.
    """

    def __init__(
        self, channel: GuardedChannel, http: HttpClient, retrying: Retrying, now_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._channel = channel
        self._http = http
        self._retrying = retrying
        self._now_ns = now_ns

    def upload(self, path: str, data: bytes) -> Deferred[Uploaded]:
        """
        Put the bytes where those of a file with this path belong: there, and on all replicas of that place.
        """
        return self._retrying.run(lambda seconds: self._upload(path, data, min(seconds, _ANSWER_S)), _ALL_S)

    def remove(self, uploaded: Uploaded) -> Deferred[None]:
        """
        Take away what no entry knows of.
        """
        return self._retrying.run(lambda seconds: self._remove(uploaded, min(seconds, _ANSWER_S)), _ALL_S)

    async def _upload(self, path: str, data: bytes, seconds: float) -> Uploaded:
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
        return Uploaded(chunk, server, assigned.auth)

    async def _remove(self, uploaded: Uploaded, seconds: float) -> None:
        path = f"/{uploaded.chunk.file_id}"
        headers = _permitted(uploaded.permit)
        check(path, await self._http.ask("DELETE", uploaded.server.http, path, headers=headers, timeout_s=seconds))


def _permitted(token: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}
