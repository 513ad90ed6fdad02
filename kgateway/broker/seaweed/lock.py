"""
A lock that the filers of a cluster give to one process at a time, for as long as the process renews it.

It is in a filer's memory: it tells which process is alive, and nothing durable depends on it.
"""

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.grpc.call_headers import Method
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.masters import FILERS
from kgateway.broker.seaweed.protos.filer_pb2 import LockRequest, LockResponse, UnlockRequest, UnlockResponse

_CALL_S = 5.0
_LOCK = Method("/filer_pb.SeaweedFiler/DistributedLock", LockRequest, LockResponse)
_UNLOCK = Method("/filer_pb.SeaweedFiler/DistributedUnlock", UnlockRequest, UnlockResponse)


class FilerLock:
    def __init__(self, seaweed: SeaweedCluster, name: str, owner: str, seconds: int) -> None:
        self.holder = ""  # as far as the last answer tells
        self._seaweed = seaweed
        self._name = name
        self._owner = owner
        self._seconds = seconds
        self._token = ""

    @property
    def is_ours(self) -> bool:
        """
        Whether it was ours when it was asked for last.
        """
        return bool(self._token)

    async def may_be_forgotten(self) -> bool:
        """
        Whether the filers may have forgotten a holder: one that has just been started does not know it.
        """
        now_ns = await (await self._seaweed.filer()).now_ns()
        filers = await self._seaweed.masters.nodes(FILERS, refresh=True)
        return any(now_ns - filer.created_at_ns < self._seconds * 1_000_000_000 for filer in filers)

    async def take(self) -> bool:
        """
        Take or renew it. Returns whether it is ours now; raises RpcError if that is unknown.
        """
        request = LockRequest(
            name=self._name, seconds_to_lock=self._seconds, renew_token=self._token, owner=self._owner
        )
        answer = await (await self._seaweed.filer()).channel.call(_LOCK, request, _CALL_S)
        self._token = answer.renew_token
        self.holder = answer.lock_owner
        if answer.error and not answer.lock_owner:
            raise RpcError(Status.UNAVAILABLE, f"lock {self._name}: {answer.error}")
        return bool(answer.renew_token) and not answer.error

    async def give_back(self) -> None:
        token, self._token = self._token, ""
        if token:
            await (await self._seaweed.filer()).channel.call(
                _UNLOCK, UnlockRequest(name=self._name, renew_token=token), _CALL_S
            )
