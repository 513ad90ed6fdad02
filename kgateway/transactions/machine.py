"""
What may happen to a transactional id, and what comes of it: as Kafka's coordinator has it, as pure functions.

Each takes a transaction as it is and returns what it is to be next, which counts once it is written; the very same one
where there is nothing to write. A KafkaError where it may not happen. Which step can follow which state:

    EMPTY             begin (again), add, and with transaction version 2 abort
    ONGOING           add, end; begin and the timeout abort it, and so fence its producer
    PREPARE_...       complete, as soon as every partition has its marker; all else waits
    COMPLETE_...      as EMPTY; an end that is asked for again is answered again

With transaction version 2 the epoch rises when a transaction ends, so its markers have the epoch after the one it was
written in. Kafka aborts the transaction of a producer for any predecessor that begins again; here one whose epoch is
not the transaction's is fenced, and harms nobody.
"""

from collections.abc import Set
from dataclasses import replace
from typing import Any, Never

from kgateway.transactions.state import (
    EPOCH_EACH,
    LAST_EPOCH,
    NO_EPOCH,
    NO_ID,
    NO_TIME,
    Identity,
    Place,
    State,
    Transaction,
)
from kgateway.wire.errors import ErrorCode, KafkaError

_FIRST_EPOCH = 0
_OLD_VERSION = 0  # stands for all below 2


def new(transactional_id: str, timeout_ms: int, fresh_id: int, now_ms: int) -> Transaction:
    """
    The first word on an id. Nothing is known of what a producer says it was before.
    """
    producer_id = _needed(fresh_id)
    return Transaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        previous_id=producer_id,
        epoch=_FIRST_EPOCH,
        timeout_ms=timeout_ms,
        updated_ms=now_ms,
    )


def begun(now: Transaction, known: Identity | None, timeout_ms: int, fresh_id: int, now_ms: int) -> Transaction:
    """
    A producer begins, or begins again as one that it says it was (KIP-360). An open transaction is aborted first: what
    is returned is prepared then, and the producer has to ask once more.
    """
    if known and not _may_have_been(now, known):
        _fence(f"{known} has been replaced by {now.identity}")
    _check_decided(now)
    if now.state is State.ONGOING:
        if known and known.epoch != now.epoch:
            _fence(f"{known} has been replaced by {now.identity}, which has a transaction open")
        return fenced(now, fresh_id, now_ms)
    producer, last_epoch = _next_producer(now, known, fresh_id)
    return _moved(
        now,
        State.EMPTY,
        now_ms,
        producer_id=producer.producer_id,
        epoch=producer.epoch,
        last_epoch=last_epoch,
        timeout_ms=timeout_ms,
        started_ms=NO_TIME,
    )


def added(now: Transaction, who: Identity, places: Set[Place], version: int, now_ms: int) -> Transaction:
    """
    The transaction writes to these, too; the first ones begin it.
    """
    _check_identity(now, who)
    _check_decided(now)
    if now.state is not State.ONGOING:
        return _moved(now, State.ONGOING, now_ms, places=frozenset(places), started_ms=now_ms, client_version=version)
    if places <= now.places:
        return now
    return _moved(now, State.ONGOING, now_ms, places=now.places | places, client_version=version)


def missing(now: Transaction, who: Identity, places: Set[Place]) -> Set[Place]:
    """
    Those that were never added.
    """
    _check_identity(now, who)
    _check_decided(now)
    return places - now.places


def ended(now: Transaction, who: Identity, commits: bool, version: int, fresh_id: int, now_ms: int) -> Transaction:
    """
    The producer commits or aborts.
    """
    each = version >= EPOCH_EACH
    again = _ended_already(now, who) if each else now.is_complete and who == now.identity
    if not again:
        _check_end(now, who, each)
    if now.is_prepared and now.commits == commits:
        _wait(f"its {now.state.label} is being told to the partitions")
    if again and now.commits == commits:
        return now
    if again or now.is_prepared or (now.state is not State.ONGOING and (commits or not each)):
        asked = "committed" if commits else "aborted"
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"the transaction is {now.state.label}, and cannot be {asked}")
    return _prepared(now, commits, each, fresh_id, now_ms)


def fenced(now: Transaction, fresh_id: int, now_ms: int) -> Transaction:
    """
    An open transaction is aborted over the head of its producer, as if that had asked for it with version 2.
    """
    return _prepared(now, False, True, fresh_id, now_ms)


def marked(now: Transaction, places: Set[Place]) -> Transaction:
    """
    These have their marker. That is nothing to write.
    """
    return replace(now, places=now.places - places)


def completed(now: Transaction, now_ms: int) -> Transaction:
    """
    All have.
    """
    rotates = now.next_id != NO_ID
    return _moved(
        now,
        State.COMPLETE_COMMIT if now.commits else State.COMPLETE_ABORT,
        now_ms,
        producer_id=now.next_id if rotates else now.producer_id,
        epoch=_FIRST_EPOCH if rotates else now.epoch,
        places=frozenset(),
        next_id=NO_ID,
    )


def is_late(now: Transaction, now_ms: int) -> bool:
    """
    Whether it has been open for longer than its client has allowed.
    """
    return now.state is State.ONGOING and now.started_ms + now.timeout_ms < now_ms


def is_forgotten(now: Transaction, now_ms: int, expiration_ms: int) -> bool:
    """
    Whether nobody has used the id for so long.
    """
    return (now.state is State.EMPTY or now.is_complete) and now.updated_ms <= now_ms - expiration_ms


def _next_producer(now: Transaction, known: Identity | None, fresh_id: int) -> tuple[Identity, int]:
    """
    Who the producer is from now on, and which epoch it had before if that was its own.
    """
    if known and known.epoch == now.last_epoch:  # it has not heard the answer
        return now.identity, now.last_epoch
    if known and known.epoch != now.epoch:
        _fence(f"{known} has been replaced by {now.identity}")
    last_epoch = now.epoch if known else NO_EPOCH
    if now.is_exhausted:
        return Identity(_needed(fresh_id), _FIRST_EPOCH), last_epoch
    return Identity(now.producer_id, now.epoch + 1), last_epoch


def _may_have_been(now: Transaction, known: Identity) -> bool:
    """
    Whether it is the producer of an earlier epoch at least, or of the id before or after.
    """
    if _is_next(now, known):
        return True
    return known.producer_id == now.producer_id or (known.producer_id == now.previous_id and known.epoch >= LAST_EPOCH)


def _ended_already(now: Transaction, who: Identity) -> bool:
    """
    Whether the epoch is the one after what this producer has, so that its request was done before.
    """
    if not (now.is_prepared or now.is_complete):
        return False
    by_epoch = now.client_version >= EPOCH_EACH and now.identity == (who.producer_id, who.epoch + 1)
    return by_epoch or _has_rotated(now, who)


def _has_rotated(now: Transaction, who: Identity) -> bool:
    """
    Whether this producer had the last epoch of the id before.
    """
    return who == (now.previous_id, LAST_EPOCH) and now.producer_id != who.producer_id


def _check_end(now: Transaction, who: Identity, each: bool) -> None:
    if each and _has_rotated(now, who):
        _fence(f"{who} has been replaced by {now.identity}")
    _check_identity(now, who)
    if each and now.is_prepared:  # a producer is not told this epoch before it is complete
        _fence(f"{who} cannot have this epoch yet")


def _is_next(now: Transaction, who: Identity) -> bool:
    """
    Whether this is who the producer will be once the transaction is complete, for the epochs of its id are used up. It
    was told so when the end was decided.
    """
    return now.next_id != NO_ID and who == (now.next_id, _FIRST_EPOCH)


def _check_identity(now: Transaction, who: Identity) -> None:
    if _is_next(now, who):
        _check_decided(now)
    if who.producer_id != now.producer_id:
        reason = f"{now.transactional_id} has the producer id {now.producer_id}, not {who.producer_id}"
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, reason)
    if who.epoch != now.epoch:
        _fence(f"{who} has been replaced by epoch {now.epoch}")


def _check_decided(now: Transaction) -> None:
    if now.is_prepared:
        _wait(f"its {now.state.label} is being told to the partitions")


def _prepared(now: Transaction, commits: bool, bumps: bool, fresh_id: int, now_ms: int) -> Transaction:
    """
    The transaction with its end decided; one that was not open is aborted as one without partitions.
    """
    changes: dict[str, Any] = {"client_version": _OLD_VERSION}
    if bumps:
        changes = {"client_version": EPOCH_EACH, "epoch": min(now.epoch, LAST_EPOCH) + 1, "last_epoch": now.epoch}
        changes["next_id"] = _needed(fresh_id) if now.is_exhausted else NO_ID
    if now.state is not State.ONGOING:
        changes["started_ms"] = now_ms
    return _moved(now, State.PREPARE_COMMIT if commits else State.PREPARE_ABORT, now_ms, **changes)


def _moved(now: Transaction, state: State, now_ms: int, **changes: Any) -> Transaction:
    return replace(now, state=state, updated_ms=now_ms, previous_id=now.producer_id, **changes)


def _needed(fresh_id: int) -> int:
    """
    A new producer id, where one is at hand.
    """
    if fresh_id == NO_ID:
        _wait("it needs a new producer id; ask again")
    return fresh_id


def _wait(reason: str) -> Never:
    raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, reason)


def _fence(reason: str) -> Never:
    raise KafkaError(ErrorCode.PRODUCER_FENCED, reason)
