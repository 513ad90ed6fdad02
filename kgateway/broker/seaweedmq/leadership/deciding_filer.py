"""
The deciding filer: the one filer that creates the objects of all chains of a cluster, for all of its gateways.

No store of SeaweedFS creates an entry on the condition that it is absent; a filer looks first, and then writes. So an
object of a chain has one writer only if one filer decides that. The gateways agree on one and write it down, and none
of them uses another filer:

    /topics/kafka/.meta/kgateway/filer    {"filer": "10.0.0.1:8888", "store": 1118015429, "is_shared": false}

`store` is the number of the filer's store, and `is_shared` says whether other filers with this store were ever seen. If
not, the filer may be started again at another address, because nothing else can open its store. The filer of a shared
store may not: the old filer and the new one could decide at the same time.

Filers that have stores of their own are refused. Each gets the entries of the others a moment later, or much later if
it was suspended, so that a broker and a gateway may see different ends of one log.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple, Self

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from kgateway.broker.base import BrokerUnusable
from kgateway.broker.seaweed.calls.addresses import ServerAddress
from kgateway.broker.seaweed.calls.retries import is_passing
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.masters import FILERS
from kgateway.broker.seaweed.protos.filer_pb2 import Entry
from kgateway.broker.seaweedmq.gateway_runtime import GatewayRuntime
from kgateway.broker.seaweedmq.layout.kafka_errors import CLUSTER_ERRORS
from kgateway.log_messages import FILERS_UNWATCHED, FILERS_WITH_OTHER_STORES

CHECK_S = 10.0
_ANSWER_S = 3.0
_PATIENCE_S = 10.0

_SEVERAL_STORES = (
    "the filers have stores of their own: {filers}. Each filer gets the entries of the others with a delay, so two "
    "gateways may lead at a time, and gateways and brokers may disagree about the end of a log. Run one filer, or let "
    "all filers share one store: see docs/seaweedmq.md"
)
_COPY = (
    "{path} names the filer {found.address} with the store {found.store}, but the filers that respond have another "
    "store, {store}, which is a copy and may lack the last entries. Start {found.address} with its store again. If the "
    "store is lost, stop all gateways, delete {path}, and start the gateways: they then use the copy"
)
_MISSING = (
    "{path} names the filer {found.address}, which the masters do not know; they know {known}. Start it again. If it "
    "is gone for good, stop all gateways, delete {path}, and start the gateways: they then choose another filer"
)
_SILENT = (
    "the gateways have not chosen a filer yet, and cannot, because {filers} did not respond within {seconds:g} s, and "
    "may have another store. Make it respond, or stop it"
)


class Decision(NamedTuple):
    """
    The content of the file.
    """

    address: ServerAddress
    store: int
    is_shared: bool

    @classmethod
    def decoded(cls, content: bytes) -> Self:
        """
        Raises ValueError if the content is none.
        """
        try:
            fields = json.loads(content)
            return cls(ServerAddress.parse(fields["filer"]), int(fields["store"]), bool(fields["is_shared"]))
        except (TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"it does not name a filer: {error!r}") from error

    def encoded(self) -> bytes:
        fields = {"filer": str(self.address), "store": self.store, "is_shared": self.is_shared}
        return json.dumps(fields).encode()


class _DecidingFilerMissing(BrokerUnusable):
    pass


class _Filers(NamedTuple):
    """
    The filers that the masters know, first the one that has run longest, and the stores of those that respond.
    """

    listed: list[ServerAddress]
    stores: dict[ServerAddress, int]

    @property
    def silent(self) -> list[ServerAddress]:
        return [address for address in self.listed if address not in self.stores]

    def described(self, without: int | None = None) -> str:
        others = {address: store for address, store in self.stores.items() if store != without}
        return " and ".join(f"{address} (store {store})" for address, store in others.items())


class DecidingFiler:
    """
    The deciding filer as one gateway knows it.
    """

    _log = Logger()

    def __init__(self, gateway: GatewayRuntime) -> None:
        self._seaweed = gateway.seaweed
        self._path = f"{gateway.folder}/filer"
        self._store = 0  # of the deciding filer
        self._logged = ""  # filers with other stores
        self._checks = LoopingCall(lambda: Deferred.fromCoroutine(self._check()))
        self._checks.clock = gateway.reactor

    def use(self, patience_s: float = _PATIENCE_S) -> Deferred[Filer]:
        """
        Find the deciding filer, or choose it if there is none, and use no other filer from now on. Fails with
        BrokerUnusable if that would not be safe.
        """
        return self._seaweed.retries.run(lambda _: self._use(), patience_s, _may_repeat)

    def watch(self) -> None:
        """
        From now on report filers that are not safe, and notice when the store becomes a shared one.
        """
        self._checks.start(CHECK_S, now=False).addErrback(lambda failure: self._log.failure(FILERS_UNWATCHED, failure))

    def stop(self) -> None:
        if self._checks.running:
            self._checks.stop()

    async def _use(self) -> Filer:
        filers = await self._filers()
        if len({*filers.stores.values()}) > 1:
            raise BrokerUnusable(_SEVERAL_STORES.format(filers=filers.described()))
        first, *more = filers.stores
        store = filers.stores[first]
        entry, decision = await self._read(first)
        if decision is None:
            if filers.silent:
                silent = _addresses(filers.silent)
                raise RpcError(Status.UNAVAILABLE, _SILENT.format(filers=silent, seconds=_ANSWER_S))
            decision = Decision(first, store, is_shared=bool(more))
            await self._write(decision, None)
        elif decision.store != store:
            raise BrokerUnusable(_COPY.format(path=self._path, store=store, found=decision))
        elif decision.address not in filers.listed:
            if decision.is_shared or len(filers.listed) > 1:
                known = _addresses(filers.listed)
                raise _DecidingFilerMissing(_MISSING.format(path=self._path, found=decision, known=known))
            decision = decision._replace(address=first)
            await self._write(decision, entry)
        else:
            await self._note_sharing(filers, entry, decision)
        self._store = decision.store
        return self._seaweed.pin(decision.address, decision.store)

    async def _check(self) -> None:
        try:
            filers = await self._filers()
            entry, decision = await self._read((await self._seaweed.filer()).address)
            if decision:
                await self._note_sharing(filers, entry, decision)
        except (*CLUSTER_ERRORS, BrokerUnusable) as error:
            self._log.info("cannot check the stores of the filers: {error}", error=error)
            return
        others = filers.described(without=self._store)
        if others and others != self._logged:
            self._log.error(FILERS_WITH_OTHER_STORES, filers=others)
        self._logged = others

    async def _filers(self) -> _Filers:
        nodes = await self._seaweed.masters.nodes(FILERS, refresh=True)
        listed = [ServerAddress.parse(node.address) for node in sorted(nodes, key=lambda node: node.created_at_ns)]
        asked = [self._seaweed.filer_at(address).store(_ANSWER_S) for address in listed]
        answers = await DeferredList(asked, consumeErrors=True)
        stores = {address: store for address, (answered, store) in zip(listed, answers, strict=True) if answered}
        if not stores:
            raise RpcError(Status.UNAVAILABLE, f"the masters know no filer {self._seaweed.which} that responds")
        return _Filers(listed, stores)

    async def _note_sharing(self, filers: _Filers, entry: Entry | None, decision: Decision) -> None:
        if not decision.is_shared and [*filers.stores.values()].count(decision.store) > 1:
            await self._write(decision._replace(is_shared=True), entry)

    async def _read(self, address: ServerAddress) -> tuple[Entry | None, Decision | None]:
        filer = self._seaweed.filer_at(address)
        entry = await filer.entry(self._path)
        if entry is None:
            return None, None
        try:
            return entry, Decision.decoded(await filer.content_of(self._path, entry))
        except ValueError as error:
            raise BrokerUnusable(f"{self._path} is not the file of a gateway: {error}") from error

    async def _write(self, decision: Decision, old: Entry | None) -> None:
        """
        Write the file, if it is still as it was read.
        """
        filer = self._seaweed.filer_at(decision.address)
        entry = filer.versioned_file(decision.encoded())
        written = filer.replace_here(self._path, entry, old) if old else filer.create_here(self._path, entry)
        if not await written:
            raise RpcError(Status.ABORTED, f"{self._path}: another gateway has changed it meanwhile")


def _may_repeat(error: Exception) -> bool:
    """
    Whether the same attempt may succeed a little later; a filer that was just started is not known to the masters yet.
    """
    return is_passing(error) or isinstance(error, _DecidingFilerMissing)


def _addresses(filers: Sequence[ServerAddress]) -> str:
    return " and ".join(map(str, filers))
