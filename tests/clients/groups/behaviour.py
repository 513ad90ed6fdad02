"""
What the members of a group can do with a gateway, whatever their client: the tests that each client passes, by each
protocol it speaks.

The tests of a client are a class that names it:

    class TestMyGroups(Grouping):
        kind = MINE
"""

from collections.abc import Callable, Iterator, Set
from typing import ClassVar

import pytest

from kgateway.testing.kafka import Kafka
from tests.clients.behaviour import rows
from tests.clients.client import PATIENCE_S
from tests.clients.groups.chaos import HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS
from tests.clients.groups.crew import Crew
from tests.clients.groups.group_check import SHUT_OUT
from tests.clients.groups.kinds import Kind
from tests.clients.groups.member import Member
from tests.clients.groups.members.reports import Wanted, place
from tests.clients.groups.observer import committed, described
from tests.clients.raw import Raw
from tests.clients.seaweedmq import owner
from tests.faults.client import Client

_PARTITIONS = 4
# A member frozen during a rebalance is fenced only when the rebalance is over.
_LONG_WORK_MS = SESSION_TIMEOUT_MS - 2_000
_LIBRARY = -1  # and below: the client knows by itself, or does not report the code


class Grouping:
    kind: ClassVar[Kind]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """
        Each test runs with each protocol.
        """
        protocols = self.kind.static if "start_static" in metafunc.fixturenames else self.kind.protocols
        metafunc.parametrize("protocol", sorted(protocols))

    @pytest.fixture
    def subscribed(self, group_kafka: Kafka, name: str) -> Iterator[Raw]:
        """
        The records in the topic.
        """
        with Raw(owner(group_kafka.bootstrap), group_kafka.bootstrap) as raw:
            raw.create(name, _PARTITIONS)
            yield raw

    @pytest.fixture
    def crew(self, group_kafka: Kafka, subscribed: Raw, name: str, protocol: str) -> Iterator[Crew]:
        how = Wanted(group_kafka.bootstrap, name, [name], protocol, SESSION_TIMEOUT_MS, HEARTBEAT_INTERVAL_MS)
        with Crew(how) as crew:
            yield crew

    @pytest.fixture
    def client(self, group_kafka: Kafka) -> Iterator[Client]:
        with Client(group_kafka.port) as client:
            yield client

    def test_commits_are_kept(self, crew: Crew, subscribed: Raw, name: str, client: Client) -> None:
        """
        A member owns all partitions, and its commits are stored; after it has left, the group is empty.
        """
        append(subscribed, name, 10)
        member = crew.start(self.kind)
        crew.wait(lambda: dict(member.committed) == ends(name, 10), "all committed")
        assert member.owned == set(ends(name, 0))
        assert committed(client, name) == ends(name, 10)
        member.leave()
        crew.wait(lambda: described(client, name).state == "Empty", "empty")
        assert described(client, name).members == 0
        assert not member.refusals

    def test_members_share(self, crew: Crew, subscribed: Raw, name: str, client: Client) -> None:
        """
        A second member gets half of the partitions, and all of them after the first has left; each record is
        processed.
        """
        first = crew.start(self.kind)
        crew.wait(lambda: crew.shares(ends(name, 0)), "one owner")
        second = crew.start(self.kind)
        crew.wait(lambda: crew.shares(ends(name, 0)) and len(second.owned) == len(first.owned), "two owners")
        append(subscribed, name, 10)
        crew.wait(lambda: crew.committed == ends(name, 10), "all committed")
        assert described(client, name).members == 2
        first.leave()
        crew.wait(lambda: crew.shares(ends(name, 0)), "one owner again")
        append(subscribed, name, 5)
        crew.wait(lambda: crew.committed == ends(name, 15), "all committed")

    def test_a_group_resumes(self, crew: Crew, subscribed: Raw, name: str) -> None:
        """
        A member that joins after all have left continues behind the committed offsets.
        """
        append(subscribed, name, 10)
        first = crew.start(self.kind)
        crew.wait(lambda: crew.committed == ends(name, 10), "all committed")
        first.leave()
        append(subscribed, name, 5)
        second = crew.start(self.kind)
        crew.wait(lambda: crew.committed == ends(name, 15), "all committed")
        assert second.processed == {where: [*range(10, 15)] for where in ends(name, 0)}

    def test_a_member_is_killed(self, crew: Crew, subscribed: Raw, name: str, client: Client) -> None:
        """
        After a killed member's session timeout another member owns its partitions, and continues behind its commits.
        """
        first, second = crew.start(self.kind), crew.start(self.kind)
        crew.wait(lambda: crew.shares(ends(name, 0)) and len(second.owned) == len(first.owned), "two owners")
        append(subscribed, name, 10)
        crew.wait(lambda: crew.committed == ends(name, 10), "all committed")
        taken_over = set(first.owned)
        first.kill()
        append(subscribed, name, 5)
        crew.wait(lambda: crew.shares(ends(name, 0)), "one owner")
        crew.wait(lambda: crew.committed == ends(name, 15), "all committed")
        assert described(client, name).members == 1
        assert all(second.processed[where] == [*range(10, 15)] for where in taken_over)

    def test_a_frozen_member_is_fenced(self, crew: Crew, subscribed: Raw, name: str, client: Client) -> None:
        """
        A member that is frozen for longer than its session timeout loses its partitions; its next commit is refused,
        unless it has joined again as a new member before.
        """
        first, second = crew.start(self.kind, work_ms=_LONG_WORK_MS), crew.start(self.kind)
        crew.wait(lambda: crew.shares(ends(name, 0)) and len(second.owned) == len(first.owned), "two owners")
        append(subscribed, name, 10, last=first.owned)
        crew.wait(lambda: first.is_at_work, "at work")
        first.freeze()
        accepted, before = dict(first.committed), first.rebalances
        crew.wait(lambda: crew.committed == ends(name, 10), "taken over")
        first.thaw()
        crew.wait(lambda: bool(first.refusals) or first.committed != accepted, "answered")
        if first.refusals:
            assert first.committed == accepted
            assert first.refusals[0].code in SHUT_OUT or first.refusals[0].code <= _LIBRARY
        else:  # it learned of it from a heartbeat, and was back before it had an offset to commit
            assert first.committed_after > before
        crew.wait(lambda: first.rebalances > before, "back")
        crew.wait(lambda: crew.shares(ends(name, 0)) and len(second.owned) == len(first.owned), "two owners again")
        assert committed(client, name) == ends(name, 10)


class StaticGrouping(Grouping):
    """
    Tests of clients whose members can have instance ids.
    """

    @pytest.fixture
    def start_static(self, crew: Crew) -> Callable[[str], Member]:
        """
        Start a member with an instance id, and by the classic protocol a session that outlasts any load of the
        machine.
        """
        return lambda instance: crew.start(self.kind, instance=instance, session_timeout_ms=PATIENCE_S * 1000)

    def test_a_static_member_returns(
        self,
        crew: Crew,
        start_static: Callable[[str], Member],
        subscribed: Raw,
        name: str,
        client: Client,
        protocol: str,
    ) -> None:
        """
        A member that restarts with its instance id within the session timeout owns its partitions again, and the other
        member does not notice.
        """
        first, other = start_static("first"), start_static("other")
        crew.wait(lambda: crew.shares(ends(name, 0)) and len(other.owned) == len(first.owned), "two owners")
        append(subscribed, name, 10)
        crew.wait(lambda: crew.committed == ends(name, 10), "all committed")
        owned, rebalances = set(first.owned), other.rebalances
        if protocol == "consumer":
            first.leave()  # or no other member may use its id until its session is over
        else:
            first.kill()
        again = start_static("first")
        crew.wait(lambda: again.owned == owned, "back")
        append(subscribed, name, 5)
        crew.wait(lambda: crew.committed == ends(name, 15), "all committed")
        assert (other.rebalances, len(other.owned)) == (rebalances, 2)
        assert again.processed == {where: [*range(10, 15)] for where in owned}
        assert described(client, name).members == 2


def ends(topic: str, end: int) -> dict[str, int]:
    """
    The same end offset for each partition.
    """
    return {place(topic, index): end for index in range(_PARTITIONS)}


def append(raw: Raw, topic: str, count: int, last: Set[str] = frozenset()) -> None:
    """
    Append this many records to each partition, and more to these once all others have theirs.
    """
    for where in sorted(ends(topic, 0), key=last.__contains__):
        raw.append(topic, rows(count), int(where.rpartition(":")[2]))
