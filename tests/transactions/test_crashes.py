"""
Transactions are committed in all of their partitions or in none, whatever machine, logs and clients do.

Some producers write to some partitions in transactions; the gateway stops at any moment, and uncommitted entries may
be lost or kept. In the end each transaction has ended alike in all its partitions, as its producer was answered if it
got an answer, and a replaced producer has written nothing since.
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
from kgateway.topic_partition import TopicPartition
from kgateway.transactions.coordinator import TransactionCoordinator
from kgateway.transactions.records import encoded
from kgateway.transactions.state import LAST_EPOCH, ProducerIdAndEpoch
from kgateway.transactions.transaction_filter import TransactionFilter
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import START_MS
from tests.transactions.simulated_broker import SimulatedBroker, SimulatedStateLog
from tests.transactions.transaction_world import ADD_VERSION, EACH, END_VERSION, OLD, TIMEOUT_MS, transaction

NAMES = ["a", "b"]
PLACES = [TopicPartition("t", index) for index in range(3)]
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
    A transaction as its producer knows it.
    """

    who: ProducerIdAndEpoch
    partitions: set[TopicPartition] = field(default_factory=set)  # added partitions
    wanted: bool | None = None  # the requested outcome, once decided
    acknowledged: bool = False  # the answered outcome, if any


@dataclass(frozen=True)
class Data:
    """
    A batch of records of a transaction.
    """

    attempt: Attempt
    who: ProducerIdAndEpoch


class Producer:
    """
    A client with one request in flight at most.
    """

    def __init__(self, name: str, spoken: int, number: int) -> None:
        self.name = name
        self.spoken = spoken
        self.number = number
        self.who: ProducerIdAndEpoch | None = None  # None before it has begun, and after it was fenced
        self.attempt: Attempt | None = None
        self.asked: Deferred[Any] | None = None
        self.wrong: list[Failure] = []  # violated invariants

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
        self.latest: dict[str, int] = {}  # name -> number of the latest producer
        for log in self.logs:
            log.is_slow = True
        self.broker.state.entries.append(encoded(transaction(epoch=LAST_EPOCH - 3)))
        self.start()

    def start(self) -> None:
        parts = GatewayParts(cast(IBroker, self.broker), Settings(), AllowAll(), self.clock, self.now_ms)
        self.parts, self.transactions = parts, parts.service(TransactionCoordinator)
        self.clock.pump([0] * 5)

    def now_ms(self) -> int:
        return START_MS + round(self.clock.seconds() * 1000)

    def step(self) -> None:
        random = self.random
        number, commits, seconds = random.randrange(4), random.random() < 0.6, random.choice([0, 1, CHECK_S, 70])
        partitions = set(random.sample(PLACES, random.randint(1, 3)))
        steps: list[Callable[[], None]] = [
            lambda: self.begins(number),
            lambda: self.adds(number, partitions),
            lambda: self.writes(number),
            lambda: self.ends(number, commits),
            lambda: self.transacts(number, partitions, commits),
            lambda: self.is_replaced(number, partitions, commits),
            lambda: self.becomes_safe(number, random.randint(1, 4)),
            self.all_becomes_safe,
            lambda: self.fails(number),
            lambda: self.takes_nothing(number),
            self.all_take_anything,
            lambda: self.time_passes(seconds),
            self.crash,
        ]
        random.choices(steps, [2, 2, 2, 2, 6, 2, 6, 2, 1, 1, 3, 3, 4])[0]()

    def begins(self, number: int) -> None:
        producer = self.producers[number]
        if not producer.is_idle or producer.who:
            return

        def begun(who: ProducerIdAndEpoch) -> None:
            self.latest[producer.name] = producer.number
            producer.who, producer.attempt = who, None

        producer.ask(self.transactions.init_producer(producer.name, TIMEOUT_MS, None, 5), begun)

    def adds(self, number: int, partitions: set[TopicPartition]) -> None:
        producer = self.producers[number]
        if not (producer.is_idle and producer.who) or (producer.attempt and producer.attempt.wanted is not None):
            return
        if producer.attempt is None:
            producer.attempt = Attempt(producer.who)
            self.attempts.append(producer.attempt)
        attempt = producer.attempt

        def added(_: None) -> None:
            assert self.is_latest(producer), "who was replaced may add nothing"
            attempt.partitions |= partitions

        version = ADD_VERSION[producer.spoken]
        producer.ask(self.transactions.add_partitions(producer.name, producer.who, partitions, version), added)

    def writes(self, number: int) -> None:
        """
        Write to all added partitions, as far as they accept it.
        """
        producer = self.producers[number]
        attempt = producer.attempt
        if not (attempt and producer.is_idle) or attempt.wanted is not None:
            return
        for place in attempt.partitions:
            log = self.broker.partitions[place.index]
            if not log.error and attempt.who.epoch >= _epoch(log.entries, attempt.who.producer_id):
                committed = log.add(Data(attempt, attempt.who)).committed
                if committed:
                    committed.addErrback(lambda _: None)

    def ends(self, number: int, commits: bool) -> None:
        """
        End the transaction once its records are committed, or repeat the request.
        """
        producer = self.producers[number]
        attempt, who = producer.attempt, producer.who
        if not (attempt and who and producer.is_idle) or not (attempt.partitions or producer.spoken == EACH):
            return
        if attempt.wanted is None:
            attempt.wanted = commits and self.is_all_safe(attempt)

        def ended(after: ProducerIdAndEpoch) -> None:
            assert self.is_latest(producer), "who was replaced may end nothing"
            attempt.acknowledged = True
            producer.who, producer.attempt = after, None

        version = END_VERSION[producer.spoken]
        producer.ask(self.transactions.end(producer.name, who, attempt.wanted, version), ended)

    def transacts(self, number: int, partitions: set[TopicPartition], commits: bool) -> None:
        """
        Run a transaction up to its requested end.
        """
        for _ in range(2):  # the first request may only fence the predecessor
            self.begins(number)
            self.all_becomes_safe()
        self.adds(number, partitions)
        self.all_becomes_safe()
        self.writes(number)
        self.all_becomes_safe()
        self.ends(number, commits)

    def is_replaced(self, number: int, partitions: set[TopicPartition], commits: bool) -> None:
        """
        Replace the producer in the middle of a transaction, without telling it.
        """
        twin = self.producers[number ^ 1]
        self.transacts(number, partitions, commits)
        self.all_becomes_safe()
        self.adds(number, partitions)
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
        for _ in range(min(count, len(log.uncommitted))):
            log.settle()

    def all_becomes_safe(self) -> None:
        for log in self.logs:
            log.settle_all()

    def fails(self, number: int) -> None:
        """
        Fail a write whose records stay in the log.
        """
        log = self.logs[number]
        if log.uncommitted:
            log.settle(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "not for sure"))

    def takes_nothing(self, number: int) -> None:
        """
        Have a log refuse writes for a while.
        """
        self.logs[number].error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "not now")

    def all_take_anything(self) -> None:
        for log in self.logs:
            log.error = None

    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    def crash(self) -> None:
        """
        End the process; no client gets an answer.
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
            uncommitted = log.entries[len(log.entries) - len(log.uncommitted) :]
            if any(isinstance(entry, Data) and entry.attempt is attempt for entry in uncommitted):
                return False
        return True

    def check_the_end(self) -> None:
        """
        Commit everything, and check that nothing is open.
        """
        self.all_take_anything()
        for _ in range(20):
            self.all_becomes_safe()
            self.clock.advance(CHECK_S)
        left = Deferred.fromCoroutine(
            self.transactions.list(TransactionFilter(["Ongoing", "PrepareCommit", "PrepareAbort"]), lambda _: True)
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
    The newest epoch in a partition.
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


def _opened_again(before: SimulatedStateLog) -> SimulatedStateLog:
    found = SimulatedStateLog()
    found.entries, found.epoch, found.is_slow = before.entries, before.epoch + 1, True
    return found


@settings(max_examples=10 * settings().max_examples)
@given(st.randoms(use_true_random=True))
def test_transactions_are_atomic(random: Random) -> None:
    """
    Every transaction ends alike in all partitions, as its producer was answered.
    """
    world = Crashes(random)
    for _ in range(STEPS):
        world.step()
    world.check_the_end()
    for failure in (one for producer in world.producers for one in producer.wrong):
        failure.raiseException()
