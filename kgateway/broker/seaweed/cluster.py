"""
A SeaweedFS cluster, known by the addresses of its masters.
"""

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.endpoints import HostnameEndpoint

from kgateway.broker.seaweed.calls.addresses import ServerAddress, broker_address
from kgateway.broker.seaweed.calls.breaker import CircuitBreaker, GuardedChannel
from kgateway.broker.seaweed.calls.http_client import HttpClient
from kgateway.broker.seaweed.calls.retries import Retries
from kgateway.broker.seaweed.filer.content import FileContents, Volumes
from kgateway.broker.seaweed.filer.filer import Filer, has_store
from kgateway.broker.seaweed.grpc.channel import Channel
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.masters import BROKERS, FILERS, Masters
from kgateway.broker.seaweed.security.cluster_access import Role, Security
from kgateway.cluster.view import Address


class SeaweedCluster:
    """
    A client of a cluster, with one channel to each server, and one filer for all callers: the pinned one, or else any
    that answers.
    """

    def __init__(
        self,
        masters: Sequence[ServerAddress],
        reactor: Any,
        *,
        filer_group: str = "",
        security: Security | None = None,
    ) -> None:
        self.retries = Retries(reactor)
        self._reactor = reactor
        self.which = f"of the filerGroup {filer_group}" if filer_group else "without a filerGroup"
        self._security = security or Security()
        self._channels: dict[tuple[Role, Address, int | None], GuardedChannel] = {}
        self._filers: dict[ServerAddress, Filer] = {}
        self._filer: Filer | None = None
        self._is_pinned = False
        self._http = {role: HttpClient(reactor, role, self._security) for role in (Role.FILER, Role.VOLUME)}
        self.masters = Masters(masters, self._channel_to_master, reactor, self.retries, filer_group)

    def channel(self, broker: str) -> GuardedChannel:
        return self._channel(Role.BROKER, broker_address(broker))

    def filer(self) -> Deferred[Filer]:
        """
        The filer in use; another one if that does not answer and there is another, unless it is pinned.
        """
        return Deferred.fromCoroutine(self._current_filer())

    def filer_at(self, address: ServerAddress) -> Filer:
        if address not in self._filers:
            self._filers[address] = self._new_filer(address)
        return self._filers[address]

    def pin(self, address: ServerAddress, store: int) -> Filer:
        """
        From now on use this filer only, and only while it has this store.
        """
        self._filer, self._is_pinned = self._new_filer(address, store), True
        return self._filer

    def brokers(self, *, refresh: bool = False) -> Deferred[list[str]]:
        return self.masters.nodes(BROKERS, refresh=refresh).addCallback(lambda nodes: [node.address for node in nodes])

    def close(self) -> Deferred[None]:
        ends: list[Deferred[None]] = [channel.close() for channel in self._channels.values()]
        ends += [http.close() for http in self._http.values()]
        return gatherResults(ends, consumeErrors=True).addCallback(lambda _: None)

    async def _current_filer(self) -> Filer:
        current = self._filer
        if current and (self._is_pinned or not current.is_out):
            return current
        nodes = await self.masters.nodes(FILERS, refresh=True)
        found = [self.filer_at(ServerAddress.parse(node.address)) for node in nodes]
        answering = [filer for filer in found if not filer.is_out]
        if not (answering or current):
            raise RpcError(Status.UNAVAILABLE, f"the masters know no filer {self.which} that responds")
        self._filer = answering[0] if answering else current
        assert self._filer
        return self._filer

    def _channel(self, role: Role, address: Address, store: int | None = None) -> GuardedChannel:
        found = self._channels.get((role, address, store))
        if found is None:
            plain = HostnameEndpoint(self._reactor, address.host, address.port)
            endpoint = self._security.grpc(plain, role)
            check = None if store is None else has_store(store)
            channel = Channel(endpoint.connect, str(address), self._reactor, check=check)
            found = GuardedChannel(channel, CircuitBreaker(str(address), self._reactor))
            self._channels[role, address, store] = found
        return found

    def _new_filer(self, address: ServerAddress, store: int | None = None) -> Filer:
        channel = self._channel(Role.FILER, address.grpc, store)
        files = FileContents(address.http, self._http[Role.FILER], self.retries)
        volumes = Volumes(channel, self._http[Role.VOLUME], self.retries)
        return Filer(address, channel, files, volumes, self.retries)

    def _channel_to_master(self, address: ServerAddress) -> GuardedChannel:
        return self._channel(Role.MASTER, address.grpc)
