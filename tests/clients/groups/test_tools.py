"""
Kafka's own kafka-consumer-groups, kafka-groups and kafka-configs.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgateway.messages.offset_commit import OffsetCommitRequest
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode
from tests.clients.behaviour import rows
from tests.clients.groups.chaos import HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS
from tests.clients.groups.crew import Crew
from tests.clients.groups.events import Place
from tests.clients.groups.kinds import CONFLUENT
from tests.clients.groups.members.reports import Wanted, place
from tests.clients.groups.observer import committed, described
from tests.clients.java_tools import run, tool
from tests.clients.raw import Raw
from tests.faults.client import Client

_COMMAND = "consumer.group.ConsumerGroupCommand"
_RECORDS, _PARTITIONS = 10, 2
_COMMIT_VERSION = 8


@pytest.fixture(scope="module")
def topics(group_kafka: Kafka) -> tuple[str, str]:
    """
    Two topics of two partitions with ten records each, a second apart.
    """
    names = ("tools-a", "tools-b")
    with Raw(group_kafka.bootstrap) as raw:
        for name in names:
            raw.create(name, _PARTITIONS)
            for index in range(_PARTITIONS):
                raw.append(name, rows(_RECORDS), index)
    return names


@pytest.fixture(scope="module")
def places(topics: tuple[str, str]) -> set[Place]:
    return {place(topic, index) for topic in topics for index in range(_PARTITIONS)}


def tell(kafka: Kafka, *arguments: str) -> str:
    return tool(_COMMAND, kafka, *arguments)


def table(text: str) -> list[tuple[str, ...]]:
    """
    The rows of tables, without their headings.
    """
    return [tuple(line.split()) for line in text.splitlines() if line and not line.startswith(("GROUP ", "TOPIC "))]


@pytest.fixture(scope="module")
def classic(group_kafka: Kafka, topics: tuple[str, str], places: set[Place]) -> Iterator[Crew]:
    """
    A classic group of two members, one of them static.
    """
    how = Wanted(group_kafka.bootstrap, "classic", [*topics], "eager", SESSION_TIMEOUT_MS, HEARTBEAT_INTERVAL_MS)
    with Crew(how) as crew:
        crew.start(CONFLUENT)
        crew.start(CONFLUENT, instance="steady")
        crew.wait(lambda: crew.shares(places) and len(crew.committed) == len(places), "all committed")
        yield crew


@pytest.fixture(scope="module")
def consumer(group_kafka: Kafka, topics: tuple[str, str], places: set[Place]) -> Iterator[Crew]:
    """
    A consumer group with one member and one topic.
    """
    how = Wanted(group_kafka.bootstrap, "consumer", [topics[0]], "consumer", 0, 0)
    with Crew(how) as crew:
        crew.start(CONFLUENT)
        crew.wait(lambda: len(crew.committed) == _PARTITIONS, "all committed")
        yield crew


class TestWithMembers:
    """
    The tools describe a working group of each protocol.
    """

    def test_list(self, group_kafka: Kafka, classic: Crew, consumer: Crew) -> None:
        """
        Groups are listed, by state and by type too.
        """
        assert {"classic", "consumer"} <= {*tell(group_kafka, "--list").split()}
        states = table(tell(group_kafka, "--list", "--state"))
        assert {("classic", "Stable"), ("consumer", "Stable")} <= {*states}
        assert "classic" not in tell(group_kafka, "--list", "--state", "empty")
        types = table(tell(group_kafka, "--list", "--type"))
        assert {("classic", "Classic"), ("consumer", "Consumer")} <= {*types}
        only = table(tell(group_kafka, "--list", "--type", "consumer"))
        assert ("consumer", "Consumer") in only
        assert {kind for _, kind in only} == {"Consumer"}

    def test_groups(self, group_kafka: Kafka, classic: Crew, consumer: Crew) -> None:
        """
        kafka-groups lists them, with their protocols.
        """
        listed = {*table(tool("GroupsCommand", group_kafka, "--list"))}
        assert {("classic", "Classic", "consumer"), ("consumer", "Consumer", "consumer")} <= listed
        only = table(tool("GroupsCommand", group_kafka, "--list", "--group-type", "consumer"))
        assert ("consumer", "Consumer", "consumer") in only
        assert {kind for _, kind, _ in only} == {"Consumer"}
        assert not table(tool("GroupsCommand", group_kafka, "--list", "--share"))

    def test_offsets(self, group_kafka: Kafka, classic: Crew, consumer: Crew, topics: tuple[str, str]) -> None:
        """
        Each partition is described with its offset, its lag and its owner.
        """
        described = table(tell(group_kafka, "--describe", "--all-groups"))
        offsets = {(group, place(topic, int(index))): rest for group, topic, index, *rest in described}
        for crew, group in ((classic, "classic"), (consumer, "consumer")):
            owned = {where for member in crew.members for where in member.owned}
            assert {where for of, where in offsets if of == group} == owned
            for where in owned:
                current, end, lag, member, host, client = offsets[group, where]
                assert (current, end, lag, host, client) == ("10", "10", "0", "/127.0.0.1", "rdkafka")
                assert member != "-"

    def test_members(self, group_kafka: Kafka, classic: Crew, consumer: Crew, topics: tuple[str, str]) -> None:
        """
        Members are described with what they own, and in the consumer protocol with what they are to own.
        """
        rows = table(tell(group_kafka, "--describe", "--group", "classic", "--members", "--verbose"))
        assert sorted(len(row) for row in rows) == [9, 10]  # one has an instance id
        (steady,) = [row for row in rows if row[2] == "steady"]
        assert sorted(row[-3] for row in rows) == [f"{topics[0]}:{i};{topics[1]}:{i}" for i in range(_PARTITIONS)]
        assert steady[1].startswith("steady-")
        (row,) = table(tell(group_kafka, "--describe", "--group", "consumer", "--members", "--verbose"))
        epoch, owned = row[5], f"{topics[0]}:0,1"
        assert row[4:] == ("2", epoch, owned, epoch, owned)
        assert int(epoch) > 0

    def test_state(self, group_kafka: Kafka, classic: Crew, consumer: Crew) -> None:
        """
        The state of a group is described, with its coordinator and its assignor.
        """
        coordinator = (group_kafka.bootstrap, "(1)")
        told = table(tell(group_kafka, "--describe", "--group", "classic", "--state"))
        assert told == [("classic", *coordinator, "range", "Stable", "2")]
        (row,) = table(tell(group_kafka, "--describe", "--group", "consumer", "--state", "--verbose"))
        epoch = row[5]
        assert row == ("consumer", *coordinator, "uniform", "Stable", epoch, epoch, "1")

    def test_changes_are_refused(
        self, group_kafka: Kafka, classic: Crew, consumer: Crew, topics: tuple[str, str]
    ) -> None:
        """
        As long as there are members, neither the group nor its offsets can be changed.
        """
        refused = tell(group_kafka, "--delete", "--group", "classic", "--group", "consumer")
        assert refused.count("GroupNotEmptyException") == 2
        for group in ("classic", "consumer"):
            refused = tell(group_kafka, "--delete-offsets", "--group", group, "--topic", topics[0])
            assert refused.count("GroupSubscribedToTopicException") == _PARTITIONS
        command = ("--reset-offsets", "--group", "classic", "--all-topics", "--to-earliest", "--execute")
        assert "can only be reset if the group 'classic' is inactive" in tell(group_kafka, *command)
        with Client(group_kafka.port) as client:
            assert described(client, "classic").members == 2
            assert committed(client, "consumer") == dict.fromkeys([f"{topics[0]}:0", f"{topics[0]}:1"], _RECORDS)


@pytest.fixture
def client(group_kafka: Kafka) -> Iterator[Client]:
    """
    A client that commits and reads offsets.
    """
    with Client(group_kafka.port) as client:
        yield client


@pytest.fixture
def group(client: Client, places: set[Place], name: str) -> str:
    """
    A group without members that has committed offset 5 in each partition.
    """
    topics = [
        OffsetCommitRequest.Topic(
            name=topic,
            partitions=[
                OffsetCommitRequest.Topic.Partition(partition_index=index, committed_offset=5, committed_metadata="")
                for index in range(_PARTITIONS)
            ],
        )
        for topic in sorted({where.rpartition(":")[0] for where in places})
    ]
    request = OffsetCommitRequest(group_id=name, topics=topics)
    told = {int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)}
    while told == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}:  # nobody has asked for a group of this shard before
        answer = client.ask(request, _COMMIT_VERSION)
        told = {partition.error_code for topic in answer.topics for partition in topic.partitions}
    assert told == {ErrorCode.NONE}
    return name


class TestAtRest:
    @pytest.mark.parametrize(
        ("how", "offset"),
        [
            (["--to-earliest"], 0),
            (["--to-latest"], 10),
            (["--to-offset", "3"], 3),
            (["--to-offset", "30"], 10),  # the end is the limit
            (["--to-current"], 5),
            (["--shift-by", "-2"], 3),
            (["--shift-by", "4"], 9),
            (["--to-datetime", "2023-11-14T22:13:24.000"], 4),
            (["--by-duration", "PT1H"], 10),  # no record is that young
            (["--by-duration", "P10000D"], 0),
        ],
        ids=repr,
    )
    def test_reset(self, group_kafka: Kafka, client: Client, group: str, how: list[str], offset: int) -> None:
        """
        Offsets of some partitions are reset; a dry run only shows the new ones.
        """
        command = ("--reset-offsets", "--group", group, "--topic", "tools-a:1", "--topic", "tools-b", *how)
        rows = {(group, "tools-a", "1"), (group, "tools-b", "0"), (group, "tools-b", "1")}
        before = committed(client, group)
        told = tell(group_kafka, *command, "--dry-run")
        assert {(*row, str(offset)) for row in rows} == {row for row in table(told) if row[0] == group}
        assert committed(client, group) == before
        tell(group_kafka, *command, "--execute")
        assert committed(client, group) == {place(topic, int(i)): offset for _, topic, i in rows} | {"tools-a:0": 5}

    def test_export_and_import(self, group_kafka: Kafka, client: Client, group: str, tmp_path: Path) -> None:
        """
        An exported file resets the offsets to what they were.
        """
        of_group = ("--reset-offsets", "--group", group)
        exported = tell(group_kafka, *of_group, "--all-topics", "--to-current", "--export")
        assert sorted(exported.split()) == ["tools-a,0,5", "tools-a,1,5", "tools-b,0,5", "tools-b,1,5"]
        before = committed(client, group)
        tell(group_kafka, *of_group, "--all-topics", "--to-latest", "--execute")
        assert committed(client, group) != before
        file = tmp_path / "offsets.csv"
        file.write_text(exported)
        tell(group_kafka, *of_group, "--from-file", str(file), "--execute")
        assert committed(client, group) == before

    def test_delete_offsets(self, group_kafka: Kafka, client: Client, group: str) -> None:
        """
        The offsets of a partition or of a topic are deleted.
        """
        told = tell(group_kafka, "--delete-offsets", "--group", group, "--topic", "tools-a:1", "--topic", "tools-b")
        assert told.count("Successful") == 1 + _PARTITIONS
        assert committed(client, group) == {"tools-a:0": 5}

    def test_describe(self, group_kafka: Kafka, group: str) -> None:
        """
        The partitions of the group have a lag, and no owner.
        """
        rows = table(tell(group_kafka, "--describe", "--group", group, "--offsets"))
        assert (group, "tools-a", "0", "5", "10", "5", "-", "-", "-") in rows
        assert table(tell(group_kafka, "--describe", "--group", group, "--state"))[0][-2:] == ("Empty", "0")
        assert not table(tell(group_kafka, "--describe", "--group", group, "--members"))

    def test_delete(self, group_kafka: Kafka, group: str) -> None:
        """
        The group is deleted and no longer listed; a missing group cannot be deleted.
        """
        assert "was successful" in tell(group_kafka, "--delete", "--group", group)
        assert group not in tell(group_kafka, "--list").split()
        assert "GroupIdNotFoundException" in tell(group_kafka, "--delete", "--group", group)


def configure(kafka: Kafka, *arguments: str, fails: bool = False) -> str:
    """
    Run kafka-configs for a group.
    """
    of_groups = ("--entity-type", "groups", *arguments)
    return tool("ConfigCommand", kafka, *of_groups, package="kafka.admin", fails=fails)


class TestConfigs:
    """
    A group may have configs before it exists.
    """

    def test_set_and_delete(self, group_kafka: Kafka, name: str) -> None:
        """
        Configs are set, deleted, and described with their defaults; groups with configs are listed.
        """
        group = ("--entity-name", name)
        session, assignment = "consumer.session.timeout.ms", "consumer.assignment.interval.ms"
        told = configure(group_kafka, *group, "--alter", "--add-config", f"{session}=60000,{assignment}=2000")
        assert f"Completed updating config for group {name}." in told
        described = configure(group_kafka, *group, "--describe")
        synonyms = f"{{DYNAMIC_GROUP_CONFIG:{assignment}=2000, DEFAULT_CONFIG:group.{assignment}=1000}}"
        assert f"{assignment}=2000 sensitive=false synonyms={synonyms}" in described
        assert f"{session}=60000 " in described
        assert "consumer.heartbeat.interval.ms" not in described
        everything = configure(group_kafka, "--describe")
        assert f"Dynamic configs for group {name} are:" in everything
        assert f"{session}=60000 " in everything
        configure(group_kafka, *group, "--alter", "--delete-config", session)
        described = configure(group_kafka, *group, "--describe", "--all")
        stands = f"STATIC_BROKER_CONFIG:group.{session}={SESSION_TIMEOUT_MS}, DEFAULT_CONFIG:group.{session}=45000"
        assert f"{session}={SESSION_TIMEOUT_MS} sensitive=false synonyms={{{stands}}}" in described
        assert f"{assignment}=2000 " in described
        configure(group_kafka, *group, "--alter", "--delete-config", assignment)
        assert name not in configure(group_kafka, "--describe")

    def test_refused(self, group_kafka: Kafka, name: str) -> None:
        """
        Refusals have reasons in words.
        """
        for wrong, says in (
            ("consumer.session.timeout.ms=5", "must be greater than or equal to group.consumer.min.session.timeout.ms"),
            ("share.session.timeout.ms=50000", "share groups, which are not served here"),
            ("consumer.mood=fair", "Unknown group config name: consumer.mood"),
        ):
            told = configure(group_kafka, "--entity-name", name, "--alter", "--add-config", wrong, fails=True)
            assert "InvalidConfigurationException" in told
            assert says in told
        assert name not in configure(group_kafka, "--describe")


def test_regular_expressions() -> None:
    """
    The tool brings its own RE2 for subscriptions of members.
    """
    assert "is valid" in run(_COMMAND, "--validate-regex", "a.*b")
    assert "is invalid" in run(_COMMAND, "--validate-regex", "a(?=b)")
