"""
The masters of a cluster: which of them leads, and what servers it knows.

Only the leader knows the servers; a follower answers that there are none.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime

from kgateway.broker.deferreds import SharedAnswers
from kgateway.broker.seaweed.calls.addresses import ServerAddress
from kgateway.broker.seaweed.calls.breaker import GuardedChannel
from kgateway.broker.seaweed.calls.retries import Retries
from kgateway.broker.seaweed.grpc.call_headers import Method
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.protos.master_pb2 import (
    GetMasterConfigurationRequest,
    GetMasterConfigurationResponse,
    ListClusterNodesRequest,
    ListClusterNodesResponse,
)

FILERS, BROKERS = "filer", "broker"

_CONFIGURATION = Method(
    "/master_pb.Seaweed/GetMasterConfiguration", GetMasterConfigurationRequest, GetMasterConfigurationResponse
)
LIST_NODES = Method("/master_pb.Seaweed/ListClusterNodes", ListClusterNodesRequest, ListClusterNodesResponse)
_FRESH_S = 30.0
_ANSWER_S = 3.0


class ClusterNode(NamedTuple):
    address: str
    created_at_ns: int


class Masters:
    """
    A client of the masters, which are asked one after the other, first the one that led last.
    """

    def __init__(
        self,
        addresses: Sequence[ServerAddress],
        channel_to: Callable[[ServerAddress], GuardedChannel],
        clock: IReactorTime,
        retries: Retries,
        filer_group: str = "",
    ) -> None:
        self._addresses = list(addresses)
        self._channel_to = channel_to
        self._clock = clock
        self._retries = retries
        self._filer_group = filer_group
        self._leader: ServerAddress | None = None
        self._known: dict[str, tuple[float, list[ClusterNode]]] = {}
        self._asking: SharedAnswers[str, list[ClusterNode]] = SharedAnswers(self._ask_for_nodes)

    def nodes(self, kind: str, timeout_s: float = 10, *, refresh: bool = False) -> Deferred[list[ClusterNode]]:
        """
        The servers of a kind, cached for half a minute unless they are to be refreshed.
        """
        since, found = self._known.get(kind, (0.0, []))
        if found and not refresh and self._clock.seconds() - since < _FRESH_S:
            return succeed(found)
        return self._retries.run(lambda seconds: self._asking.get(kind), timeout_s)

    def leader(self, timeout_s: float = 10) -> Deferred[ServerAddress]:
        return self._retries.run(lambda seconds: self._find_leader(), timeout_s)

    async def _ask_for_nodes(self, kind: str) -> list[ClusterNode]:
        leader = await self._find_leader()
        request = ListClusterNodesRequest(client_type=kind, filer_group=self._filer_group)
        answer = await self._channel_to(leader).call(LIST_NODES, request, _ANSWER_S)
        found = sorted(ClusterNode(node.address, node.created_at_ns) for node in answer.cluster_nodes)
        self._known[kind] = self._clock.seconds(), found
        return found

    async def _find_leader(self) -> ServerAddress:
        problems = []
        for address in self._in_order():
            try:
                self._leader = await self._leader_by(address)
            except RpcError as error:
                problems.append(f"{address}: {error.message}")
            else:
                return self._leader
        raise RpcError(Status.UNAVAILABLE, f"no master knows the leader: {'; '.join(problems)}")

    async def _leader_by(self, address: ServerAddress) -> ServerAddress:
        answer = await self._channel_to(address).call(_CONFIGURATION, GetMasterConfigurationRequest(), _ANSWER_S)
        if not answer.leader:
            raise RpcError(Status.UNAVAILABLE, "the masters are choosing a leader")
        return ServerAddress.parse(answer.leader)

    def _in_order(self) -> Iterable[ServerAddress]:
        first = [self._leader] if self._leader else []
        return dict.fromkeys([*first, *self._addresses])
