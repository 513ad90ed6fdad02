"""
Sends records to a topic, in batches, one batch of a partition at a time.

With acks from all replicas it is idempotent: each batch has a sequence number, and one that is sent again, because its
answer did not come, is stored once. A batch that is too large for the topic is sent in halves. In a transaction it is
the only one to write to its partitions, and says which those are before it does.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from functools import partial
from random import randrange

from kgateway.client.cluster import Cluster, Node, refuse
from kgateway.client.connection import Connection, Unanswered
from kgateway.client.offsets import Partition, by_leader, leaders_of
from kgateway.client.outgoing import Outgoing, Pack, Producing
from kgateway.client.partitioning import partition_of
from kgateway.client.transacting import Transaction
from kgateway.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.records.compression import Codec
from kgateway.wire.errors import ErrorCode, KafkaError

ACKS = {"0": 0, "1": 1, "all": -1}
PACK_BYTES = 512 << 10  # Kafka takes batches of a megabyte unless it is told otherwise
PENDING_BYTES = 8 << 20
_BY_NAME = 12  # the last version of Produce that names topics
_ADDED_BEFORE = 11  # the last one that has partitions added to a transaction before
_SEQUENCES = 1 << 31
_WORK_MS = 30_000
_TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}

_PartAnswer = ProduceResponse.Response.PartitionResponse


class Undelivered(Exception):
    """
    A server refused records; which ones and why, in words.
    """


class Producer:
    """
    What is sent and not flushed is bounded; `records` and `bytes` were delivered, `bytes` before compression.
    """

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        acks: int = -1,
        codec: Codec = Codec.NONE,
        transaction: Transaction | None = None,
    ) -> None:
        self.records = 0
        self.bytes = 0
        self._cluster = cluster
        self._topic = topic
        self._acks = acks
        self._codec = codec
        self._leaders = self._find_leaders()
        self._count = len(self._leaders)
        self._transaction = transaction
        self._newest = _ADDED_BEFORE if transaction else _BY_NAME
        self._producing = self._identity()
        self._sequences: dict[int, int] = {}
        self._pending: dict[int, Pack] = {}
        self._pending_bytes = 0
        self._keyless = randrange(self._count)  # where records without a key go, until the next flush

    def send(self, record: Outgoing) -> None:
        """
        Take a record; what is full goes off.
        """
        index = record.partition
        if index is None:
            index = self._keyless if record.key is None else partition_of(record.key, self._count)
        elif index >= self._count:
            where = Pack([record]).places()
            raise Undelivered(f"{where}: {self._topic} has no partition {index}: it has {self._count}")
        size = record.size
        pack = self._pending.get(index)
        if pack and pack.size + size > PACK_BYTES:
            self.flush()
            pack = None
        if pack is None:
            pack = self._pending[index] = Pack()
        pack.records.append(record)
        pack.size += size
        self._pending_bytes += size
        if self._pending_bytes > PENDING_BYTES:
            self.flush()

    def flush(self) -> None:
        """
        Have all that was taken delivered.
        """
        self._join(self._pending)
        waiting = {index: deque([pack]) for index, pack in self._pending.items()}
        self._pending, self._pending_bytes = {}, 0
        self._keyless = (self._keyless + 1) % self._count
        while waiting:
            self._again_until_done(partial(self._deliver, waiting))

    def _again_until_done(self, attempt: partial[None]) -> None:
        """
        With acks from all replicas nothing is stored twice; else only an answer that says no leads to another attempt.
        """
        if self._acks == ACKS["all"]:
            self._cluster.kept_up(attempt)
        else:
            self._cluster.settled(attempt)

    def _find_leaders(self) -> dict[int, Node]:
        found = self._cluster.kept_up(partial(leaders_of, self._cluster, [self._topic]))
        if not found:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {self._topic}")
        return {partition.index: leader for partition, leader in found.items()}

    def _identity(self) -> Producing:
        if self._transaction:
            return self._transaction.producing
        return self._cluster.kept_up(self._ask_identity) if self._acks == ACKS["all"] else Producing()

    def _ask_identity(self) -> Producing:
        connection = self._cluster.anyone()
        if not connection.serves(InitProducerIdRequest):
            return Producing()  # a server of old, which stores a batch twice that it is sent twice
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_WORK_MS)
        told = connection.ask(request, InitProducerIdResponse)
        refuse(told.error_code)
        return Producing(told.producer_id, told.producer_epoch)

    def _join(self, indexes: Iterable[int]) -> None:
        """
        Make those that are written to for the first time part of the transaction.
        """
        new = [Partition(self._topic, index) for index in indexes if index not in self._sequences]
        if self._transaction and new:
            self._transaction.add(new)

    def _deliver(self, waiting: dict[int, deque[Pack]]) -> None:
        """
        Send the first pack of each partition. What is delivered waits no more; where one has to be sent again, or
        cannot be delivered, the error says why.
        """
        leaders = self._leaders or self._find_leaders()
        self._leaders = {}  # unless all goes well
        problems: list[KafkaError | Undelivered] = []
        for leader, partitions in by_leader(self._led(waiting, leaders)).items():
            packs = {partition.index: waiting[partition.index][0] for partition in partitions}
            for index, told in self._ask(leader, packs).items():
                try:
                    self._take(index, waiting[index], told)
                except (KafkaError, Undelivered) as problem:
                    problems.append(problem)
                if not waiting[index]:
                    del waiting[index]
        if problems:
            raise min(problems, key=lambda problem: isinstance(problem, KafkaError))
        self._leaders = leaders

    def _led(self, waiting: Iterable[int], leaders: Mapping[int, Node]) -> dict[Partition, Node]:
        gone = [index for index in waiting if index not in leaders]
        if gone:
            lost = f"partition {gone[0]} of {self._topic} is there no more"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, lost)
        return {Partition(self._topic, index): leaders[index] for index in waiting}

    def _ask(self, leader: Node, packs: Mapping[int, Pack]) -> dict[int, _PartAnswer]:
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
            _tell(connection, request)
            return {index: _PartAnswer(index=index, error_code=0, base_offset=-1) for index in packs}
        answer = connection.ask(request, ProduceResponse, newest=self._newest)
        told = {one.index: one for topic in answer.responses for one in topic.partition_responses}
        if told.keys() != packs.keys():
            raise Unanswered(f"{leader.address} answers for other partitions than it was asked")
        return told

    def _batch(self, index: int, pack: Pack) -> memoryview:
        sequence = self._sequences.get(index, 0) if self._producing.id >= 0 else -1
        return memoryview(pack.batch(self._codec, self._producing, sequence))

    def _take(self, index: int, packs: deque[Pack], told: _PartAnswer) -> None:
        """
        What an answer means for the first pack of a partition.
        """
        pack = packs[0]
        if told.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:  # it is stored, and where is not remembered
            told.error_code = ErrorCode.NONE
        if told.error_code == ErrorCode.NONE:
            self._account(index, packs.popleft())
            return
        if told.error_code in _TOO_LARGE and len(pack.records) > 1:
            packs.popleft()
            packs.extendleft(reversed(pack.halves()))
            return
        try:
            refuse(told.error_code, told.error_message)
        except KafkaError as error:
            if error.code.retriable:
                raise
            raise Undelivered(_refusal(pack, told, error)) from error

    def _account(self, index: int, pack: Pack) -> None:
        self._sequences[index] = (self._sequences.get(index, 0) + len(pack.records)) % _SEQUENCES
        self.records += len(pack.records)
        self.bytes += sum(len(record.key or b"") + len(record.value or b"") for record in pack.records)


def _tell(connection: Connection, request: ProduceRequest) -> None:
    """
    Send what has no answer, and see that the server has taken it.
    """
    try:
        connection.tell(request, newest=_BY_NAME)
        connection.check()
    except Unanswered as error:
        raise Unanswered(f"{error}; it may have refused records: with acks of 1 or all it would say why") from error


def _refusal(pack: Pack, told: _PartAnswer, error: KafkaError) -> str:
    faults = [(pack.places(one.batch_index), one.batch_index_error_message) for one in told.record_errors]
    if not faults:
        return f"{pack.places()}: {error}"
    return "; ".join(f"{place}: {why or error}" for place, why in faults[:3])
