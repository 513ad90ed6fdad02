"""
Transactions, as their coordinators and the partitions they write to tell of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kgateway.client.cluster import TRANSACTION, Cluster, Node, refuse
from kgateway.client.offsets import Partition, leaders_of
from kgateway.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from kgateway.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from kgateway.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kgateway.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kgateway.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kgateway.wire.errors import ErrorCode, KafkaError

_SHORT_MS = 1  # which every server allows, for transactions that are never open


@dataclass(frozen=True, slots=True)
class Listed:
    """
    A transactional id among others.
    """

    transactional_id: str
    state: str
    producer_id: int
    coordinator: Node


@dataclass(frozen=True, slots=True)
class Described:
    """
    A transactional id: its producer, and the transaction that is open, or the last one.
    """

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None  # `None`: nothing is open
    partitions: list[Partition]
    coordinator: Node


@dataclass(frozen=True, slots=True)
class Writing:
    """
    A producer that a partition remembers, with a transaction open there.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    first_offset: int


def listed(cluster: Cluster) -> list[Listed]:
    """
    The transactional ids of all servers.
    """
    return sorted((one for node in cluster.nodes() for one in _of(node, cluster)), key=lambda one: one.transactional_id)


def _of(node: Node, cluster: Cluster) -> Iterator[Listed]:
    request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
    answer = cluster.connection(node).ask(request, ListTransactionsResponse)
    refuse(answer.error_code)
    for one in answer.transaction_states:
        yield Listed(one.transactional_id, one.transaction_state, one.producer_id, node)


def described(cluster: Cluster, transactional_id: str) -> Described:
    """
    What its coordinator knows; TRANSACTIONAL_ID_NOT_FOUND where that is nothing.
    """
    coordinator = cluster.coordinator(transactional_id, TRANSACTION)
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    [found] = cluster.connection(coordinator).ask(request, DescribeTransactionsResponse).transaction_states
    refuse(found.error_code)
    return Described(
        transactional_id=transactional_id,
        state=found.transaction_state,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        timeout_ms=found.transaction_timeout_ms,
        started_ms=found.transaction_start_time_ms if found.topics else None,
        partitions=[Partition(topic.topic, index) for topic in found.topics for index in topic.partitions],
        coordinator=coordinator,
    )


def abort(cluster: Cluster, transactional_id: str) -> None:
    """
    Have the open transaction aborted, and its producer fenced, by beginning in its place; CONCURRENT_TRANSACTIONS, as
    long as that goes on.
    """
    connection = cluster.connection(cluster.coordinator(transactional_id, TRANSACTION))
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=_SHORT_MS)
    refuse(connection.ask(request, InitProducerIdResponse).error_code)


def writing(cluster: Cluster, partition: Partition) -> list[Writing]:
    """
    The producers with a transaction open in this partition.
    """
    topic = DescribeProducersRequest.Topic(name=partition.topic, partition_indexes=[partition.index])
    leader = _leader(cluster, partition)
    answer = cluster.connection(leader).ask(DescribeProducersRequest(topics=[topic]), DescribeProducersResponse)
    [found] = answer.topics[0].partitions
    refuse(found.error_code, found.error_message)
    return [
        Writing(one.producer_id, one.producer_epoch, one.coordinator_epoch, one.current_txn_start_offset)
        for one in found.active_producers
        if one.current_txn_start_offset >= 0
    ]


def abort_in(cluster: Cluster, partition: Partition, hanging: Writing) -> None:
    """
    Have a transaction ended in one partition, of which no coordinator knows.
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


def _leader(cluster: Cluster, partition: Partition) -> Node:
    leader = leaders_of(cluster, [partition.topic]).get(partition)
    if leader is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {partition}")
    return leader
