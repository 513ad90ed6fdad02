"""
A group whose members come, leave, are killed and stand still, at random moments and in an order that follows from a
seed, while records flow into its topics. All that is told is kept for the check.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from time import monotonic, sleep
from types import TracebackType
from typing import Self

from tests.clients.client import PATIENCE_S
from tests.clients.groups.checking import faults
from tests.clients.groups.crew import Crew
from tests.clients.groups.events import Event
from tests.clients.groups.kinds import Kind
from tests.clients.groups.member import Member
from tests.clients.groups.members.telling import Wanted, place
from tests.clients.groups.observer import Observer, described, details
from tests.clients.raw import Raw
from tests.faults.client import Client
from tests.faults.ledger import Ledger
from tests.faults.producing import Writer, all_acknowledged

SESSION_TIMEOUT_MS = 6_000
HEARTBEAT_INTERVAL_MS = 500
SERVER_OPTIONS = (
    *("--group-consumer-session-timeout-ms", str(SESSION_TIMEOUT_MS)),
    *("--group-consumer-heartbeat-interval-ms", str(HEARTBEAT_INTERVAL_MS)),
    *("--group-initial-rebalance-delay-ms", "300"),
)
_SESSION_S = SESSION_TIMEOUT_MS / 1000
_FIND_OUT_S = _SESSION_S  # within which who was shut out hears of it, on a machine that is busy
_RECORD_BYTES = 60
_TOPICS = {"wide": 16, "narrow": 8}
_PAUSES_S = (0.1, 1.2)
_FROZEN_AT_ONCE = 2
_LATE_S = 1  # the expiry of a session, on a machine that is busy
_LIVING_AT_LEAST = 3
_STATIC = 0.2  # of the members
_POLL_S = 0.1
# So that who stands still has mostly something to commit, and that it shows when a partition is given away too early.
_WORK_MS, _HANDOVER_MS = 100, 200


@dataclass(frozen=True)
class Cast:
    """
    Who may be in the group: which clients by which protocols, and how many at a time.
    """

    kinds: Sequence[Kind]
    protocols: Sequence[str]
    size: int

    def choose(self, random: Random) -> tuple[Kind, str]:
        """
        The next one.
        """
        protocol = random.choice(self.protocols)
        return random.choice([kind for kind in self.kinds if protocol in kind.protocols]), protocol


@dataclass
class Report:
    """
    What was done.
    """

    actions: Counter[str] = field(default_factory=Counter)
    settled_s: list[float] = field(default_factory=list)


class UniversalWriter(Writer):
    """
    Whose batches everyone can read: kafkajs can undo one codec only.
    """

    def _config(self) -> dict[str, str | int | bool]:
        return super()._config() | {"compression.type": self._random.choice(["none", "gzip"])}


class Chaos:
    """
    The group, its topics and who writes to them.
    """

    def __init__(self, port: int, group: str, cast: Cast, seed: str) -> None:
        self.events: list[Event] = []
        self.report = Report()
        self._port = port
        self._group = group
        self._cast = cast
        self._random = Random(seed)
        self._partitions = {f"{group}-{name}": count for name, count in _TOPICS.items()}
        places = [(topic, index) for topic, count in self._partitions.items() for index in range(count)]
        self._places = {place(*where) for where in places}
        self._ledger = Ledger()
        bootstrap = f"127.0.0.1:{port}"
        how = Wanted(
            bootstrap,
            group,
            list(self._partitions),
            "",
            SESSION_TIMEOUT_MS,
            HEARTBEAT_INTERVAL_MS,
            work_ms=_WORK_MS,
            handover_ms=_HANDOVER_MS,
        )
        self.crew = Crew(how, self.events.append)
        sizes = dict.fromkeys(places, _RECORD_BYTES)
        self._writer = UniversalWriter(0, bootstrap, self._ledger, sizes, Random(f"{seed} writer"), idempotent=True)
        self.observer = Observer(port, group, self.events.append)
        self._frozen: list[tuple[float, Member]] = []
        self._disturbed = 0.0  # when something was last done that the server may only find out by a session timeout

    def __enter__(self) -> Self:
        with Raw(f"127.0.0.1:{self._port}") as raw:
            for topic, count in self._partitions.items():
                raw.create(topic, count)
        self._writer.start()
        self.observer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._writer.stop()
        self.observer.stop()
        self.crew.__exit__(kind, error, traceback)

    def rage(self, seconds: float) -> None:
        """
        Change the group all the time.
        """
        end = monotonic() + seconds
        while monotonic() < end:
            self._act()
            sleep(self._random.uniform(*_PAUSES_S))  # nobody waits for anything: this is the pace of chaos
        while len(self.crew.living) < _LIVING_AT_LEAST:
            self.start()
        while self._frozen:
            self._thaw()

    @property
    def summary(self) -> str:
        """
        What was done.
        """
        processed = sum(len(found) for member in self.crew.members for found in member.processed.values())
        refused = Counter(refusal.code for member in self.crew.members for refusal in member.refusals)
        return (
            f"{self._group}: {dict(self.report.actions)}; {self._ledger.promises:,} records, processed {processed:,} "
            f"times; {self.observer.asked} looks at what is committed; commits refused: {dict(refused)}; settled in "
            f"{', '.join(f'{seconds:.1f}' for seconds in self.report.settled_s)} s"
        )

    def start(self) -> None:
        """
        One more member.
        """
        kind, protocol = self._cast.choose(self._random)
        instance = f"static-{kind}-{protocol}" if protocol in kind.static and self._random.random() < _STATIC else None
        if instance in {member.how.instance for member in self.crew.members if _keeps_instance(member)}:
            instance = None
        self.crew.start(kind, protocol=protocol, instance=instance)
        self.report.actions["started"] += 1

    def settle(self) -> None:
        """
        Once the group has heard of all that was done to it, it is stable within a session timeout, and each partition
        has an owner.
        """
        with Client(self._port) as client:
            self._until(lambda: self._has_heard(client), "a group of those who live", 2 * PATIENCE_S)
            self.report.settled_s.append(self._until(lambda: self._is_settled(client), "stable", _SESSION_S))

    def settle_again(self) -> None:
        """
        The server has come back: within a session timeout the group is as it was, and all its members commit.
        """
        began = monotonic()
        with Client(self._port) as client:
            self._until(lambda: self._has_heard(client) and self._is_settled(client), "stable", _SESSION_S)
        self.commit_further(_SESSION_S - (monotonic() - began))
        self.report.settled_s.append(monotonic() - began)

    def commit_further(self, patience_s: float = PATIENCE_S) -> None:
        """
        Wait until for each partition more is committed than is now.
        """
        before = dict(self.observer.last)

        def is_further() -> bool:
            now = self.observer.last
            return all(now.get(place, 0) > before.get(place, 0) for place in self._places)

        self._until(is_further, "committed further", patience_s)

    def finish(self) -> list[str]:
        """
        Let no more be written, all be processed and everybody leave; what was wrong since the beginning.
        """
        assert all_acknowledged([self._writer]), self._ledger.missing()
        ends = {place(*stream.place): max(told.values()) + 1 for stream, told in self._ledger.acknowledged.items()}
        self._until(lambda: self.observer.last == ends, f"all committed to {ends}", PATIENCE_S)
        for member in self.crew.living:
            member.ask_to_leave()
        self.crew.wait(lambda: all(member.has_ended for member in self.crew.members), "gone")
        self.observer.stop()
        self._writer.stop()
        deserters = [member for member in self.crew.members if member.has_ended and not member.is_leaving]
        return [
            *(f"{member} ended by itself: {member.report()}" for member in deserters),
            *(f"{what} has failed: {what.failure!r}" for what in (self.observer, self._writer) if what.failure),
            *self._ledger.faults,
            *faults(self.events, ends, _FIND_OUT_S),
        ]

    def _act(self) -> None:
        random, living = self._random, [member for member in self.crew.living if not member.is_frozen]
        if self._frozen and self._frozen[0][0] < monotonic():
            self._thaw()
        choice = random.choices(["start", "leave", "kill", "freeze"], [10, 3, 4, 3])[0]
        if choice == "start" or len(living) < _LIVING_AT_LEAST:
            if len(self.crew.living) < self._cast.size:
                self.start()
        elif choice != "freeze":
            victim = random.choice(living)
            self.report.actions[choice] += 1
            victim.ask_to_leave() if choice == "leave" else victim.kill()
            self._disturbed = monotonic()
        elif len(self._frozen) < _FROZEN_AT_ONCE:
            victim = random.choice(living)
            self.report.actions[choice] += 1
            victim.freeze()
            self._frozen.append((monotonic() + random.uniform(0.5, 1.8) * _SESSION_S, victim))

    def _thaw(self) -> None:
        self._frozen.pop(0)[1].thaw()
        self._disturbed = monotonic()

    def _has_heard(self, client: Client) -> bool:
        # As many as live may be in it before: some who are dead for some who have not yet joined.
        if monotonic() < self._disturbed + _SESSION_S + _LATE_S:
            return False
        return described(client, self._group).members == len(self.crew.living)

    def _is_settled(self, client: Client) -> bool:
        return described(client, self._group).state == "Stable" and self.crew.shares(self._places)

    def _until(self, holds: Callable[[], bool], what: str, patience_s: float) -> float:
        """
        Wait until that holds; how long it took.
        """
        began = monotonic()
        while not holds():
            if monotonic() - began > patience_s:
                with Client(self._port) as client:
                    group = details(client, self._group)
                told = "\n".join(member.report() for member in self.crew.living)
                raise AssertionError(f"not {what} within {patience_s:.1f} s: {group}, and the living are\n{told}")
            sleep(_POLL_S)
        return monotonic() - began


def _keeps_instance(member: Member) -> bool:
    """
    Whether nobody else may have its instance id. The consumer protocol gives it to another one only if it was released.
    """
    return not member.has_ended or (member.was_killed and member.how.protocol == "consumer")
