"""
The coordinator of transactions. Whatever it answers is committed in the log by then. Each KafkaError has the code that
the request's version knows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.cluster.view import Node
from kgateway.context import GatewayParts
from kgateway.coordination.placement import STATE_TOPICS, partition_for
from kgateway.coordination.shard import PIECE, coordinator_error
from kgateway.coordination.shards import CoordinatorShards
from kgateway.coordination.slicing import batched, by_turns
from kgateway.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kgateway.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kgateway.messages.end_txn import EndTxnRequest
from kgateway.messages.init_producer_id import InitProducerIdRequest
from kgateway.security.permissions import Resource
from kgateway.topic_partition import TopicPartition
from kgateway.transactions import machine
from kgateway.transactions.expiry import TransactionExpiry
from kgateway.transactions.markers import MarkerSender
from kgateway.transactions.shard import TransactionShard
from kgateway.transactions.state import EPOCH_EACH, ProducerIdAndEpoch, Transaction
from kgateway.transactions.transaction_filter import TransactionFilter
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message

# From which version on a request may be answered PRODUCER_FENCED (KIP-588).
_FENCED_SINCE: Mapping[type[Message], int] = {
    InitProducerIdRequest: 4,
    AddPartitionsToTxnRequest: 2,
    AddOffsetsToTxnRequest: 2,
    EndTxnRequest: 2,
}
BETWEEN_NODES = 4  # since this version of AddPartitionsToTxn
# From which version on a request comes from, or for, a client with an epoch for each transaction (KIP-890).
_EPOCH_EACH_SINCE: Mapping[type[Message], int] = {AddPartitionsToTxnRequest: 4, EndTxnRequest: 5}

_FENCED = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
_REMEMBERED = 1_000


class FencingLog:
    """
    Logs why a producer is fenced, once: one that asks again and again does not fill the gateway's log.
    """

    _log = Logger()

    def __init__(self) -> None:
        self._logged: dict[tuple[str, str], None] = {}

    def write(self, transactional_id: str, refusal: KafkaError) -> None:
        fencing = transactional_id, refusal.message or ""
        if refusal.code not in _FENCED or fencing in self._logged:
            return
        self._logged[fencing] = None
        if len(self._logged) > _REMEMBERED:
            del self._logged[next(iter(self._logged))]
        self._log.info("{id}: a producer is fenced: {reason}", id=transactional_id, reason=refusal)


class TransactionCoordinator:
    """
    All transactional ids of this gateway. Each has its transactions in one state log, which is loaded when somebody
    first asks for it.
    """

    _log = Logger()

    def __init__(self, gateway: GatewayParts) -> None:
        sender = MarkerSender(gateway)
        self.broker, self._clock, self._now_ms = gateway.broker, gateway.clock, gateway.now_ms
        self._max_timeout_ms = gateway.settings.transaction_max_timeout_ms
        self._shards: CoordinatorShards[TransactionShard] = CoordinatorShards(
            gateway.broker, Resource.TRANSACTIONAL_ID, lambda log, ended: TransactionShard(log, gateway, sender, ended)
        )
        self._fencings = FencingLog()
        self._expiry = TransactionExpiry(gateway, self._shards.available)
        self._shards.available()

    def stop(self) -> None:
        self._expiry.stop()
        self._shards.stop()

    def node_of(self, transactional_id: str) -> Node | None:
        """
        The other node that coordinates the id; `None` if this one does.
        """
        return self._shards.node_of(transactional_id)

    def loading(self, transactional_ids: Iterable[str]) -> list[Deferred[None]]:
        """
        Deferreds that fire when these ids are loaded, or never will be; empty if they are loaded.
        """
        return self._shards.loading(transactional_ids)

    async def init_producer(
        self, transactional_id: str, timeout_ms: int, known: ProducerIdAndEpoch | None, version: int
    ) -> ProducerIdAndEpoch:
        """
        Give the producer its id and epoch. `known` is what it says it had.
        """
        with self._answering(InitProducerIdRequest, version, transactional_id):
            check_transactional_id(transactional_id)
            if not 0 < timeout_ms <= self._max_timeout_ms:
                reason = f"a transaction timeout of {timeout_ms} ms: it must be from 1 to {self._max_timeout_ms}"
                raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT, reason)
            shard = self._shards.shard_of(transactional_id)
            new_id = await shard.new_producer_id(shard.get(transactional_id))
            now, now_ms = shard.get_for_update(transactional_id), self._now_ms()
            if now is None:
                after = machine.create(transactional_id, timeout_ms, new_id, now_ms)
            else:
                after = machine.init_producer(now, known, timeout_ms, new_id, now_ms)
            await _until_committed(shard.write(after))
            if now and after.is_prepared:
                self._log.info(
                    "{id}: aborting the transaction of {producer}, because the transactional id was initialized again",
                    id=transactional_id,
                    producer=now.producer,
                )
                raise KafkaError(
                    ErrorCode.CONCURRENT_TRANSACTIONS, f"the transaction of {now.producer} is aborted first"
                )
            return after.producer

    async def add_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Set[TopicPartition], version: int
    ) -> None:
        await self._add(AddPartitionsToTxnRequest, transactional_id, producer, partitions, version)

    async def add_offsets(
        self, transactional_id: str, producer: ProducerIdAndEpoch, group_id: str, version: int
    ) -> None:
        """
        Add the partition in which the group's offsets are.
        """
        check_transactional_id(transactional_id)
        partitions = {self.partition_of_group(group_id)}
        await self._add(AddOffsetsToTxnRequest, transactional_id, producer, partitions, version)

    def verify(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Set[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """
        An error code for each of these partitions that was not added to the transaction (AddPartitionsToTxn with
        verify_only).
        """
        check_transactional_id(transactional_id)
        now = _known(self._shards.shard_of(transactional_id).get(transactional_id), transactional_id)
        with self._answering(AddPartitionsToTxnRequest, BETWEEN_NODES, transactional_id):
            missing = machine.missing_partitions(now, producer, partitions)
        return {
            partition: ErrorCode.TRANSACTION_ABORTABLE if partition in missing else ErrorCode.NONE
            for partition in partitions
        }

    async def end(
        self, transactional_id: str, producer: ProducerIdAndEpoch, commits: bool, version: int
    ) -> ProducerIdAndEpoch:
        """
        Commit or abort, and return the id and epoch of the next transaction. The end is decided by then, and its
        markers are on their way to the partitions.
        """
        with self._answering(EndTxnRequest, version, transactional_id):
            check_transactional_id(transactional_id)
            shard = self._shards.shard_of(transactional_id)
            new_id = await shard.new_producer_id(_known(shard.get(transactional_id), transactional_id))
            now = _known(shard.get_for_update(transactional_id), transactional_id)
            spoken = _transaction_version(EndTxnRequest, version)
            after = machine.prepare_end(now, producer, commits, spoken, new_id, self._now_ms())
            if after is now:
                return now.producer
            await _until_committed(shard.write(after))
            return machine.complete(after, self._now_ms()).producer

    def describe(self, transactional_id: str) -> Transaction:
        check_transactional_id(transactional_id)
        found = self._shards.shard_of(transactional_id).get(transactional_id)
        if found is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"{transactional_id} is unknown")
        return found

    async def list(self, wanted: TransactionFilter, may_describe: Callable[[str], bool]) -> list[Transaction]:
        """
        The transactions that pass the filter, of those that the client may describe, once all are loaded.
        """
        found: list[Transaction] = []
        for shard in self._shards.all():
            await shard.when_loaded()
            async for piece in by_turns(batched(tuple(shard.transactions), PIECE), self._clock):
                visible = [transaction for transaction in piece if may_describe(transaction.transactional_id)]
                found += wanted.passing(visible, self._now_ms())
        return found

    async def _add(
        self,
        request: type[Message],
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Set[TopicPartition],
        version: int,
    ) -> None:
        with self._answering(request, version, transactional_id):
            check_transactional_id(transactional_id)
            shard = self._shards.shard_of(transactional_id)
            now = _known(shard.get_for_update(transactional_id), transactional_id)
            spoken = _transaction_version(request, version)
            after = machine.add_partitions(now, producer, partitions, spoken, self._now_ms())
            if after is not now:
                await _until_committed(shard.write(after))

    def partition_of_group(self, group_id: str) -> TopicPartition:
        """
        The partition of `__consumer_offsets` that keeps the group. The topic is created if nobody has asked for a group
        yet.
        """
        name = STATE_TOPICS[Resource.GROUP]
        try:
            if name not in self.broker.view().topics:
                self.broker.coordinator(Resource.GROUP, group_id)
        except KafkaError as error:
            raise coordinator_error(error) from None
        topic = self.broker.view().topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"there is no topic {name} yet")
        return TopicPartition(name, partition_for(group_id, len(topic.partitions)))

    @contextmanager
    def _answering(self, request: type[Message], version: int, transactional_id: str) -> Iterator[None]:
        """
        Log fenced producers, and answer old clients with the code that they know.
        """
        try:
            yield
        except KafkaError as error:
            self._fencings.write(transactional_id, error)
            if error.code is ErrorCode.PRODUCER_FENCED and version < _FENCED_SINCE[request]:
                raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message) from None
            raise


def check_transactional_id(transactional_id: str) -> None:
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")


async def _until_committed(written: Deferred[None] | None) -> None:
    if written is not None:
        await written


def _known(now: Transaction | None, transactional_id: str) -> Transaction:
    if now is None:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"{transactional_id} has no producer yet")
    return now


def _transaction_version(request: type[Message], version: int) -> int:
    return EPOCH_EACH if version >= _EPOCH_EACH_SINCE.get(request, version + 1) else 0
