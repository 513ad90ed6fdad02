"""
Asks the coordinator of a transaction about partitions.

Before the first batch of a transaction in a partition, the coordinator has to agree that the partition is part of it
(KIP-890). Otherwise a transaction could begin without its coordinator, and nobody would ever end it. The coordinator
may be another gateway, which is asked as Kafka's brokers ask each other.
"""

from collections.abc import Mapping, Set
from struct import Struct
from typing import NamedTuple

from kgateway.cluster.view import Node
from kgateway.interfaces import IPartition, IPeers
from kgateway.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, Topic
from kgateway.records.batch import HEADER_SIZE, TRANSACTIONAL_BIT
from kgateway.topic_partition import TopicPartition
from kgateway.transactions.coordinator import BETWEEN_NODES, TransactionCoordinator, check_transactional_id
from kgateway.transactions.records import by_topic
from kgateway.transactions.state import ProducerIdAndEpoch
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer

_PRODUCER = Struct(">h20xqh")  # attributes, producer id and epoch
_PRODUCER_AT = 21
_VERSION = AddPartitionsToTxnRequest.__spec__.versions[-1]

_TRY_LATER = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.BROKER_NOT_AVAILABLE,
}


class Dialect(NamedTuple):
    """
    What clients of one version of a request do themselves, and which error codes they understand.
    """

    adds: bool  # they do not add partitions themselves, so it is done for them
    knows_abortable: bool
    later: ErrorCode  # makes them try again, and not look for another leader

    def translated(self, code: ErrorCode) -> ErrorCode:
        """
        The coordinator's error code in one that the client understands.
        """
        if code in _TRY_LATER or (code is ErrorCode.CONCURRENT_TRANSACTIONS and not self.adds):
            return self.later
        if code is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if code is ErrorCode.TRANSACTION_ABORTABLE and not self.knows_abortable:
            return ErrorCode.INVALID_TXN_STATE
        return code


def beginning_producer(records: Buffer | None, partition: IPartition) -> ProducerIdAndEpoch | None:
    """
    The producer whose transaction begins in this partition with the batch; `None` if no transaction begins.
    """
    if records is None or len(records) < HEADER_SIZE:
        return None
    attributes, producer_id, epoch = _PRODUCER.unpack_from(records, _PRODUCER_AT)
    if not attributes & TRANSACTIONAL_BIT or partition.producers().has_open(producer_id, epoch):
        return None
    return ProducerIdAndEpoch(producer_id, epoch)


async def enrol(
    coordinator: TransactionCoordinator,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: Set[TopicPartition],
    dialect: Dialect,
) -> None:
    """
    Have the coordinator confirm, or add, that the partitions are part of the producer's transaction; a KafkaError if
    one is not.
    """
    try:
        codes = await _enrol(coordinator, transactional_id, producer, partitions, adds=dialect.adds)
        for (topic, index), code in codes.items():
            if code is not ErrorCode.NONE:
                raise KafkaError(code, f"{topic}-{index} is not part of the transaction of {producer}")
    except KafkaError as error:
        raise KafkaError(dialect.translated(error.code), error.message) from None


async def _enrol(
    coordinator: TransactionCoordinator,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: Set[TopicPartition],
    *,
    adds: bool,
) -> Mapping[TopicPartition, ErrorCode]:
    check_transactional_id(transactional_id)
    node = coordinator.node_of(transactional_id)
    if node is not None:
        return await _ask(coordinator.broker.peers, node, transactional_id, producer, partitions, adds=adds)
    if not adds:
        return coordinator.verify(transactional_id, producer, partitions)
    await coordinator.add_partitions(transactional_id, producer, partitions, BETWEEN_NODES)
    return dict.fromkeys(partitions, ErrorCode.NONE)


async def _ask(
    peers: IPeers,
    node: Node,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: Set[TopicPartition],
    *,
    adds: bool,
) -> Mapping[TopicPartition, ErrorCode]:
    request = AddPartitionsToTxnRequest.Transaction(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        verify_only=not adds,
        topics=[Topic(name=topic.topic, partitions=topic.partition_ids) for topic in by_topic(partitions)],
    )
    answer = await peers.ask(node, AddPartitionsToTxnRequest(transactions=[request]), _VERSION)
    assert isinstance(answer, AddPartitionsToTxnResponse)
    codes = {
        TopicPartition(topic.name, partition.partition_index): ErrorCode(partition.partition_error_code)
        for transaction in answer.results_by_transaction
        for topic in transaction.topic_results
        for partition in topic.results_by_partition
    }
    missing = ErrorCode(answer.error_code or ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return {partition: codes.get(partition, missing) for partition in partitions}
