"""
Transactions: listed, described, aborted, and made.

A transaction uses the requests that every server with transactions knows: partitions are added before they are written
to, and a producer keeps its epoch until another begins with its transactional id. Each request may be sent twice, so
what breaks off is sent again for as long as the cluster is patient.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from kgateway.client.cluster import GROUP, TRANSACTION, Cluster, Node, by_topic, leaders_of, refuse
from kgateway.client.connection import Connection
from kgateway.client.send_queue import ProducerIdentity
from kgateway.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kgateway.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, Topic
from kgateway.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from kgateway.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from kgateway.messages.end_txn import EndTxnRequest, EndTxnResponse
from kgateway.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kgateway.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kgateway.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kgateway.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError

_SHORT_MS = 1  # every server allows it, and the transaction is never opened
T = TypeVar("T")
_ADDS_ITSELF = 3  # the last version of AddPartitionsToTxn that is for clients
_ONE_EPOCH = 4  # the last version of EndTxn and of TxnOffsetCommit that leaves the epoch as it is


@dataclass(frozen=True, slots=True)
class TransactionListing:
    transactional_id: str
    state: str
    producer_id: int
    coordinator: Node


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """
    A transactional id, its producer, and the open or the last transaction.
    """

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None  # `None`: nothing is open
    partitions: list[TopicPartition]
    coordinator: Node


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """
    A producer with an open transaction in a partition.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    first_offset: int


def list_transactions(cluster: Cluster) -> list[TransactionListing]:
    return sorted((one for node in cluster.nodes() for one in _of(node, cluster)), key=lambda one: one.transactional_id)


def _of(node: Node, cluster: Cluster) -> Iterator[TransactionListing]:
    request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
    answer = cluster.connection(node).ask(request, ListTransactionsResponse)
    refuse(answer.error_code)
    for one in answer.transaction_states:
        yield TransactionListing(one.transactional_id, one.transaction_state, one.producer_id, node)


def describe_transaction(cluster: Cluster, transactional_id: str) -> TransactionDescription:
    """
    Describe a transactional id; TRANSACTIONAL_ID_NOT_FOUND if the coordinator does not know it.
    """
    coordinator = cluster.coordinator(transactional_id, TRANSACTION)
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    [found] = cluster.connection(coordinator).ask(request, DescribeTransactionsResponse).transaction_states
    refuse(found.error_code)
    return TransactionDescription(
        transactional_id=transactional_id,
        state=found.transaction_state,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        timeout_ms=found.transaction_timeout_ms,
        started_ms=found.transaction_start_time_ms if found.topics else None,
        partitions=[TopicPartition(topic.topic, index) for topic in found.topics for index in topic.partitions],
        coordinator=coordinator,
    )


def abort_transaction(cluster: Cluster, transactional_id: str) -> None:
    """
    Abort the open transaction and fence its producer with a new InitProducerId; CONCURRENT_TRANSACTIONS until the abort
    is finished.
    """
    connection = cluster.connection(cluster.coordinator(transactional_id, TRANSACTION))
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=_SHORT_MS)
    refuse(connection.ask(request, InitProducerIdResponse).error_code)


def active_producers(cluster: Cluster, partition: TopicPartition) -> list[ActiveProducer]:
    topic = DescribeProducersRequest.Topic(name=partition.topic, partition_indexes=[partition.index])
    leader = _leader(cluster, partition)
    answer = cluster.connection(leader).ask(DescribeProducersRequest(topics=[topic]), DescribeProducersResponse)
    [found] = answer.topics[0].partitions
    refuse(found.error_code, found.error_message)
    return [
        ActiveProducer(one.producer_id, one.producer_epoch, one.coordinator_epoch, one.current_txn_start_offset)
        for one in found.active_producers
        if one.current_txn_start_offset >= 0
    ]


def abort_in_partition(cluster: Cluster, partition: TopicPartition, hanging: ActiveProducer) -> None:
    """
    Abort a transaction that hangs in one partition and is unknown to every coordinator.
    """
    marker = WriteTxnMarkersRequest.Marker(
        producer_id=hanging.producer_id,
        producer_epoch=hanging.producer_epoch,
        transaction_result=False,
        topics=[WriteTxnMarkersRequest.Marker.Topic(name=partition.topic, partition_indexes=[partition.index])],
        coordinator_epoch=max(hanging.coordinator_epoch, 0),
    )
    connection = cluster.connection(_leader(cluster, partition))
    [answer] = connection.ask(WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse).markers
    refuse(answer.topics[0].partitions[0].error_code)


def _leader(cluster: Cluster, partition: TopicPartition) -> Node:
    leader = leaders_of(cluster, [partition.topic]).get(partition)
    if leader is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {partition}")
    return leader.node


def begin_transaction(cluster: Cluster, transactional_id: str, timeout_ms: int) -> "Transaction":
    """
    Fence the previous producer with this id, abort its open transaction, and begin a new one.
    """

    def ask(coordinator: Connection) -> ProducerIdentity:
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
        result = coordinator.ask(request, InitProducerIdResponse)
        refuse(result.error_code)
        return ProducerIdentity(result.producer_id, result.producer_epoch, transactional_id)

    return Transaction(cluster, _of_coordinator(cluster, transactional_id, TRANSACTION, ask))


class Transaction:
    """
    An open transaction. Several processes may write in it as the same producer, each to partitions of its own.
    """

    def __init__(self, cluster: Cluster, producing: ProducerIdentity) -> None:
        assert producing.transactional_id
        self.cluster = cluster
        self.producing = producing
        self.id = producing.transactional_id

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.producing.id,
            v3_and_below_producer_epoch=self.producing.epoch,
            v3_and_below_topics=[
                Topic(name=name, partitions=[one.index for one in found])
                for name, found in by_topic(partitions).items()
            ],
        )

        def ask(coordinator: Connection) -> None:
            answer = coordinator.ask(request, AddPartitionsToTxnResponse, newest=_ADDS_ITSELF)
            for topic in answer.results_by_topic_v3_and_below:
                for result in topic.results_by_partition:
                    refuse(result.partition_error_code)

        self._ask_coordinator(ask)

    def commit_offset(self, group_id: str, partition: TopicPartition, offset: int, note: str = "") -> None:
        """
        Commit a group's offset as part of the transaction.
        """
        self._ask_coordinator(partial(self._add_group, group_id))
        kind = TxnOffsetCommitRequest.Topic
        part = kind.Partition(partition_index=partition.index, committed_offset=offset, committed_metadata=note)
        request = TxnOffsetCommitRequest(
            transactional_id=self.id,
            group_id=group_id,
            producer_id=self.producing.id,
            producer_epoch=self.producing.epoch,
            topics=[kind(name=partition.topic, partitions=[part])],
        )

        def ask(coordinator: Connection) -> None:
            answer = coordinator.ask(request, TxnOffsetCommitResponse, newest=_ONE_EPOCH)
            refuse(answer.topics[0].partitions[0].error_code)

        _of_coordinator(self.cluster, group_id, GROUP, ask)

    def end(self, *, commits: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self.id,
            producer_id=self.producing.id,
            producer_epoch=self.producing.epoch,
            committed=commits,
        )

        def ask(coordinator: Connection) -> None:
            refuse(coordinator.ask(request, EndTxnResponse, newest=_ONE_EPOCH).error_code)

        self._ask_coordinator(ask)

    def _add_group(self, group_id: str, coordinator: Connection) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.id,
            producer_id=self.producing.id,
            producer_epoch=self.producing.epoch,
            group_id=group_id,
        )
        refuse(coordinator.ask(request, AddOffsetsToTxnResponse).error_code)

    def _ask_coordinator(self, ask: Callable[[Connection], None]) -> None:
        _of_coordinator(self.cluster, self.id, TRANSACTION, ask)


def _of_coordinator(cluster: Cluster, key: str, kind: int, ask: Callable[[Connection], T]) -> T:
    """
    Ask the coordinator of an id, looked up again for each attempt.
    """
    return cluster.retry(lambda: ask(cluster.connection(cluster.coordinator(key, kind))), reconnect=True)
