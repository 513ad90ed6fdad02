"""
All transactions that this gateway coordinates, as handlers find them.

Whatever is answered is safe in the log by then. A KafkaError is told in the words of the request's version.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.cluster.view import Node
from kgateway.context import GatewayParts
from kgateway.coordinating.places import STATE_TOPICS, place_of
from kgateway.coordinating.refusals import as_coordinator
from kgateway.coordinating.shards import Shards
from kgateway.coordinating.state_shard import PIECE
from kgateway.coordinating.turns import by_turns, in_pieces
from kgateway.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kgateway.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kgateway.messages.end_txn import EndTxnRequest
from kgateway.messages.init_producer_id import InitProducerIdRequest
from kgateway.security.permissions import Resource
from kgateway.transactions.elsewhere import ask
from kgateway.transactions.listing import Filter
from kgateway.transactions.machine import added, begun, completed, ended, missing, new
from kgateway.transactions.sending import Sender
from kgateway.transactions.shard import TransactionShard
from kgateway.transactions.state import EPOCH_EACH, Identity, Place, Transaction
from kgateway.transactions.telling import Fencings
from kgateway.transactions.upkeep import Upkeep
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message

# From which version on a request may be answered PRODUCER_FENCED (KIP-588).
_FENCED_SINCE: Mapping[type[Message], int] = {
    InitProducerIdRequest: 4,
    AddPartitionsToTxnRequest: 2,
    AddOffsetsToTxnRequest: 2,
    EndTxnRequest: 2,
}
_BETWEEN_NODES = 4  # since this version of AddPartitionsToTxn
# From which version on a request comes from, or for, a client with an epoch for each transaction (KIP-890).
_EPOCH_EACH_SINCE: Mapping[type[Message], int] = {AddPartitionsToTxnRequest: 4, EndTxnRequest: 5}


class Transactions:
    """
    The coordinator. Each id has its transactions in one state log, which is loaded when it is first needed.
    """

    _log = Logger()

    def __init__(self, gateway: GatewayParts) -> None:
        sender = Sender(gateway)
        self._broker, self._clock, self._now_ms = gateway.broker, gateway.clock, gateway.now_ms
        self._max_timeout_ms = gateway.settings.transaction_max_timeout_ms
        self._shards: Shards[TransactionShard] = Shards(
            gateway.broker,
            Resource.TRANSACTIONAL_ID,
            lambda log, ended: TransactionShard(log, gateway, sender, ended),
        )
        self._fencings = Fencings()
        self._upkeep = Upkeep(gateway, self._shards.known)
        self._shards.known()

    def stop(self) -> None:
        """
        Coordinate nothing any more.
        """
        self._upkeep.stop()
        self._shards.stop()

    def coordinator(self, transactional_id: str) -> Node | None:
        """
        Which other node has the id; none where this one has it.
        """
        return self._shards.coordinator(transactional_id)

    def loading(self, transactional_ids: Iterable[str]) -> list[Deferred[None]]:
        """
        What fires when all of these can be asked for, or never will; nothing where they can be now.
        """
        return self._shards.loading(transactional_ids)

    async def init(self, transactional_id: str, timeout_ms: int, known: Identity | None, version: int) -> Identity:
        """
        Who the producer is from now on; `known` is who it says it was.
        """
        with self._answering(InitProducerIdRequest, version, transactional_id):
            _check_id(transactional_id)
            if not 0 < timeout_ms <= self._max_timeout_ms:
                reason = f"a transaction of {timeout_ms} ms: it must be 1 at least, and {self._max_timeout_ms} at most"
                raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT, reason)
            shard = self._shards.having(transactional_id)
            fresh_id = await shard.fresh_id(shard.look(transactional_id))
            now, now_ms = shard.find(transactional_id), self._now_ms()
            if now is None:
                after = new(transactional_id, timeout_ms, fresh_id, now_ms)
            else:
                after = begun(now, known, timeout_ms, fresh_id, now_ms)
            await _safe(shard.write(after))
            if now and after.is_prepared:
                self._tell_replaced(now)
                raise KafkaError(
                    ErrorCode.CONCURRENT_TRANSACTIONS, f"the transaction of {now.identity} is aborted first"
                )
            return after.identity

    async def add_partitions(self, transactional_id: str, who: Identity, places: Set[Place], version: int) -> None:
        """
        The transaction writes to these partitions, too.
        """
        await self._add(AddPartitionsToTxnRequest, transactional_id, who, places, version)

    async def add_offsets(self, transactional_id: str, who: Identity, group_id: str, version: int) -> None:
        """
        The transaction commits offsets of this group, too.
        """
        _check_id(transactional_id)
        places = {self.place_of_group(group_id)}
        await self._add(AddOffsetsToTxnRequest, transactional_id, who, places, version)

    async def join(
        self, transactional_id: str, who: Identity, places: Set[Place], *, adds: bool
    ) -> Mapping[Place, ErrorCode]:
        """
        Whether these partitions are part of the transaction, by the word of whoever coordinates it; with `adds` they
        become so.
        """
        _check_id(transactional_id)
        node = self.coordinator(transactional_id)
        if node is not None:
            return await ask(self._broker.peers, node, transactional_id, who, places, adds=adds)
        if not adds:
            return self.verify(transactional_id, who, places)
        await self.add_partitions(transactional_id, who, places, _BETWEEN_NODES)
        return dict.fromkeys(places, ErrorCode.NONE)

    def verify(self, transactional_id: str, who: Identity, places: Set[Place]) -> Mapping[Place, ErrorCode]:
        """
        Whether these partitions were added to the transaction (AddPartitionsToTxn with verify_only).
        """
        _check_id(transactional_id)
        now = _known(self._shards.having(transactional_id).look(transactional_id), transactional_id)
        with self._answering(AddPartitionsToTxnRequest, _BETWEEN_NODES, transactional_id):
            unknown = missing(now, who, places)
        return {place: ErrorCode.TRANSACTION_ABORTABLE if place in unknown else ErrorCode.NONE for place in places}

    async def end(self, transactional_id: str, who: Identity, commits: bool, version: int) -> Identity:
        """
        Commit or abort: it is decided then, and the partitions are being told. Who the producer is in its next
        transaction.
        """
        with self._answering(EndTxnRequest, version, transactional_id):
            _check_id(transactional_id)
            shard = self._shards.having(transactional_id)
            fresh_id = await shard.fresh_id(_known(shard.look(transactional_id), transactional_id))
            now = _known(shard.find(transactional_id), transactional_id)
            spoken = _transaction_version(EndTxnRequest, version)
            after = ended(now, who, commits, spoken, fresh_id, self._now_ms())
            if after is now:
                return now.identity
            await _safe(shard.write(after))
            return completed(after, self._now_ms()).identity

    def describe(self, transactional_id: str) -> Transaction:
        """
        What is known of the id; TRANSACTIONAL_ID_NOT_FOUND where that is nothing.
        """
        _check_id(transactional_id)
        found = self._shards.having(transactional_id).look(transactional_id)
        if found is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"nothing is known of {transactional_id}")
        return found

    async def listed(self, wanted: Filter, may_describe: Callable[[str], bool]) -> list[Transaction]:
        """
        All that pass, of those that the client may know of, once they are loaded.
        """
        found = list[Transaction]()
        for shard in self._shards.all():
            await shard.when_loaded()
            async for piece in by_turns(in_pieces(list(shard.transactions), PIECE), self._clock):
                known = [one for one in piece if may_describe(one.transactional_id)]
                found += wanted.passing(known, self._now_ms())
        return found

    async def _add(
        self, request: type[Message], transactional_id: str, who: Identity, places: Set[Place], version: int
    ) -> None:
        with self._answering(request, version, transactional_id):
            _check_id(transactional_id)
            shard = self._shards.having(transactional_id)
            now = _known(shard.find(transactional_id), transactional_id)
            after = added(now, who, places, _transaction_version(request, version), self._now_ms())
            if after is not now:
                await _safe(shard.write(after))

    def place_of_group(self, group_id: str) -> Place:
        """
        The partition that has the group, in the internal topic, which is made where nobody has asked for a group yet.
        """
        name = STATE_TOPICS[Resource.GROUP]
        try:
            if name not in self._broker.view().topics:
                self._broker.coordinator(Resource.GROUP, group_id)
        except KafkaError as error:
            raise as_coordinator(error) from None
        topic = self._broker.view().topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"there is no topic {name} yet")
        return Place(name, place_of(group_id, len(topic.partitions)))

    def _tell_replaced(self, open_one: Transaction) -> None:
        told = {"id": open_one.transactional_id, "producer": open_one.identity}
        self._log.info("{id}: the transaction of {producer} is aborted, for a producer begins anew", **told)

    @contextmanager
    def _answering(self, request: type[Message], version: int, transactional_id: str) -> Iterator[None]:
        """
        Tell of producers that are fenced, of which clients of old know nothing.
        """
        try:
            yield
        except KafkaError as error:
            self._fencings.tell(transactional_id, error)
            if error.code is ErrorCode.PRODUCER_FENCED and version < _FENCED_SINCE[request]:
                raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message) from None
            raise


async def _safe(written: Deferred[None] | None) -> None:
    if written is not None:
        await written


def _check_id(transactional_id: str) -> None:
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")


def _known(now: Transaction | None, transactional_id: str) -> Transaction:
    if now is None:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"{transactional_id} has no producer: none has begun")
    return now


def _transaction_version(request: type[Message], version: int) -> int:
    return EPOCH_EACH if version >= _EPOCH_EACH_SINCE.get(request, version + 1) else 0
