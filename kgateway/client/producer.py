"""
Sends records to a topic in batches, one batch of each partition at a time.

With acks=all the producer is idempotent: each batch has a sequence number, and a batch that is sent again because its
answer was lost is stored once. A batch that is too large for the topic is split in halves. A producer in a transaction
is the only writer to its partitions, and adds them to the transaction first.

A record with a key goes to the partition that Kafka's Java client would choose.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from random import randrange

from kgateway.client.cluster import Cluster, Node, by_node, leaders_of, refuse
from kgateway.client.connection import Connection, Unanswered
from kgateway.client.send_queue import OutgoingRecord, PendingBatch, ProducerIdentity
from kgateway.client.transactions import Transaction
from kgateway.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.records.compression import Codec
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError

_SEED, _FACTOR, _SHIFT = 0x9747B28C, 0x5BD1E995, 24
_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF
_REMEMBERED = 1 << 16  # keys repeat, and hashing is slow in Python
ACKS = {"0": 0, "1": 1, "all": -1}
PACK_BYTES = 512 << 10  # Kafka takes batches of a megabyte by default
PENDING_BYTES = 8 << 20
_BY_NAME = 12  # the last version of Produce that names topics
_ADDED_BEFORE = 11  # the last version that wants partitions added to a transaction first
_SEQUENCES = 1 << 31
_WORK_MS = 30_000
_TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
_PartAnswer = ProduceResponse.Response.PartitionResponse


def murmur2(data: bytes) -> int:
    """
    The hash, as an unsigned number of 32 bits.
    """
    length = len(data)
    hashed = _SEED ^ length
    whole = length & ~3
    for place in range(0, whole, 4):
        word = int.from_bytes(data[place : place + 4], "little") * _FACTOR & _MASK
        word = (word ^ word >> _SHIFT) * _FACTOR & _MASK
        hashed = (hashed * _FACTOR & _MASK) ^ word
    if length > whole:
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    hashed = (hashed ^ hashed >> 13) * _FACTOR & _MASK
    return hashed ^ hashed >> 15


@lru_cache(maxsize=_REMEMBERED)
def partition_of(key: bytes, partitions: int) -> int:
    return (murmur2(key) & _POSITIVE) % partitions


class Undelivered(Exception):
    """
    A server refused records; the message says which ones and why.
    """


class Producer:
    """
    Buffers a bounded number of bytes. With `may_create` a server that creates topics automatically creates a missing
    one, as for Kafka's producers. `records` and `bytes` count what was delivered, `bytes` before compression.
    """

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        acks: int = -1,
        codec: Codec = Codec.NONE,
        transaction: Transaction | None = None,
        *,
        may_create: bool = False,
    ) -> None:
        self.records = 0
        self.bytes = 0
        self._cluster = cluster
        self._topic = topic
        self._acks = acks
        self._codec = codec
        self._may_create = may_create
        self._leaders = self._find_leaders()
        self._count = len(self._leaders)
        self._transaction = transaction
        self._newest = _ADDED_BEFORE if transaction else _BY_NAME
        self._producing = self._identity()
        self._sequences: dict[int, int] = {}
        self._pending: dict[int, PendingBatch] = {}
        self._pending_bytes = 0
        self._keyless = randrange(self._count)  # where records without a key go, until the next flush

    def send(self, record: OutgoingRecord) -> None:
        """
        Add a record to the batch of its partition; batches that are full are sent.
        """
        index = record.partition
        if index is None:
            index = self._keyless if record.key is None else partition_of(record.key, self._count)
        elif index >= self._count:
            where = PendingBatch([record]).places()
            raise Undelivered(f"{where}: {self._topic} has no partition {index}: it has {self._count}")
        size = record.size
        pack = self._pending.get(index)
        if pack and pack.size + size > PACK_BYTES:
            self.flush()
            pack = None
        if pack is None:
            pack = self._pending[index] = PendingBatch()
        pack.records.append(record)
        pack.size += size
        self._pending_bytes += size
        if self._pending_bytes > PENDING_BYTES:
            self.flush()

    def flush(self) -> None:
        self._join(self._pending)
        waiting = {index: deque([pack]) for index, pack in self._pending.items()}
        self._pending, self._pending_bytes = {}, 0
        self._keyless = (self._keyless + 1) % self._count
        while waiting:
            self._again_until_done(partial(self._deliver, waiting))

    def _again_until_done(self, attempt: partial[None]) -> None:
        """
        Resend what was not answered only if the producer is idempotent (acks=all); otherwise records could be stored
        twice.
        """
        if self._acks == ACKS["all"]:
            self._cluster.retry(attempt, reconnect=True)
        else:
            self._cluster.retry(attempt)

    def _find_leaders(self) -> dict[int, Node]:
        ask = partial(leaders_of, self._cluster, [self._topic], may_create=self._may_create)
        found = self._cluster.retry(ask, reconnect=True)
        if not found:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {self._topic}")
        return {partition.index: leader.node for partition, leader in found.items()}

    def _identity(self) -> ProducerIdentity:
        if self._transaction:
            return self._transaction.producing
        return (
            self._cluster.retry(self._ask_identity, reconnect=True) if self._acks == ACKS["all"] else ProducerIdentity()
        )

    def _ask_identity(self) -> ProducerIdentity:
        connection = self._cluster.any_server()
        if not connection.serves(InitProducerIdRequest):
            return ProducerIdentity()  # an old server, without idempotence
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_WORK_MS)
        result = connection.ask(request, InitProducerIdResponse)
        refuse(result.error_code)
        return ProducerIdentity(result.producer_id, result.producer_epoch)

    def _join(self, indexes: Iterable[int]) -> None:
        """
        Add the partitions of the first writes to the transaction.
        """
        new = [TopicPartition(self._topic, index) for index in indexes if index not in self._sequences]
        if self._transaction and new:
            self._transaction.add(new)

    def _deliver(self, waiting: dict[int, deque[PendingBatch]]) -> None:
        """
        Send the first batch of each partition, and drop those that are delivered from `waiting`. Raises why a batch has
        to be sent again, or cannot be delivered.
        """
        leaders = self._leaders or self._find_leaders()
        self._leaders = {}  # unless all goes well
        problems: list[KafkaError | Undelivered] = []
        for leader, partitions in by_node(self._led(waiting, leaders)).items():
            packs = {partition.index: waiting[partition.index][0] for partition in partitions}
            for index, result in self._ask(leader, packs).items():
                try:
                    self._take(index, waiting[index], result)
                except (KafkaError, Undelivered) as problem:
                    problems.append(problem)
                if not waiting[index]:
                    del waiting[index]
        if problems:
            raise min(problems, key=lambda problem: isinstance(problem, KafkaError))
        self._leaders = leaders

    def _led(self, waiting: Iterable[int], leaders: Mapping[int, Node]) -> dict[TopicPartition, Node]:
        gone = [index for index in waiting if index not in leaders]
        if gone:
            lost = f"partition {gone[0]} of {self._topic} does not exist any more"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, lost)
        return {TopicPartition(self._topic, index): leaders[index] for index in waiting}

    def _ask(self, leader: Node, packs: Mapping[int, PendingBatch]) -> dict[int, _PartAnswer]:
        kind = ProduceRequest.TopicData
        data = [kind.PartitionData(index=index, records=self._batch(index, pack)) for index, pack in packs.items()]
        request = ProduceRequest(
            transactional_id=self._producing.transactional_id,
            acks=self._acks,
            timeout_ms=_WORK_MS,
            topic_data=[kind(name=self._topic, partition_data=data)],
        )
        connection = self._cluster.connection(leader)
        if self._acks == ACKS["0"]:
            _send_only(connection, request)
            return {index: _PartAnswer(index=index, error_code=0, base_offset=-1) for index in packs}
        answer = connection.ask(request, ProduceResponse, newest=self._newest)
        result = {one.index: one for topic in answer.responses for one in topic.partition_responses}
        if result.keys() != packs.keys():
            raise Unanswered(f"{leader.address} responded for other partitions than requested")
        return result

    def _batch(self, index: int, pack: PendingBatch) -> memoryview:
        sequence = self._sequences.get(index, 0) if self._producing.id >= 0 else -1
        return memoryview(pack.batch(self._codec, self._producing, sequence))

    def _take(self, index: int, packs: deque[PendingBatch], result: _PartAnswer) -> None:
        pack = packs[0]
        if (
            result.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER
        ):  # stored already; the server has forgotten at which offset
            result.error_code = ErrorCode.NONE
        if result.error_code == ErrorCode.NONE:
            self._account(index, packs.popleft())
            return
        if result.error_code in _TOO_LARGE and len(pack.records) > 1:
            packs.popleft()
            packs.extendleft(reversed(pack.halves()))
            return
        try:
            refuse(result.error_code, result.error_message)
        except KafkaError as error:
            if error.code.retriable:
                raise
            raise Undelivered(_refusal(pack, result, error)) from error

    def _account(self, index: int, pack: PendingBatch) -> None:
        self._sequences[index] = (self._sequences.get(index, 0) + len(pack.records)) % _SEQUENCES
        self.records += len(pack.records)
        self.bytes += sum(len(record.key or b"") + len(record.value or b"") for record in pack.records)


def _send_only(connection: Connection, request: ProduceRequest) -> None:
    """
    Send a request that has no answer, and check that the server has not closed the connection over it.
    """
    try:
        connection.send_only(request, newest=_BY_NAME)
        connection.check()
    except Unanswered as error:
        raise Unanswered(
            f"{error}; it may have refused records: with acks of 1 or all it would give the reason"
        ) from error


def _refusal(pack: PendingBatch, result: _PartAnswer, error: KafkaError) -> str:
    faults = [(pack.places(one.batch_index), one.batch_index_error_message) for one in result.record_errors]
    if not faults:
        return f"{pack.places()}: {error}"
    return "; ".join(f"{place}: {why or error}" for place, why in faults[:3])
