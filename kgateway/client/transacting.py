"""
A transaction, for who makes it: begun, written in, and ended.

The requests are those that every server of transactions knows: which partitions are written to is said first, and a
producer keeps its epoch until somebody begins anew with its transactional id. Each may be asked twice, so what breaks
off is asked again, for as long as the cluster is patient.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from kgateway.client.cluster import GROUP, TRANSACTION, Cluster, refuse
from kgateway.client.connection import Connection
from kgateway.client.offsets import Partition, by_topic
from kgateway.client.outgoing import Producing
from kgateway.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kgateway.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, Topic
from kgateway.messages.end_txn import EndTxnRequest, EndTxnResponse
from kgateway.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kgateway.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

T = TypeVar("T")

_ADDS_ITSELF = 3  # the last version of AddPartitionsToTxn that is for clients
_ONE_EPOCH = 4  # the last version of EndTxn and of TxnOffsetCommit that leaves the epoch as it is


def begin(cluster: Cluster, transactional_id: str, timeout_ms: int) -> "Transaction":
    """
    Begin in the place of whoever had the id: what that has open is aborted first, and it can write no more.
    """

    def ask(coordinator: Connection) -> Producing:
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
        told = coordinator.ask(request, InitProducerIdResponse)
        refuse(told.error_code)
        return Producing(told.producer_id, told.producer_epoch, transactional_id)

    return Transaction(cluster, _of_coordinator(cluster, transactional_id, TRANSACTION, ask))


class Transaction:
    """
    An open one. Several processes may write in it, as the same producer, each to partitions of its own.
    """

    def __init__(self, cluster: Cluster, producing: Producing) -> None:
        assert producing.transactional_id
        self.cluster = cluster
        self.producing = producing
        self.id = producing.transactional_id

    def add(self, partitions: Iterable[Partition]) -> None:
        """
        Say that these are written to.
        """
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
                for told in topic.results_by_partition:
                    refuse(told.partition_error_code)

        self._ask_coordinator(ask)

    def commit_offset(self, group_id: str, partition: Partition, offset: int, note: str = "") -> None:
        """
        Have the group's offset become this one together with all that is written.
        """
        self._ask_coordinator(partial(self._add_group, group_id))
        kind = TxnOffsetCommitRequest.Topic
        told = kind.Partition(partition_index=partition.index, committed_offset=offset, committed_metadata=note)
        request = TxnOffsetCommitRequest(
            transactional_id=self.id,
            group_id=group_id,
            producer_id=self.producing.id,
            producer_epoch=self.producing.epoch,
            topics=[kind(name=partition.topic, partitions=[told])],
        )

        def ask(coordinator: Connection) -> None:
            answer = coordinator.ask(request, TxnOffsetCommitResponse, newest=_ONE_EPOCH)
            refuse(answer.topics[0].partitions[0].error_code)

        _of_coordinator(self.cluster, group_id, GROUP, ask)

    def end(self, *, commits: bool) -> None:
        """
        Commit it all, or have nothing of it.
        """
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
    What the coordinator of an id answers, whoever that is by then.
    """
    return cluster.kept_up(lambda: ask(cluster.connection(cluster.coordinator(key, kind))))
