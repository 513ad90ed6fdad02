"""
Transactions as the records of `__transaction_state`, in Kafka's own form.

The key of a record begins with an i16 that is always 0, the value with an i16, the version of its table.
"""

from collections.abc import Iterable
from itertools import groupby

from kgateway.coordination.record_prefix import after_prefix, prefix_of, with_prefix
from kgateway.interfaces import KeyValue
from kgateway.messages.stored.transaction_log import TransactionLogKey, TransactionLogValue
from kgateway.topic_partition import TopicPartition
from kgateway.transactions.state import Transaction, TransactionState

_Partitions = TransactionLogValue.TransactionPartition

_KIND = 0
_KEY_VERSION = 0  # there is no other
_WRITTEN = 1  # as Kafka 4.3 does with the feature transaction.version


def encoded(transaction: Transaction) -> KeyValue:
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_id,
        next_producer_id=transaction.next_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None
        if transaction.state is TransactionState.EMPTY
        else by_topic(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
    )
    return _key(transaction.transactional_id), with_prefix(_WRITTEN, value, _WRITTEN)


def tombstone(transactional_id: str) -> KeyValue:
    return _key(transactional_id), None


def decoded(key: bytes, value: bytes) -> Transaction | None:
    """
    The transaction in a record; `None` if its kind, version or state is not known here. Malformed if it is not such a
    record at all.
    """
    if prefix_of(key) != _KIND:
        return None
    transactional_id = after_prefix(TransactionLogKey, _KEY_VERSION, key).transactional_id
    version = prefix_of(value)
    if version not in TransactionLogValue.__spec__.versions:
        return None
    found = after_prefix(TransactionLogValue, version, value)
    if not TransactionState.EMPTY <= found.transaction_status <= TransactionState.COMPLETE_ABORT:
        return None
    return _transaction(transactional_id, found)


def by_topic(partitions: Iterable[TopicPartition]) -> list[_Partitions]:
    return [
        _Partitions(topic=topic, partition_ids=[partition.index for partition in group])
        for topic, group in groupby(sorted(partitions), lambda partition: partition.topic)
    ]


def _key(transactional_id: str) -> bytes:
    return with_prefix(_KIND, TransactionLogKey(transactional_id=transactional_id), _KEY_VERSION)


def _transaction(transactional_id: str, found: TransactionLogValue) -> Transaction:
    return Transaction(
        transactional_id=transactional_id,
        producer_id=found.producer_id,
        epoch=found.producer_epoch,
        timeout_ms=found.transaction_timeout_ms,
        updated_ms=found.transaction_last_update_timestamp_ms,
        state=TransactionState(found.transaction_status),
        partitions=frozenset(
            TopicPartition(topic.topic, index)
            for topic in found.transaction_partitions or ()
            for index in topic.partition_ids
        ),
        started_ms=found.transaction_start_timestamp_ms,
        previous_id=found.previous_producer_id,
        next_id=found.next_producer_id,
        client_version=found.client_transaction_version,
    )
