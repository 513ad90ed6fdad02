"""
Whatever the machine, the logs and the clients do, each transaction is wholly there or wholly not.

Some producers write to some partitions in transactions; the gateway stops at any moment, and what was not safe by then
may be lost or kept. In the end each transaction has ended alike in all its partitions, as its producer was told if it
was told anything, and who was replaced has written nothing since.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kgateway.config.settings import Settings
from kgateway.context import GatewayParts
from kgateway.interfaces import IBroker
from kgateway.records.batch import Batch
from kgateway.records.control import read_marker
from kgateway.security.authorizer import AllowAll
from kgateway.transactions.coding import encoded
from kgateway.transactions.listing import Filter
from kgateway.transactions.state import LAST_EPOCH, Identity, Place
from kgateway.transactions.transactions import Transactions
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import START_MS
from tests.transactions.simulated import SimulatedBroker, SimulatedState
from tests.transactions.transacting import ADD_VERSION, EACH, END_VERSION, OLD, TIMEOUT_MS, transaction

NAMES = ["a", "b"]
PLACES = [Place("t", index) for index in range(3)]
AGAIN = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
CHECK_S = 10
STEPS = 40


@dataclass(eq=False)
class Attempt:
    """
    One transaction, as its producer knows it.
    """

    who: Identity
    places: set[Place] = field(default_factory=set)  # that were added
    wanted: bool | None = None  # whether it is to commit, once that is decided
    acknowledged: bool = False  # that it did, or did not


@dataclass(frozen=True)
class Data:
    """
    A batch of records of a transaction.
    """

    attempt: Attempt
    who: Identity


class Producer:
    """
    A client, which has one request under way at most.
    """

    def __init__(self, name: str, spoken: int, number: int) -> None:
        self.name = name
        self.spoken = spoken
        self.number = number
        self.who: Identity | None = None  # none before it has begun, and after it was fenced
        self.attempt: Attempt | None = None
        self.asked: Deferred[Any] | None = None
        self.wrong: list[Failure] = []  # what should never happen

    @property
    def is_idle(self) -> bool:
        return self.asked is None

    def ask(self, answer: Any, then: Callable[[Any], None]) -> None:
        self.asked = Deferred.fromCoroutine(answer)
        self.asked.addBoth(self._answered).addCallback(then).addErrback(self._refused)

    def _answered(self, outcome: Any) -> Any:
        self.asked = None
        return outcome

    def _refused(self, failure: Failure) -> None:
        if failure.check(CancelledError):
            return
        error = failure.value
        if not isinstance(error, KafkaError):
            self.wrong.append(failure)
        elif error.code not in AGAIN:
            self.who = self.attempt = None


class Crashes:
    """
    A gateway and its clients.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.clock = Clock()
        self.broker = SimulatedBroker()
        self.logs = [self.broker.state, *self.broker.partitions]
        self.attempts: list[Attempt] = []
        self.producers = [Producer(NAMES[number // 2], random.choice([OLD, EACH]), number) for number in range(4)]
        self.latest: dict[str, int] = {}  # name -> number of the producer that has begun last
        for log in self.logs:
            log.is_slow = True
        self.broker.state.entries.append(encoded(transaction(epoch=LAST_EPOCH - 3)))
        self.start()

    def start(self) -> None:
        parts = GatewayParts(cast(IBroker, self.broker), Settings(), AllowAll(), self.clock, self.now_ms)
        self.parts, self.transactions = parts, parts.service(Transactions)
        self.clock.pump([0] * 5)

    def now_ms(self) -> int:
        return START_MS + round(self.clock.seconds() * 1000)

    def step(self) -> None:
        """
        Anything happens.
        """
        random = self.random
        number, commits, seconds = random.randrange(4), random.random() < 0.6, random.choice([0, 1, CHECK_S, 70])
        places = set(random.sample(PLACES, random.randint(1, 3)))
        steps: list[Callable[[], None]] = [
            lambda: self.begins(number),
            lambda: self.adds(number, places),
            lambda: self.writes(number),
            lambda: self.ends(number, commits),
            lambda: self.transacts(number, places, commits),
            lambda: self.is_replaced(number, places, commits),
            lambda: self.becomes_safe(number, random.randint(1, 4)),
            self.all_becomes_safe,
            lambda: self.fails(number),
            lambda: self.takes_nothing(number),
            self.all_take_anything,
            lambda: self.time_passes(seconds),
            self.crashes,
        ]
        random.choices(steps, [2, 2, 2, 2, 6, 2, 6, 2, 1, 1, 3, 3, 4])[0]()

    def begins(self, number: int) -> None:
        producer = self.producers[number]
        if not producer.is_idle or producer.who:
            return

        def begun(who: Identity) -> None:
            self.latest[producer.name] = producer.number
            producer.who, producer.attempt = who, None

        producer.ask(self.transactions.init(producer.name, TIMEOUT_MS, None, 5), begun)

    def adds(self, number: int, places: set[Place]) -> None:
        producer = self.producers[number]
        if not (producer.is_idle and producer.who) or (producer.attempt and producer.attempt.wanted is not None):
            return
        if producer.attempt is None:
            producer.attempt = Attempt(producer.who)
            self.attempts.append(producer.attempt)
        attempt = producer.attempt

        def added(_: None) -> None:
            assert self.is_latest(producer), "who was replaced may add nothing"
            attempt.places |= places

        version = ADD_VERSION[producer.spoken]
        producer.ask(self.transactions.add_partitions(producer.name, producer.who, places, version), added)

    def writes(self, number: int) -> None:
        """
        To all partitions that it has added, as far as those let it.
        """
        producer = self.producers[number]
        attempt = producer.attempt
        if not (attempt and producer.is_idle) or attempt.wanted is not None:
            return
        for place in attempt.places:
            log = self.broker.partitions[place.partition]
            if not log.error and attempt.who.epoch >= _epoch(log.entries, attempt.who.producer_id):
                safe = log.add(Data(attempt, attempt.who)).safe
                if safe:
                    safe.addErrback(lambda _: None)

    def ends(self, number: int, commits: bool) -> None:
        """
        Once what it wrote is safe; or asks again for what it asked.
        """
        producer = self.producers[number]
        attempt, who = producer.attempt, producer.who
        if not (attempt and who and producer.is_idle) or not (attempt.places or producer.spoken == EACH):
            return
        if attempt.wanted is None:
            attempt.wanted = commits and self.is_all_safe(attempt)

        def ended(after: Identity) -> None:
            assert self.is_latest(producer), "who was replaced may end nothing"
            attempt.acknowledged = True
            producer.who, producer.attempt = after, None

        version = END_VERSION[producer.spoken]
        producer.ask(self.transactions.end(producer.name, who, attempt.wanted, version), ended)

    def transacts(self, number: int, places: set[Place], commits: bool) -> None:
        """
        Without trouble as far as the end, which is asked for.
        """
        for _ in range(2):  # the first one may only fence who was before
            self.begins(number)
            self.all_becomes_safe()
        self.adds(number, places)
        self.all_becomes_safe()
        self.writes(number)
        self.all_becomes_safe()
        self.ends(number, commits)

    def is_replaced(self, number: int, places: set[Place], commits: bool) -> None:
        """
        In the middle of a transaction, and does not know.
        """
        twin = self.producers[number ^ 1]
        self.transacts(number, places, commits)
        self.all_becomes_safe()
        self.adds(number, places)
        self.all_becomes_safe()
        self.writes(number)
        twin.who = twin.attempt = None
        for _ in range(2):
            self.begins(number ^ 1)
            self.all_becomes_safe()
        self.writes(number)
        self.adds(number, set(PLACES))
        self.all_becomes_safe()
        self.ends(number, commits)

    def becomes_safe(self, number: int, count: int) -> None:
        log = self.logs[number]
        for _ in range(min(count, len(log.unsafe))):
            log.settle()

    def all_becomes_safe(self) -> None:
        for log in self.logs:
            log.settle_all()

    def fails(self, number: int) -> None:
        """
        A writer is told so, and what it wrote stays all the same.
        """
        log = self.logs[number]
        if log.unsafe:
            log.settle(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "not for sure"))

    def takes_nothing(self, number: int) -> None:
        """
        A log, for a while.
        """
        self.logs[number].error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "not now")

    def all_take_anything(self) -> None:
        for log in self.logs:
            log.error = None

    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    def crashes(self) -> None:
        """
        The process ends, and nobody gets an answer.
        """
        for log in self.logs:
            log.crash(self.random.choice([0, 1, 9]))
        for producer in self.producers:
            if producer.asked:
                producer.asked.cancel()
        self.parts.stop()
        self.broker.state = _opened_again(self.broker.state)
        self.logs[0] = self.broker.state
        self.start()

    def is_latest(self, producer: Producer) -> bool:
        return self.latest[producer.name] == producer.number

    def is_all_safe(self, attempt: Attempt) -> bool:
        for log in self.broker.partitions:
            unsafe = log.entries[len(log.entries) - len(log.unsafe) :]
            if any(isinstance(entry, Data) and entry.attempt is attempt for entry in unsafe):
                return False
        return True

    def ends_well(self) -> None:
        """
        In the end everything is safe, and nothing is open.
        """
        self.all_take_anything()
        for _ in range(20):
            self.all_becomes_safe()
            self.clock.advance(CHECK_S)
        left = Deferred.fromCoroutine(
            self.transactions.listed(Filter(["Ongoing", "PrepareCommit", "PrepareAbort"]), lambda _: True)
        )
        assert left.result == []
        for attempt in self.attempts:
            self._judge(attempt)

    def _judge(self, attempt: Attempt) -> None:
        outcomes = set()
        for log in self.broker.partitions:
            for at, entry in enumerate(log.entries):
                if isinstance(entry, Data) and entry.attempt is attempt:
                    outcomes.add(_outcome(log.entries[at:], attempt.who.producer_id))
        assert None not in outcomes, f"{attempt} is open for ever"
        assert len(outcomes) < 2, f"{attempt} is committed here and aborted there"
        if attempt.acknowledged and outcomes:
            assert outcomes == {attempt.wanted}, f"{attempt} ended otherwise than its producer was told"
        if attempt.wanted is None or not attempt.wanted:
            assert outcomes <= {False}, f"{attempt} is committed, and nobody wanted that"


def _epoch(entries: list[Any], producer_id: int) -> int:
    """
    The newest that a partition knows.
    """
    known = [-1]
    for entry in entries:
        if isinstance(entry, Data) and entry.who.producer_id == producer_id:
            known.append(entry.who.epoch)
        if isinstance(entry, Batch) and entry.header.producer_id == producer_id:
            known.append(entry.header.producer_epoch)
    return max(known)


def _outcome(entries: list[Any], producer_id: int) -> bool | None:
    """
    Whether the first marker commits.
    """
    for entry in entries:
        if isinstance(entry, Batch) and entry.header.producer_id == producer_id:
            marker = read_marker(entry)
            assert marker
            return marker.commits
    return None


def _opened_again(before: SimulatedState) -> SimulatedState:
    found = SimulatedState()
    found.entries, found.epoch, found.is_slow = before.entries, before.epoch + 1, True
    return found


@settings(max_examples=10 * settings().max_examples)
@given(st.randoms(use_true_random=True))
def test_transactions_are_wholly_there_or_wholly_not(random: Random) -> None:
    """
    In all partitions, as their producers were told.
    """
    world = Crashes(random)
    for _ in range(STEPS):
        world.step()
    world.ends_well()
    for failure in (one for producer in world.producers for one in producer.wrong):
        failure.raiseException()
