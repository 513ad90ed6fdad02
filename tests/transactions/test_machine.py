"""
The state machine of a transactional id. Its answers were compared with those of Kafka 4.3.1 to the same requests.
"""

from collections.abc import Callable
from typing import Any

import pytest

from kgateway.transactions.machine import (
    add_partitions,
    complete,
    create,
    init_producer,
    is_expired,
    is_timed_out,
    missing_partitions,
    prepare_end,
    prepare_fence,
    remove_marked,
)
from kgateway.transactions.state import (
    LAST_EPOCH,
    NO_EPOCH,
    NO_ID,
    NO_TIME,
    ProducerIdAndEpoch,
    Transaction,
    TransactionState,
)
from tests.broker.behaviour import refusal
from tests.transactions.transaction_world import EACH, OLD, T0, T1, TIMEOUT_MS, transaction

NOW, LATER = 100, 200
FRESH = 99
ME = ProducerIdAndEpoch(7, 3)  # the producer of the transaction
T = frozenset({T0})

EMPTY = transaction()
ONGOING = transaction(state=TransactionState.ONGOING, partitions=T, started_ms=10)
OVER = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


def refused(call: Callable[..., Any], *arguments: Any) -> str:
    return refusal(lambda: call(*arguments)).code.name


def end(
    now: Transaction, who: ProducerIdAndEpoch = ME, commits: bool = True, spoken: int = EACH, fresh: int = NO_ID
) -> Transaction:
    return prepare_end(now, who, commits, spoken, fresh, LATER)


def begin(now: Transaction, known: ProducerIdAndEpoch | None = None, fresh: int = NO_ID) -> Transaction:
    return init_producer(now, known, 5_000, fresh, LATER)


def test_the_first_producer_gets_a_new_id() -> None:
    """
    It is in the first epoch; without an id at hand it has to retry.
    """
    found = create("a", TIMEOUT_MS, FRESH, NOW)
    assert (found.producer, found.state, found.timeout_ms, found.updated_ms) == (
        (FRESH, 0),
        TransactionState.EMPTY,
        TIMEOUT_MS,
        NOW,
    )
    assert (found.last_epoch, found.started_ms) == (NO_EPOCH, NO_TIME)
    assert refused(create, "a", TIMEOUT_MS, NO_ID, NOW) == "CONCURRENT_TRANSACTIONS"


@pytest.mark.parametrize("state", [TransactionState.EMPTY, *OVER])
def test_the_next_producer_gets_the_next_epoch(state: TransactionState) -> None:
    """
    It has its own timeout; nothing of the last transaction is left.
    """
    found = begin(transaction(state=state, started_ms=10, last_epoch=2))
    assert (found.producer, found.state, found.timeout_ms) == ((7, 4), TransactionState.EMPTY, 5_000)
    assert (found.last_epoch, found.started_ms, found.updated_ms) == (NO_EPOCH, NO_TIME, LATER)


def test_a_producer_that_names_itself_gets_the_next_epoch() -> None:
    """
    It gets the same one again if the answer was lost. Then its predecessors are fenced.
    """
    found = begin(EMPTY, ME)
    assert (found.producer, found.last_epoch) == ((7, 4), 3)
    again = begin(found, ME)
    assert (again.producer, again.last_epoch) == ((7, 4), 3)
    assert begin(again, ProducerIdAndEpoch(7, 4)).producer == (7, 5)
    for old in (
        ProducerIdAndEpoch(7, 2),
        ProducerIdAndEpoch(7, 5),
        ProducerIdAndEpoch(8, 4),
        ProducerIdAndEpoch(6, LAST_EPOCH),
    ):
        assert refused(begin, again, old) == "PRODUCER_FENCED"


def test_a_producer_that_does_not_name_itself_fences_all_others() -> None:
    found = begin(begin(EMPTY, ME))
    assert refused(begin, found, ME) == refused(begin, found, ProducerIdAndEpoch(7, 4)) == "PRODUCER_FENCED"


def test_exhausted_epochs_give_a_new_producer_id() -> None:
    """
    A producer in the last epoch gets it again if the answer was lost.
    """
    last = transaction(epoch=LAST_EPOCH)
    assert refused(begin, last) == "CONCURRENT_TRANSACTIONS"
    assert begin(last, fresh=FRESH).producer == (FRESH, 0)
    assert refused(begin, begin(last, fresh=FRESH), ProducerIdAndEpoch(7, LAST_EPOCH)) == "PRODUCER_FENCED"
    found = begin(last, ProducerIdAndEpoch(7, LAST_EPOCH), FRESH)
    assert (found.producer, found.previous_id) == ((FRESH, 0), 7)
    assert begin(found, ProducerIdAndEpoch(7, LAST_EPOCH)).producer == (FRESH, 0)
    for epoch in (0, LAST_EPOCH - 1):
        assert refused(begin, found, ProducerIdAndEpoch(7, epoch)) == "PRODUCER_FENCED"


def test_the_last_epoch_is_answered_again() -> None:
    """
    It needs no new id. (Kafka answers UNKNOWN_SERVER_ERROR.)
    """
    found = begin(transaction(epoch=LAST_EPOCH - 1), ProducerIdAndEpoch(7, LAST_EPOCH - 1))
    assert found.epoch == LAST_EPOCH
    assert begin(found, ProducerIdAndEpoch(7, LAST_EPOCH - 1)).producer == (7, LAST_EPOCH)


@pytest.mark.parametrize("known", [None, ME])
def test_beginning_aborts_an_open_transaction(known: ProducerIdAndEpoch | None) -> None:
    """
    The abort has a new epoch.
    """
    found = begin(ONGOING, known)
    assert (found.state, found.producer, found.partitions) == (TransactionState.PREPARE_ABORT, (7, 4), T)
    assert (found.timeout_ms, found.started_ms, found.client_version) == (TIMEOUT_MS, 10, EACH)


def test_a_predecessor_aborts_nothing() -> None:
    """
    A replaced producer does not affect its successor's transaction. (In Kafka it does.)
    """
    for old in (ProducerIdAndEpoch(7, 2), ProducerIdAndEpoch(7, 4), ProducerIdAndEpoch(8, 3)):
        assert refused(begin, ONGOING, old) == "PRODUCER_FENCED"


@pytest.mark.parametrize("state", PREPARED)
def test_requests_wait_for_the_markers(state: TransactionState) -> None:
    """
    Until all partitions have theirs every request waits, except for a repeated end.
    """
    now = transaction(state=state, partitions=T, epoch=4, client_version=EACH)
    who = now.producer
    assert refused(begin, now) == refused(begin, now, who) == "CONCURRENT_TRANSACTIONS"
    assert (
        refused(add_partitions, now, who, T, EACH, NOW)
        == refused(missing_partitions, now, who, T)
        == "CONCURRENT_TRANSACTIONS"
    )
    same, other = now.commits, not now.commits
    assert refused(end, now, ME, same) == "CONCURRENT_TRANSACTIONS"
    assert refused(end, now, ME, other) == "INVALID_TXN_STATE"
    assert refused(end, now, who, same) == refused(end, now, ProducerIdAndEpoch(7, 2), same) == "PRODUCER_FENCED"
    assert refused(end, now, ProducerIdAndEpoch(8, 3), same) == "INVALID_PRODUCER_ID_MAPPING"


@pytest.mark.parametrize("state", PREPARED)
def test_requests_wait_for_the_markers_with_one_epoch(state: TransactionState) -> None:
    """
    The end has no epoch of its own.
    """
    now = transaction(state=state, partitions=T)
    assert refused(end, now, ME, now.commits, OLD) == "CONCURRENT_TRANSACTIONS"
    assert refused(end, now, ME, not now.commits, OLD) == "INVALID_TXN_STATE"
    assert refused(end, now, ProducerIdAndEpoch(7, 2), now.commits, OLD) == "PRODUCER_FENCED"


@pytest.mark.parametrize("state", [TransactionState.EMPTY, *OVER])
@pytest.mark.parametrize("spoken", [OLD, EACH])
def test_adding_partitions_begins_a_transaction(state: TransactionState, spoken: int) -> None:
    found = add_partitions(transaction(state=state, started_ms=1), ME, T, spoken, NOW)
    assert (found.state, found.partitions, found.started_ms, found.updated_ms) == (
        TransactionState.ONGOING,
        T,
        NOW,
        NOW,
    )
    assert (found.producer, found.client_version) == (ME, spoken)


def test_more_partitions_are_added() -> None:
    """
    Nothing is written if all are there already.
    """
    found = add_partitions(ONGOING, ME, {T0, T1}, EACH, NOW)
    assert (found.partitions, found.started_ms, found.updated_ms) == (T | {T1}, 10, NOW)
    assert add_partitions(found, ME, {T1}, EACH, LATER) is found


@pytest.mark.parametrize(
    ("who", "code"),
    [
        (ProducerIdAndEpoch(7, 2), "PRODUCER_FENCED"),
        (ProducerIdAndEpoch(7, 4), "PRODUCER_FENCED"),
        (ProducerIdAndEpoch(8, 3), "INVALID_PRODUCER_ID_MAPPING"),
    ],
)
def test_other_producers_are_refused(who: ProducerIdAndEpoch, code: str) -> None:
    """
    Only the producer itself adds partitions, verifies and ends.
    """
    for now in (EMPTY, ONGOING):
        assert refused(add_partitions, now, who, T, EACH, NOW) == refused(missing_partitions, now, who, T) == code
        for spoken in (OLD, EACH):
            assert refused(end, now, who, False, spoken) == code


def test_partitions_not_yet_added_are_missing() -> None:
    assert missing_partitions(ONGOING, ME, {T0, T1}) == {T1}
    assert missing_partitions(EMPTY, ME, {T0}) == {T0}


@pytest.mark.parametrize("commits", [True, False])
def test_an_end_has_the_next_epoch(commits: bool) -> None:
    """
    This is version 2; the partitions are unchanged.
    """
    found = end(ONGOING, ME, commits)
    assert (found.state, found.producer) == (
        TransactionState.PREPARE_COMMIT if commits else TransactionState.PREPARE_ABORT,
        (7, 4),
    )
    assert (found.commits, found.partitions, found.started_ms, found.updated_ms) == (commits, T, 10, LATER)
    assert (found.client_version, found.last_epoch, found.next_id) == (EACH, 3, NO_ID)


@pytest.mark.parametrize("commits", [True, False])
def test_an_end_with_one_epoch(commits: bool) -> None:
    """
    Below version 2 the end has the producer's epoch.
    """
    found = end(transaction(state=TransactionState.ONGOING, partitions=T, client_version=EACH), ME, commits, OLD)
    assert (found.producer, found.commits, found.is_prepared, found.client_version) == (ME, commits, True, OLD)


def test_a_complete_transaction_has_no_partitions() -> None:
    """
    It has the prepared outcome.
    """
    for commits, state in ((True, TransactionState.COMPLETE_COMMIT), (False, TransactionState.COMPLETE_ABORT)):
        found = complete(end(ONGOING, ME, commits), LATER + 1)
        assert (found.state, found.commits, found.producer, found.partitions) == (state, commits, (7, 4), frozenset())
        assert (found.started_ms, found.updated_ms, found.previous_id) == (10, LATER + 1, 7)


def test_marked_partitions_are_removed() -> None:
    assert remove_marked(transaction(partitions=frozenset({T0, T1})), {T0}).partitions == {T1}


@pytest.mark.parametrize("commits", [True, False])
def test_a_repeated_end_is_answered_again(commits: bool) -> None:
    """
    The opposite end is refused.
    """
    done = complete(end(ONGOING, ME, commits), LATER)
    assert end(done, ME, commits) is done
    assert refused(end, done, ME, not commits) == "INVALID_TXN_STATE"
    done = complete(end(ONGOING, ME, commits, OLD), LATER)
    assert end(done, ME, commits, OLD) is done
    assert refused(end, done, ME, not commits, OLD) == "INVALID_TXN_STATE"


@pytest.mark.parametrize("commits", [True, False])
def test_an_earlier_end_is_fenced(commits: bool) -> None:
    """
    Its epoch is older than that of the last end.
    """
    done = complete(end(ONGOING, ME, commits), LATER)
    assert refused(end, done, ProducerIdAndEpoch(7, 2), commits) == "PRODUCER_FENCED"
    assert refused(end, begin(done), ME, commits) == "PRODUCER_FENCED"
    assert refused(end, add_partitions(done, done.producer, T, EACH, NOW), ME, commits) == "PRODUCER_FENCED"
    with_one_epoch = complete(
        end(transaction(epoch=4, state=TransactionState.ONGOING), ProducerIdAndEpoch(7, 4), commits, OLD), LATER
    )
    assert refused(end, with_one_epoch, ME, commits) == "PRODUCER_FENCED"


@pytest.mark.parametrize("state", [TransactionState.EMPTY, *OVER])
def test_the_end_of_an_empty_transaction(state: TransactionState) -> None:
    """
    With version 2 it can be aborted, in its own epoch, and not committed; below version 2 it cannot be ended at all.
    """
    now = transaction(state=state, started_ms=1)
    found = end(now, ME, False)
    assert (found.state, found.producer, found.started_ms, found.partitions) == (
        TransactionState.PREPARE_ABORT,
        (7, 4),
        LATER,
        frozenset(),
    )
    assert refused(end, now) == "INVALID_TXN_STATE"
    if state is TransactionState.EMPTY:
        for commits in (True, False):
            assert refused(end, now, ME, commits, OLD) == "INVALID_TXN_STATE"


def test_an_end_in_the_last_epoch() -> None:
    """
    The markers have the epoch that no producer gets, and the next transaction has a new producer id. A producer whose
    answer was lost gets it again.
    """
    me = ProducerIdAndEpoch(7, LAST_EPOCH)
    now = transaction(epoch=LAST_EPOCH, state=TransactionState.ONGOING, partitions=T)
    assert refused(end, now, me) == "CONCURRENT_TRANSACTIONS"
    found = end(now, me, fresh=FRESH)
    assert (found.producer, found.next_id) == ((7, LAST_EPOCH + 1), FRESH)
    assert refused(end, found, me) == "CONCURRENT_TRANSACTIONS"
    done = complete(found, LATER)
    assert (done.producer, done.previous_id, done.next_id) == ((FRESH, 0), 7, NO_ID)
    assert end(done, me) is done
    assert refused(end, done, me, False) == "INVALID_TXN_STATE"
    assert refused(end, begin(done), me) == "INVALID_PRODUCER_ID_MAPPING"
    assert refused(end, transaction(epoch=0, state=TransactionState.COMPLETE_COMMIT), me) == "PRODUCER_FENCED"
    rotated = begin(transaction(epoch=LAST_EPOCH), fresh=FRESH)
    assert refused(end, rotated, me) == "PRODUCER_FENCED"


def test_a_new_id_waits_for_the_markers() -> None:
    """
    The producer knows its next id once the end is prepared, and may retry before the partitions have their markers.
    """
    now = transaction(epoch=LAST_EPOCH, state=TransactionState.ONGOING, partitions=T)
    found, after = end(now, ProducerIdAndEpoch(7, LAST_EPOCH), fresh=FRESH), ProducerIdAndEpoch(FRESH, 0)
    told = {
        refused(add_partitions, found, after, T, EACH, NOW),
        refused(missing_partitions, found, after, T),
        refused(end, found, after, False),
        refused(begin, found, after),
    }
    assert told == {"CONCURRENT_TRANSACTIONS"}
    done = complete(found, LATER)
    assert add_partitions(done, after, T, EACH, NOW).state is TransactionState.ONGOING
    assert begin(done, after).producer == (FRESH, 1)
    for prepared, other in ((found, ProducerIdAndEpoch(FRESH, 1)), (end(ONGOING), ProducerIdAndEpoch(NO_ID, 0))):
        assert refused(add_partitions, prepared, other, T, EACH, NOW) == "INVALID_PRODUCER_ID_MAPPING"
        assert refused(begin, prepared, other) == "PRODUCER_FENCED"


def test_an_end_in_the_reserved_epoch() -> None:
    """
    A log of an earlier Kafka may have the epoch that no producer gets; a producer can continue from there.
    """
    found = end(transaction(epoch=LAST_EPOCH + 1), ProducerIdAndEpoch(7, LAST_EPOCH + 1), False, fresh=FRESH)
    assert (found.epoch, found.next_id) == (LAST_EPOCH + 1, FRESH)


def test_fencing_aborts_an_open_transaction() -> None:
    """
    It is aborted as if its producer had asked, so the producer may ask, and continue.
    """
    done = complete(prepare_fence(ONGOING, NO_ID, NOW), LATER)
    assert (done.state, done.producer) == (TransactionState.COMPLETE_ABORT, (7, 4))
    assert end(done, ME, False) is done
    assert refused(end, done, ME, True) == "INVALID_TXN_STATE"
    assert refused(add_partitions, done, ME, T, EACH, NOW) == "PRODUCER_FENCED"
    for commits in (True, False):
        assert refused(end, done, ME, commits, OLD) == "PRODUCER_FENCED"
    assert (
        refused(prepare_fence, transaction(epoch=LAST_EPOCH, state=TransactionState.ONGOING), NO_ID, NOW)
        == "CONCURRENT_TRANSACTIONS"
    )


def test_late_transactions() -> None:
    """
    A transaction may be open for its timeout, and no longer.
    """
    assert not is_timed_out(ONGOING, 10 + TIMEOUT_MS)
    assert is_timed_out(ONGOING, 11 + TIMEOUT_MS)
    for state in (TransactionState.EMPTY, *PREPARED, *OVER):
        assert not is_timed_out(transaction(state=state, started_ms=10), 11 + TIMEOUT_MS)


def test_unused_ids_expire() -> None:
    """
    They never expire while a transaction is open or ends.
    """
    for state in (TransactionState.EMPTY, *OVER):
        assert not is_expired(transaction(state=state), 104, 100)
        assert is_expired(transaction(state=state), 105, 100)
    for state in (TransactionState.ONGOING, *PREPARED):
        assert not is_expired(transaction(state=state), 1_000, 100)


def test_states_have_kafkas_names() -> None:
    assert [state.label for state in TransactionState] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
