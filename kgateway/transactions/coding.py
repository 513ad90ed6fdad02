"""
Transactions as the records of `__transaction_state`, in Kafka's own form.

The key of a record begins with an i16 that is always 0, the value with an i16, the version of its table.
"""

from collections.abc import Iterable
from itertools import groupby

from kgateway.coordinating.prefixed import after_prefix, prefix_of, with_prefix
from kgateway.interfaces import KeyValue
from kgateway.messages.stored.transaction_log import TransactionLogKey, TransactionLogValue
from kgateway.transactions.state import Place, State, Transaction

_Partitions = TransactionLogValue.TransactionPartition

_KIND = 0
_KEY_VERSION = 0  # there is no other
_WRITTEN = 1  # as Kafka 4.3 does with the feature transaction.version


def encoded(transaction: Transaction) -> KeyValue:
    """
    The transaction as a record.
    """
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_id,
        next_producer_id=transaction.next_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None if transaction.state is State.EMPTY else by_topic(transaction.places),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
    )
    return _key(transaction.transactional_id), with_prefix(_WRITTEN, value, _WRITTEN)


def tombstone(transactional_id: str) -> KeyValue:
    """
    The record that says that nothing is known of the id any more.
    """
    return _key(transactional_id), None


def decoded(key: bytes, value: bytes) -> Transaction | None:
    """
    The transaction that a record is; `None` where it is of a kind, version or state that is not known here. Malformed
    where it is nothing at all.
    """
    if prefix_of(key) != _KIND:
        return None
    transactional_id = after_prefix(TransactionLogKey, _KEY_VERSION, key).transactional_id
    version = prefix_of(value)
    if version not in TransactionLogValue.__spec__.versions:
        return None
    found = after_prefix(TransactionLogValue, version, value)
    if not State.EMPTY <= found.transaction_status <= State.COMPLETE_ABORT:
        return None
    return _transaction(transactional_id, found)


def by_topic(places: Iterable[Place]) -> list[_Partitions]:
    """
    The partitions, topic by topic.
    """
    return [
        _Partitions(topic=topic, partition_ids=[place.partition for place in group])
        for topic, group in groupby(sorted(places), lambda place: place.topic)
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
        state=State(found.transaction_status),
        places=frozenset(
            Place(one.topic, index) for one in found.transaction_partitions or () for index in one.partition_ids
        ),
        started_ms=found.transaction_start_timestamp_ms,
        previous_id=found.previous_producer_id,
        next_id=found.next_producer_id,
        client_version=found.client_transaction_version,
    )
