"""
What may happen to a transactional id, and what comes of it.

What is answered to whom was tried with Kafka 4.3.1, which was asked the same.
"""

from collections.abc import Callable
from typing import Any

import pytest

from kgateway.transactions.machine import (
    added,
    begun,
    completed,
    ended,
    fenced,
    is_forgotten,
    is_late,
    marked,
    missing,
    new,
)
from kgateway.transactions.state import LAST_EPOCH, NO_EPOCH, NO_ID, NO_TIME, Identity, State, Transaction
from tests.broker.behaviour import refusal
from tests.transactions.transacting import EACH, OLD, T0, T1, TIMEOUT_MS, transaction

NOW, LATER = 100, 200
FRESH = 99
ME = Identity(7, 3)  # who the transaction's producer is
T = frozenset({T0})

EMPTY = transaction()
ONGOING = transaction(state=State.ONGOING, places=T, started_ms=10)
OVER = (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
PREPARED = (State.PREPARE_COMMIT, State.PREPARE_ABORT)


def refused(call: Callable[..., Any], *arguments: Any) -> str:
    return refusal(lambda: call(*arguments)).code.name


def end(
    now: Transaction, who: Identity = ME, commits: bool = True, spoken: int = EACH, fresh: int = NO_ID
) -> Transaction:
    return ended(now, who, commits, spoken, fresh, LATER)


def begin(now: Transaction, known: Identity | None = None, fresh: int = NO_ID) -> Transaction:
    return begun(now, known, 5_000, fresh, LATER)


def test_new() -> None:
    """
    The first producer of an id has a fresh producer id, in the first epoch; without one at hand it has to ask again.
    """
    found = new("a", TIMEOUT_MS, FRESH, NOW)
    assert (found.identity, found.state, found.timeout_ms, found.updated_ms) == (
        (FRESH, 0),
        State.EMPTY,
        TIMEOUT_MS,
        NOW,
    )
    assert (found.last_epoch, found.started_ms) == (NO_EPOCH, NO_TIME)
    assert refused(new, "a", TIMEOUT_MS, NO_ID, NOW) == "CONCURRENT_TRANSACTIONS"


@pytest.mark.parametrize("state", [State.EMPTY, *OVER])
def test_begin_anew(state: State) -> None:
    """
    The next producer has the next epoch and the timeout that it asks for; nothing is left of the last transaction.
    """
    found = begin(transaction(state=state, started_ms=10, last_epoch=2))
    assert (found.identity, found.state, found.timeout_ms) == ((7, 4), State.EMPTY, 5_000)
    assert (found.last_epoch, found.started_ms, found.updated_ms) == (NO_EPOCH, NO_TIME, LATER)


def test_begin_again() -> None:
    """
    A producer that says who it was goes on in the next epoch; if it did not hear of that it is told again. Then who was
    before the last is replaced.
    """
    found = begin(EMPTY, ME)
    assert (found.identity, found.last_epoch) == ((7, 4), 3)
    again = begin(found, ME)
    assert (again.identity, again.last_epoch) == ((7, 4), 3)
    assert begin(again, Identity(7, 4)).identity == (7, 5)
    for old in (Identity(7, 2), Identity(7, 5), Identity(8, 4), Identity(6, LAST_EPOCH)):
        assert refused(begin, again, old) == "PRODUCER_FENCED"


def test_begin_again_after_another() -> None:
    """
    Whoever begins without saying who it was fences all who were before.
    """
    found = begin(begin(EMPTY, ME))
    assert refused(begin, found, ME) == refused(begin, found, Identity(7, 4)) == "PRODUCER_FENCED"


def test_epochs_are_used_up() -> None:
    """
    After the last epoch comes a fresh producer id. Who had the last epoch, and did not hear of that, is told again.
    """
    last = transaction(epoch=LAST_EPOCH)
    assert refused(begin, last) == "CONCURRENT_TRANSACTIONS"
    assert begin(last, fresh=FRESH).identity == (FRESH, 0)
    assert refused(begin, begin(last, fresh=FRESH), Identity(7, LAST_EPOCH)) == "PRODUCER_FENCED"
    found = begin(last, Identity(7, LAST_EPOCH), FRESH)
    assert (found.identity, found.previous_id) == ((FRESH, 0), 7)
    assert begin(found, Identity(7, LAST_EPOCH)).identity == (FRESH, 0)
    for epoch in (0, LAST_EPOCH - 1):
        assert refused(begin, found, Identity(7, epoch)) == "PRODUCER_FENCED"


def test_last_epoch_is_told_again() -> None:
    """
    So is the last epoch itself, without a fresh id. (Kafka answers UNKNOWN_SERVER_ERROR.)
    """
    found = begin(transaction(epoch=LAST_EPOCH - 1), Identity(7, LAST_EPOCH - 1))
    assert found.epoch == LAST_EPOCH
    assert begin(found, Identity(7, LAST_EPOCH - 1)).identity == (7, LAST_EPOCH)


@pytest.mark.parametrize("known", [None, ME])
def test_begin_while_open(known: Identity | None) -> None:
    """
    An open transaction is aborted in a new epoch.
    """
    found = begin(ONGOING, known)
    assert (found.state, found.identity, found.places) == (State.PREPARE_ABORT, (7, 4), T)
    assert (found.timeout_ms, found.started_ms, found.client_version) == (TIMEOUT_MS, 10, EACH)


def test_a_predecessor_aborts_nothing() -> None:
    """
    Who has been replaced does not harm the transaction of who came after. (In Kafka it does.)
    """
    for old in (Identity(7, 2), Identity(7, 4), Identity(8, 3)):
        assert refused(begin, ONGOING, old) == "PRODUCER_FENCED"


@pytest.mark.parametrize("state", PREPARED)
def test_all_wait_for_the_partitions(state: State) -> None:
    """
    As long as they are being told nothing can be asked, but for an end, which comes again.
    """
    now = transaction(state=state, places=T, epoch=4, client_version=EACH)
    who = now.identity
    assert refused(begin, now) == refused(begin, now, who) == "CONCURRENT_TRANSACTIONS"
    assert refused(added, now, who, T, EACH, NOW) == refused(missing, now, who, T) == "CONCURRENT_TRANSACTIONS"
    same, other = now.commits, not now.commits
    assert refused(end, now, ME, same) == "CONCURRENT_TRANSACTIONS"
    assert refused(end, now, ME, other) == "INVALID_TXN_STATE"
    assert refused(end, now, who, same) == refused(end, now, Identity(7, 2), same) == "PRODUCER_FENCED"
    assert refused(end, now, Identity(8, 3), same) == "INVALID_PRODUCER_ID_MAPPING"


@pytest.mark.parametrize("state", PREPARED)
def test_all_wait_for_the_partitions_with_one_epoch(state: State) -> None:
    """
    So it is where the end has no epoch of its own.
    """
    now = transaction(state=state, places=T)
    assert refused(end, now, ME, now.commits, OLD) == "CONCURRENT_TRANSACTIONS"
    assert refused(end, now, ME, not now.commits, OLD) == "INVALID_TXN_STATE"
    assert refused(end, now, Identity(7, 2), now.commits, OLD) == "PRODUCER_FENCED"


@pytest.mark.parametrize("state", [State.EMPTY, *OVER])
@pytest.mark.parametrize("spoken", [OLD, EACH])
def test_add_begins(state: State, spoken: int) -> None:
    """
    The first partitions begin a transaction.
    """
    found = added(transaction(state=state, started_ms=1), ME, T, spoken, NOW)
    assert (found.state, found.places, found.started_ms, found.updated_ms) == (State.ONGOING, T, NOW, NOW)
    assert (found.identity, found.client_version) == (ME, spoken)


def test_add_more() -> None:
    """
    Further ones are added; those that are there already are nothing to write.
    """
    found = added(ONGOING, ME, {T0, T1}, EACH, NOW)
    assert (found.places, found.started_ms, found.updated_ms) == (T | {T1}, 10, NOW)
    assert added(found, ME, {T1}, EACH, LATER) is found


@pytest.mark.parametrize(
    ("who", "code"),
    [
        (Identity(7, 2), "PRODUCER_FENCED"),
        (Identity(7, 4), "PRODUCER_FENCED"),
        (Identity(8, 3), "INVALID_PRODUCER_ID_MAPPING"),
    ],
)
def test_others_are_refused(who: Identity, code: str) -> None:
    """
    Only the producer itself adds, asks and ends.
    """
    for now in (EMPTY, ONGOING):
        assert refused(added, now, who, T, EACH, NOW) == refused(missing, now, who, T) == code
        for spoken in (OLD, EACH):
            assert refused(end, now, who, False, spoken) == code


def test_missing() -> None:
    """
    A partition belongs to a transaction from when it is added.
    """
    assert missing(ONGOING, ME, {T0, T1}) == {T1}
    assert missing(EMPTY, ME, {T0}) == {T0}


@pytest.mark.parametrize("commits", [True, False])
def test_end(commits: bool) -> None:
    """
    With version 2 the end has the next epoch; the partitions are those it had.
    """
    found = end(ONGOING, ME, commits)
    assert (found.state, found.identity) == (State.PREPARE_COMMIT if commits else State.PREPARE_ABORT, (7, 4))
    assert (found.commits, found.places, found.started_ms, found.updated_ms) == (commits, T, 10, LATER)
    assert (found.client_version, found.last_epoch, found.next_id) == (EACH, 3, NO_ID)


@pytest.mark.parametrize("commits", [True, False])
def test_end_with_one_epoch(commits: bool) -> None:
    """
    Below it has the producer's.
    """
    found = end(transaction(state=State.ONGOING, places=T, client_version=EACH), ME, commits, OLD)
    assert (found.identity, found.commits, found.is_prepared, found.client_version) == (ME, commits, True, OLD)


def test_complete() -> None:
    """
    When all partitions are told none is left, and the transaction is what it was prepared to be.
    """
    for commits, state in ((True, State.COMPLETE_COMMIT), (False, State.COMPLETE_ABORT)):
        found = completed(end(ONGOING, ME, commits), LATER + 1)
        assert (found.state, found.commits, found.identity, found.places) == (state, commits, (7, 4), frozenset())
        assert (found.started_ms, found.updated_ms, found.previous_id) == (10, LATER + 1, 7)


def test_marked() -> None:
    """
    Those that are told are left out.
    """
    assert marked(transaction(places=frozenset({T0, T1})), {T0}).places == {T1}


@pytest.mark.parametrize("commits", [True, False])
def test_end_again(commits: bool) -> None:
    """
    Who did not hear how its end went is told the same; another end is none.
    """
    done = completed(end(ONGOING, ME, commits), LATER)
    assert end(done, ME, commits) is done
    assert refused(end, done, ME, not commits) == "INVALID_TXN_STATE"
    done = completed(end(ONGOING, ME, commits, OLD), LATER)
    assert end(done, ME, commits, OLD) is done
    assert refused(end, done, ME, not commits, OLD) == "INVALID_TXN_STATE"


@pytest.mark.parametrize("commits", [True, False])
def test_end_of_a_transaction_before(commits: bool) -> None:
    """
    An epoch that is older than the last end's is fenced.
    """
    done = completed(end(ONGOING, ME, commits), LATER)
    assert refused(end, done, Identity(7, 2), commits) == "PRODUCER_FENCED"
    assert refused(end, begin(done), ME, commits) == "PRODUCER_FENCED"
    assert refused(end, added(done, done.identity, T, EACH, NOW), ME, commits) == "PRODUCER_FENCED"
    with_one_epoch = completed(end(transaction(epoch=4, state=State.ONGOING), Identity(7, 4), commits, OLD), LATER)
    assert refused(end, with_one_epoch, ME, commits) == "PRODUCER_FENCED"


@pytest.mark.parametrize("state", [State.EMPTY, *OVER])
def test_end_of_nothing(state: State) -> None:
    """
    With version 2 a transaction without partitions can be aborted, in an epoch of its own; it cannot be committed, nor
    ended at all below.
    """
    now = transaction(state=state, started_ms=1)
    found = end(now, ME, False)
    assert (found.state, found.identity, found.started_ms, found.places) == (
        State.PREPARE_ABORT,
        (7, 4),
        LATER,
        frozenset(),
    )
    assert refused(end, now) == "INVALID_TXN_STATE"
    if state is State.EMPTY:
        for commits in (True, False):
            assert refused(end, now, ME, commits, OLD) == "INVALID_TXN_STATE"


def test_end_with_the_last_epoch() -> None:
    """
    Its markers have the epoch that no producer is given, and the next transaction has a fresh producer id. Who did not
    hear of that is told again.
    """
    me = Identity(7, LAST_EPOCH)
    now = transaction(epoch=LAST_EPOCH, state=State.ONGOING, places=T)
    assert refused(end, now, me) == "CONCURRENT_TRANSACTIONS"
    found = end(now, me, fresh=FRESH)
    assert (found.identity, found.next_id) == ((7, LAST_EPOCH + 1), FRESH)
    assert refused(end, found, me) == "CONCURRENT_TRANSACTIONS"
    done = completed(found, LATER)
    assert (done.identity, done.previous_id, done.next_id) == ((FRESH, 0), 7, NO_ID)
    assert end(done, me) is done
    assert refused(end, done, me, False) == "INVALID_TXN_STATE"
    assert refused(end, begin(done), me) == "INVALID_PRODUCER_ID_MAPPING"
    assert refused(end, transaction(epoch=0, state=State.COMPLETE_COMMIT), me) == "PRODUCER_FENCED"
    rotated = begin(transaction(epoch=LAST_EPOCH), fresh=FRESH)
    assert refused(end, rotated, me) == "PRODUCER_FENCED"


def test_who_has_a_fresh_id_waits_for_the_partitions() -> None:
    """
    The producer knows its next id as soon as the end is decided, and may go on before the partitions are told.
    """
    now = transaction(epoch=LAST_EPOCH, state=State.ONGOING, places=T)
    found, after = end(now, Identity(7, LAST_EPOCH), fresh=FRESH), Identity(FRESH, 0)
    told = {
        refused(added, found, after, T, EACH, NOW),
        refused(missing, found, after, T),
        refused(end, found, after, False),
        refused(begin, found, after),
    }
    assert told == {"CONCURRENT_TRANSACTIONS"}
    done = completed(found, LATER)
    assert added(done, after, T, EACH, NOW).state is State.ONGOING
    assert begin(done, after).identity == (FRESH, 1)
    for prepared, other in ((found, Identity(FRESH, 1)), (end(ONGOING), Identity(NO_ID, 0))):
        assert refused(added, prepared, other, T, EACH, NOW) == "INVALID_PRODUCER_ID_MAPPING"
        assert refused(begin, prepared, other) == "PRODUCER_FENCED"


def test_end_with_the_last_epoch_of_all() -> None:
    """
    A log that an earlier Kafka wrote may have the epoch that no producer is given; from there on, too, there is a way.
    """
    found = end(transaction(epoch=LAST_EPOCH + 1), Identity(7, LAST_EPOCH + 1), False, fresh=FRESH)
    assert (found.epoch, found.next_id) == (LAST_EPOCH + 1, FRESH)


def test_fence() -> None:
    """
    An open transaction is aborted as if its producer had asked for it; and so it may ask for that, and go on.
    """
    done = completed(fenced(ONGOING, NO_ID, NOW), LATER)
    assert (done.state, done.identity) == (State.COMPLETE_ABORT, (7, 4))
    assert end(done, ME, False) is done
    assert refused(end, done, ME, True) == "INVALID_TXN_STATE"
    assert refused(added, done, ME, T, EACH, NOW) == "PRODUCER_FENCED"
    for commits in (True, False):
        assert refused(end, done, ME, commits, OLD) == "PRODUCER_FENCED"
    assert refused(fenced, transaction(epoch=LAST_EPOCH, state=State.ONGOING), NO_ID, NOW) == "CONCURRENT_TRANSACTIONS"


def test_late() -> None:
    """
    A transaction may be open for as long as its client said, and not longer.
    """
    assert not is_late(ONGOING, 10 + TIMEOUT_MS)
    assert is_late(ONGOING, 11 + TIMEOUT_MS)
    for state in (State.EMPTY, *PREPARED, *OVER):
        assert not is_late(transaction(state=state, started_ms=10), 11 + TIMEOUT_MS)


def test_forgotten() -> None:
    """
    An id is forgotten when nobody has used it for so long, and never while a transaction is open or ends.
    """
    for state in (State.EMPTY, *OVER):
        assert not is_forgotten(transaction(state=state), 104, 100)
        assert is_forgotten(transaction(state=state), 105, 100)
    for state in (State.ONGOING, *PREPARED):
        assert not is_forgotten(transaction(state=state), 1_000, 100)


def test_labels() -> None:
    """
    States are called as administrators know them.
    """
    assert [state.label for state in State] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
