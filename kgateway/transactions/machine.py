"""
The state machine of a transactional id, as Kafka's coordinator has it, in pure functions.

Each takes a transaction and returns its next state, which counts once it is written, or the very same object if there
is nothing to write. A step that is not allowed raises a KafkaError. Which step can follow which state:

    EMPTY             init_producer, add_partitions, and with transaction version 2 an abort
    ONGOING           add_partitions, prepare_end; init_producer and the timeout abort it, and so fence its producer
    PREPARE_...       complete, as soon as every partition has its marker; everything else waits
    COMPLETE_...      as EMPTY; a repeated end is answered again

With transaction version 2 the epoch rises when a transaction ends, so its markers have the epoch after the one it was
written in. Kafka aborts the transaction of a producer for any predecessor that begins again; here one whose epoch is
not the transaction's is fenced, and harms nobody.
"""

from collections.abc import Set
from dataclasses import replace
from typing import Any, Never

from kgateway.topic_partition import TopicPartition
from kgateway.transactions.state import (
    EPOCH_EACH,
    LAST_EPOCH,
    NO_EPOCH,
    NO_ID,
    NO_TIME,
    ProducerIdAndEpoch,
    Transaction,
    TransactionState,
)
from kgateway.wire.errors import ErrorCode, KafkaError

_FIRST_EPOCH = 0
_OLD_VERSION = 0  # for all below 2


def create(transactional_id: str, timeout_ms: int, new_id: int, now_ms: int) -> Transaction:
    """
    The first state of an id. What a producer says it was before is not known here.
    """
    producer_id = _required(new_id)
    return Transaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        previous_id=producer_id,
        epoch=_FIRST_EPOCH,
        timeout_ms=timeout_ms,
        updated_ms=now_ms,
    )


def init_producer(
    now: Transaction, known: ProducerIdAndEpoch | None, timeout_ms: int, new_id: int, now_ms: int
) -> Transaction:
    """
    A producer begins, or begins again as the one that it says it was (KIP-360). An open transaction is aborted first:
    the next state is then a prepared abort, and the producer has to ask once more.
    """
    if known and not _may_have_been(now, known):
        _fence(f"{known} has been replaced by {now.producer}")
    _check_decided(now)
    if now.state is TransactionState.ONGOING:
        if known and known.epoch != now.epoch:
            _fence(f"{known} has been replaced by {now.producer}, which has a transaction open")
        return prepare_fence(now, new_id, now_ms)
    producer, last_epoch = _next_producer(now, known, new_id)
    return _in_state(
        now,
        TransactionState.EMPTY,
        now_ms,
        producer_id=producer.producer_id,
        epoch=producer.epoch,
        last_epoch=last_epoch,
        timeout_ms=timeout_ms,
        started_ms=NO_TIME,
    )


def add_partitions(
    now: Transaction, producer: ProducerIdAndEpoch, partitions: Set[TopicPartition], version: int, now_ms: int
) -> Transaction:
    """
    Add partitions to the transaction. The first ones begin it.
    """
    _check_identity(now, producer)
    _check_decided(now)
    if now.state is not TransactionState.ONGOING:
        return _in_state(
            now,
            TransactionState.ONGOING,
            now_ms,
            partitions=frozenset(partitions),
            started_ms=now_ms,
            client_version=version,
        )
    if partitions <= now.partitions:
        return now
    return _in_state(
        now, TransactionState.ONGOING, now_ms, partitions=now.partitions | partitions, client_version=version
    )


def missing_partitions(
    now: Transaction, producer: ProducerIdAndEpoch, partitions: Set[TopicPartition]
) -> Set[TopicPartition]:
    _check_identity(now, producer)
    _check_decided(now)
    return partitions - now.partitions


def prepare_end(
    now: Transaction, producer: ProducerIdAndEpoch, commits: bool, version: int, new_id: int, now_ms: int
) -> Transaction:
    each = version >= EPOCH_EACH
    again = _ended_already(now, producer) if each else now.is_complete and producer == now.producer
    if not again:
        _check_end(now, producer, each)
    if now.is_prepared and now.commits == commits:
        _wait(f"its {now.state.label} is being written to its partitions")
    if again and now.commits == commits:
        return now
    if again or now.is_prepared or (now.state is not TransactionState.ONGOING and (commits or not each)):
        asked = "committed" if commits else "aborted"
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"the transaction is {now.state.label}, and cannot be {asked}")
    return _prepare(now, commits, each, new_id, now_ms)


def prepare_fence(now: Transaction, new_id: int, now_ms: int) -> Transaction:
    """
    Abort an open transaction in spite of its producer, as if the producer had asked for it with version 2.
    """
    return _prepare(now, False, True, new_id, now_ms)


def remove_marked(now: Transaction, partitions: Set[TopicPartition]) -> Transaction:
    """
    Remove the partitions that have their marker. Nothing is written.
    """
    return replace(now, partitions=now.partitions - partitions)


def complete(now: Transaction, now_ms: int) -> Transaction:
    rotates = now.next_id != NO_ID
    return _in_state(
        now,
        TransactionState.COMPLETE_COMMIT if now.commits else TransactionState.COMPLETE_ABORT,
        now_ms,
        producer_id=now.next_id if rotates else now.producer_id,
        epoch=_FIRST_EPOCH if rotates else now.epoch,
        partitions=frozenset(),
        next_id=NO_ID,
    )


def is_timed_out(now: Transaction, now_ms: int) -> bool:
    """
    Whether it has been open for longer than its client has allowed.
    """
    return now.state is TransactionState.ONGOING and now.started_ms + now.timeout_ms < now_ms


def is_expired(now: Transaction, now_ms: int, expiration_ms: int) -> bool:
    return (now.state is TransactionState.EMPTY or now.is_complete) and now.updated_ms <= now_ms - expiration_ms


def _next_producer(now: Transaction, known: ProducerIdAndEpoch | None, new_id: int) -> tuple[ProducerIdAndEpoch, int]:
    """
    The producer from now on, and the epoch it had before if that was its own.
    """
    if known and known.epoch == now.last_epoch:  # the answer was lost
        return now.producer, now.last_epoch
    if known and known.epoch != now.epoch:
        _fence(f"{known} has been replaced by {now.producer}")
    last_epoch = now.epoch if known else NO_EPOCH
    if now.is_exhausted:
        return ProducerIdAndEpoch(_required(new_id), _FIRST_EPOCH), last_epoch
    return ProducerIdAndEpoch(now.producer_id, now.epoch + 1), last_epoch


def _may_have_been(now: Transaction, known: ProducerIdAndEpoch) -> bool:
    """
    Whether `known` is an earlier epoch of the producer, or has the producer id before or after.
    """
    if _is_next(now, known):
        return True
    return known.producer_id == now.producer_id or (known.producer_id == now.previous_id and known.epoch >= LAST_EPOCH)


def _ended_already(now: Transaction, producer: ProducerIdAndEpoch) -> bool:
    """
    Whether the epoch is the one after what this producer has, so that its request was done before.
    """
    if not (now.is_prepared or now.is_complete):
        return False
    by_epoch = now.client_version >= EPOCH_EACH and now.producer == (producer.producer_id, producer.epoch + 1)
    return by_epoch or _has_rotated(now, producer)


def _has_rotated(now: Transaction, producer: ProducerIdAndEpoch) -> bool:
    """
    Whether this producer had the last epoch of the producer id before.
    """
    return producer == (now.previous_id, LAST_EPOCH) and now.producer_id != producer.producer_id


def _check_end(now: Transaction, producer: ProducerIdAndEpoch, each: bool) -> None:
    if each and _has_rotated(now, producer):
        _fence(f"{producer} has been replaced by {now.producer}")
    _check_identity(now, producer)
    if each and now.is_prepared:  # a producer gets this epoch only when it is complete
        _fence(f"{producer} cannot have this epoch yet")


def _is_next(now: Transaction, producer: ProducerIdAndEpoch) -> bool:
    """
    Whether this will be the producer once the transaction is complete, because the epochs of its id are used up. The
    producer learned of it when the end was prepared.
    """
    return now.next_id != NO_ID and producer == (now.next_id, _FIRST_EPOCH)


def _check_identity(now: Transaction, producer: ProducerIdAndEpoch) -> None:
    if _is_next(now, producer):
        _check_decided(now)
    if producer.producer_id != now.producer_id:
        reason = f"{now.transactional_id} has the producer id {now.producer_id}, not {producer.producer_id}"
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, reason)
    if producer.epoch != now.epoch:
        _fence(f"{producer} has been replaced by epoch {now.epoch}")


def _check_decided(now: Transaction) -> None:
    if now.is_prepared:
        _wait(f"its {now.state.label} is being written to its partitions")


def _prepare(now: Transaction, commits: bool, bumps: bool, new_id: int, now_ms: int) -> Transaction:
    """
    Decide the end. A transaction that was not open is aborted as one without partitions.
    """
    changes: dict[str, Any] = {"client_version": _OLD_VERSION}
    if bumps:
        changes = {"client_version": EPOCH_EACH, "epoch": min(now.epoch, LAST_EPOCH) + 1, "last_epoch": now.epoch}
        changes["next_id"] = _required(new_id) if now.is_exhausted else NO_ID
    if now.state is not TransactionState.ONGOING:
        changes["started_ms"] = now_ms
    return _in_state(
        now, TransactionState.PREPARE_COMMIT if commits else TransactionState.PREPARE_ABORT, now_ms, **changes
    )


def _in_state(now: Transaction, state: TransactionState, now_ms: int, **changes: Any) -> Transaction:
    return replace(now, state=state, updated_ms=now_ms, previous_id=now.producer_id, **changes)


def _required(new_id: int) -> int:
    if new_id == NO_ID:
        _wait("it needs a new producer id; try again")
    return new_id


def _wait(reason: str) -> Never:
    raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, reason)


def _fence(reason: str) -> Never:
    raise KafkaError(ErrorCode.PRODUCER_FENCED, reason)
