"""
A working group whose members join, leave, are killed and are frozen at random moments, in an order that follows from a
seed.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from time import monotonic, sleep
from typing import Self

from tests.clients.client import PATIENCE_S
from tests.clients.groups.kinds import CONFLUENT, KAFKA_PYTHON, Kind
from tests.clients.groups.member import Member
from tests.clients.groups.members.reports import Wanted
from tests.clients.groups.observer import described
from tests.clients.groups.working_group import WorkingGroup
from tests.faults.client import Client

SESSION_TIMEOUT_MS = 6_000
HEARTBEAT_INTERVAL_MS = 500
SERVER_OPTIONS = (
    *("--group-consumer-session-timeout-ms", str(SESSION_TIMEOUT_MS)),
    *("--group-consumer-heartbeat-interval-ms", str(HEARTBEAT_INTERVAL_MS)),
    *("--group-initial-rebalance-delay-ms", "300"),
)
_SESSION_S = SESSION_TIMEOUT_MS / 1000
FIND_OUT_S = _SESSION_S  # how long a fenced member may take to learn of it on a busy machine
_TOPICS = {"wide": 16, "narrow": 8}
_PAUSES_S = (0.1, 1.2)
_FROZEN_AT_ONCE = 2
_LATE_S = 1  # how long the expiry of a session may take on a busy machine
_LIVING_AT_LEAST = 3
_STATIC = 0.2  # share of the members
# Long enough that a frozen member mostly has something to commit, and that a partition given away too early shows.
_WORK_MS, _HANDOVER_MS = 100, 200


@dataclass(frozen=True)
class Cast:
    """
    The possible members: which clients by which protocols, and how many at a time.
    """

    kinds: Sequence[Kind]
    protocols: Sequence[str]
    size: int

    def choose(self, random: Random) -> tuple[Kind, str]:
        protocol = random.choice(self.protocols)
        return random.choice([kind for kind in self.kinds if protocol in kind.protocols]), protocol

    def bears_freezing(self, member: Member) -> bool:
        """
        Whether members of this client and protocol may be frozen. Two kinds do not bear it, whatever the server.
        kafka-python 3.0.12, if frozen during a rebalance, returns to its old position when it gets the same partitions
        again, whatever others have committed of them meanwhile. And if the frozen member was the last to speak the
        consumer protocol, the group is classic when it continues, and its heartbeat is answered with
        GROUP_ID_NOT_FOUND, as by Kafka: librdkafka 2.16 gives up for good then.
        """
        is_to_migrate = len(self.protocols) > 1 and member.how.protocol == "consumer"
        return member.kind != KAFKA_PYTHON and not (member.kind == CONFLUENT and is_to_migrate)


@dataclass
class Report:
    actions: Counter[str] = field(default_factory=Counter)
    settled_s: list[float] = field(default_factory=list)


class Chaos(WorkingGroup):
    """
    A group, and what is done to its members.
    """

    def __init__(self, port: int, group: str, cast: Cast, seed: str) -> None:
        self.report = Report()
        self._cast = cast
        self._random = Random(seed)
        self._frozen: list[tuple[float, Member]] = []
        self._disturbed = 0.0  # the last action that the server may notice only after a session timeout
        partitions = {f"{group}-{name}": count for name, count in _TOPICS.items()}
        how = Wanted(
            f"127.0.0.1:{port}",
            group,
            list(partitions),
            "",
            SESSION_TIMEOUT_MS,
            HEARTBEAT_INTERVAL_MS,
            work_ms=_WORK_MS,
            handover_ms=_HANDOVER_MS,
        )
        super().__init__(port, how, partitions, Random(f"{seed} writer"))

    def __enter__(self) -> Self:
        super().__enter__()
        self.write()
        return self

    def rage(self, seconds: float) -> None:
        """
        Change the group all the time.
        """
        end = monotonic() + seconds
        while monotonic() < end:
            self._act()
            sleep(self._random.uniform(*_PAUSES_S))  # the pace of chaos: no action waits for another's effect
        while len(self.crew.living) < _LIVING_AT_LEAST:
            self.start()
        while self._frozen:
            self._thaw()

    @property
    def summary(self) -> str:
        settled = ", ".join(f"{seconds:.1f}" for seconds in self.report.settled_s)
        return f"{super().summary}; {dict(self.report.actions)}; settled in {settled} s"

    def start(self) -> None:
        kind, protocol = self._cast.choose(self._random)
        instance = f"static-{kind}-{protocol}" if protocol in kind.static and self._random.random() < _STATIC else None
        if instance in {member.how.instance for member in self.crew.members if _keeps_instance(member)}:
            instance = None
        self.crew.start(kind, protocol=protocol, instance=instance)
        self.report.actions["started"] += 1

    def settle(self) -> None:
        """
        Within a session timeout after it has heard of all actions, the group is stable, and each partition has an
        owner.
        """
        with Client(self._port) as client:
            self.until(lambda: self._has_heard(client), "a group of those who live", 2 * PATIENCE_S)
            self.report.settled_s.append(self.until(lambda: self._is_settled(client), "stable", _SESSION_S))

    def settle_again(self, sessions: int = 1) -> None:
        """
        Wait after a restart of the server: within this many session timeouts the group has its members, and all of
        them commit.
        """
        began, patience_s = monotonic(), sessions * _SESSION_S
        with Client(self._port) as client:
            self.until(lambda: self._has_heard(client) and self._is_settled(client), "stable", patience_s)
        self.commit_further(patience_s - (monotonic() - began))
        self.report.settled_s.append(monotonic() - began)

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
            if self._cast.bears_freezing(victim):
                self.report.actions[choice] += 1
                victim.freeze()
                self._frozen.append((monotonic() + random.uniform(0.5, 1.8) * _SESSION_S, victim))

    def _thaw(self) -> None:
        self._frozen.pop(0)[1].thaw()
        self._disturbed = monotonic()

    def _has_heard(self, client: Client) -> bool:
        # The group may have as many members as live: some dead ones in place of some that have not joined yet.
        if monotonic() < self._disturbed + _SESSION_S + _LATE_S:
            return False
        return described(client, self._group).members == len(self.crew.living)

    def _is_settled(self, client: Client) -> bool:
        return described(client, self._group).state == "Stable" and self.crew.shares(self.places)


def _keeps_instance(member: Member) -> bool:
    """
    Whether its instance id is not free for another member. The consumer protocol gives it away only after it was
    released.
    """
    return not member.has_ended or (member.was_killed and member.how.protocol == "consumer")
