"""
`kgateway groups` with a gateway that runs.
"""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientPartition

from kgateway.cli.groups import changes
from kgateway.cli.main import main
from kgateway.client.cluster import Cluster
from kgateway.client.connection import Address
from kgateway.client.group_offsets import commit_offsets
from kgateway.testing.kafka import Kafka
from kgateway.topic_partition import TopicPartition
from tests.cli.groups.gateway import RECORDS, TOPIC, commit, commit_as_nobody, gateway, members

Groups = Callable[..., tuple[object, str]]  # exit code or reason of the command, and its output
Mistake = Callable[..., str]
ENDS = dict.fromkeys(range(4), RECORDS)
NOWHERE = "127.0.0.1:1"
ADVICE = "name a server with --bootstrap HOST[:PORT] or in $KGATEWAY_BOOTSTRAP, or start one with `kgateway serve`"


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    """
    One gateway with the group `busy` serves all tests.
    """
    with gateway() as kafka, members(kafka, "busy", "app", group_instance_id="left") as busy:
        commit(busy, {0: 5})
        yield kafka


@pytest.fixture
def groups(kafka: Kafka, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Groups:
    """
    Run `kgateway groups`; returns the exit code or the reason of a failure, and the output.
    """
    monkeypatch.setenv("KGATEWAY_BOOTSTRAP", kafka.bootstrap)

    def called(*arguments: object) -> tuple[object, str]:
        code: object = 0
        try:
            main(["groups", *map(str, arguments)])
        except SystemExit as end:
            code = end.code
        printed = capsys.readouterr()
        return printed.err.removesuffix("\n") if code == 1 else code, printed.out

    return called


@pytest.fixture
def mistake(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Mistake:
    """
    The mistake reported for a command; no server listens, because none is asked.
    """
    monkeypatch.setenv("KGATEWAY_BOOTSTRAP", NOWHERE)

    def told_of(*arguments: object) -> str:
        with pytest.raises(SystemExit) as end:
            main(["groups", *map(str, arguments)])
        assert end.value.code == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        return printed.err.rstrip().partition(": error: ")[2]

    return told_of


@pytest.fixture
def idle(kafka: Kafka, groups: Groups, request: pytest.FixtureRequest) -> Iterator[str]:
    """
    The id of a group without members that has committed 10 in each partition.
    """
    group_id = f"idle-{request.node.name}"
    commit_as_nobody(kafka, group_id, dict.fromkeys(range(4), 10))
    yield group_id
    groups("delete", group_id)


def stored(kafka: Kafka, group_id: str) -> dict[int, int]:
    """
    The committed offsets, as another client reads them.
    """
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group_id})
    try:
        places = consumer.committed([ClientPartition(TOPIC, index) for index in range(4)], timeout=10)
    finally:
        consumer.close()
    return {place.partition: place.offset for place in places if place.offset >= 0}


def json_of(groups: Groups, *arguments: object) -> Any:
    """
    The JSON output of a command.
    """
    code, printed = groups(*arguments, "--json")
    assert code == 0
    return json.loads(printed)


def test_bootstrap_may_be_an_option(groups: Groups, kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    --bootstrap precedes the environment, and may name several servers.
    """
    monkeypatch.setenv("KGATEWAY_BOOTSTRAP", NOWHERE)
    assert groups("list")[0] != 0
    code, printed = groups("list", "--bootstrap", f"{NOWHERE},{kafka.bootstrap}")
    assert (code, printed.split()[0]) == (0, "GROUP")


def test_an_unreachable_server_is_reported(groups: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    There is advice if the address is the default, and none if the command line names it.
    """
    says = f"kgateway groups list: nothing listens at {NOWHERE}"
    assert groups("list", "--bootstrap", NOWHERE) == (says, "")
    monkeypatch.delenv("KGATEWAY_BOOTSTRAP")
    monkeypatch.setattr("kgateway.cli.common.cluster_profiles.DEFAULT_BOOTSTRAP", NOWHERE)
    assert groups("list") == (f"{says}; {ADVICE}", "")


@pytest.mark.parametrize("given", ["kafka:", ":9092", "kafka:9092,", ""])
def test_an_invalid_address_is_reported(mistake: Mistake, given: str) -> None:
    wrong = given.rpartition(",")[2]
    assert (
        mistake("list", "--bootstrap", given)
        == f"argument -b/--bootstrap/--bootstrap-server: {wrong!r} must be HOST or HOST:PORT"
    )


def test_an_invalid_address_in_the_environment(
    mistake: Mistake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    It is reported unless the command names another address.
    """
    monkeypatch.setenv("KGATEWAY_BOOTSTRAP", "kafka:")
    assert mistake("list").endswith("$KGATEWAY_BOOTSTRAP: 'kafka:' must be HOST or HOST:PORT")
    with pytest.raises(SystemExit) as end:
        main(["groups", "list", "--bootstrap", NOWHERE])
    assert end.value.code == 1
    assert "nothing listens" in capsys.readouterr().err


def test_twisted_is_not_imported() -> None:
    """
    The import would slow the start.
    """
    report = "print(*(name for name in sys.modules if name.startswith('twisted')))"
    script = f"import atexit, sys; from kgateway.cli.main import main; atexit.register(lambda: {report})"
    arguments = ["groups", "list", "--bootstrap", NOWHERE]
    command = [sys.executable, "-c", f"{script}; main({arguments})"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (1, "\n")
    assert run.stderr.startswith("kgateway groups list: nothing listens at")


def test_list_for_programs(groups: Groups, kafka: Kafka) -> None:
    """
    The coordinator's address has separate parts.
    """
    [busy] = [group for group in json_of(groups, "list")["groups"] if group["group"] == "busy"]
    coordinator = {"id": 1, "host": "127.0.0.1", "port": kafka.port}
    assert busy == {
        "group": "busy",
        "type": "classic",
        "state": "Stable",
        "protocol_type": "consumer",
        "coordinator": coordinator,
    }


def test_list_some(groups: Groups, idle: str, kafka: Kafka) -> None:
    """
    Types and states limit the list; each may be repeated, and states ignore case.
    """

    def ids(*filters: str) -> set[str]:
        return {group["group"] for group in json_of(groups, "list", *filters)["groups"]} & {"busy", idle, "new"}

    with members(kafka, "new", "app", protocol="consumer"):
        assert ids() == {"busy", idle, "new"}
        assert ids("--state", "empty") == {idle}
        assert ids("--state", "Stable", "--state", "Empty") == {"busy", idle, "new"}
        assert ids("--type", "consumer") == {"new"}
        assert ids("--type", "classic", "--state", "Stable") == {"busy"}
        known = len(json_of(groups, "list")["groups"])
        assert groups("list", "--state", "Dead")[1] == f"no group matches ({known} groups in all)\n"
    groups("delete", "new")


def test_list_nothing(groups: Groups) -> None:
    """
    The command says that there are no groups; the client's variable is no setting of the gateway.
    """
    with Kafka("--broker", "memory:") as kafka:
        assert groups("list", "--bootstrap", kafka.bootstrap) == (0, "there are no groups\n")


def test_an_unknown_state_is_a_mistake(groups: Groups) -> None:
    assert groups("list", "--state", "Stabel")[0] == 2


def test_describe_for_programs(groups: Groups, kafka: Kafka) -> None:
    """
    JSON has all details, such as the metadata of commits and the instances of static members.
    """
    [group] = json_of(groups, "describe", "busy")["groups"]
    [member] = group.pop("members")
    partitions = group.pop("partitions")
    assert group == {
        "group": "busy",
        "type": "classic",
        "state": "Stable",
        "protocol_type": "consumer",
        "assignor": "range",
        "epoch": None,
        "coordinator": {"id": 1, "host": "127.0.0.1", "port": kafka.port},
        "lag": 20,
    }
    assert (member["instance_id"], member["client_id"], member["host"]) == ("left", "app", "127.0.0.1")
    assert (member["assigned"], member["target"]) == ({TOPIC: [0, 1, 2, 3]}, None)
    told_all = {"topic": TOPIC, "partition": 0, "committed": 5, "metadata": "", "end": 25, "lag": 20}
    assert partitions[0] == {**told_all, "member_id": member["member_id"]}
    assert [(one["committed"], one["lag"]) for one in partitions[1:]] == [(None, None)] * 3


def test_describe_several(groups: Groups, idle: str) -> None:
    """
    Each group is shown once, separated by empty lines.
    """
    code, printed = groups("describe", "busy", idle, "busy")
    assert code == 0
    first, second = printed.split(f"\n\n{idle}: Empty, classic group, coordinator")
    assert first.startswith("busy: Stable")
    assert "busy: " not in second
    assert "0 members; lag 60 in 4 partitions" in second


def test_describe_all(groups: Groups, idle: str) -> None:
    """
    Groups of other clients are shown too.
    """
    assert {"busy", idle} <= {group["group"] for group in json_of(groups, "describe", "--all")["groups"]}


def test_describe_nothing(mistake: Mistake) -> None:
    """
    Exactly one of names and --all is required.
    """
    wanted = "name groups, or add --all"
    assert mistake("describe") == mistake("describe", "busy", "--all") == mistake("describe", "--all", "busy") == wanted


def test_describe_a_missing_group(groups: Groups) -> None:
    """
    A missing group is an error, and the other groups are shown.
    """
    code, printed = groups("describe", "nobody", "busy")
    told = "group 'nobody': GROUP_ID_NOT_FOUND: there is no group nobody"
    assert code == f"kgateway groups describe: {told}"
    assert "busy: Stable" in printed


@pytest.mark.parametrize(
    ("aim", "offsets"),
    [
        (["--to-earliest"], dict.fromkeys(range(4), 0)),
        (["--to-latest"], ENDS),
        (["--to-offset", 7], dict.fromkeys(range(4), 7)),
        (["--to-offset", 7, "--topic", TOPIC], dict.fromkeys(range(4), 7)),
        (["--to-offset", 7, "--topic", f"{TOPIC}:1,3"], {0: 10, 1: 7, 2: 10, 3: 7}),
        (["--to-offset", 7, "--topic", f"{TOPIC}:1", "--topic", f"{TOPIC}:2"], {0: 10, 1: 7, 2: 7, 3: 10}),
        (["--shift-by", -3], dict.fromkeys(range(4), 7)),
        (["--shift-by", 99], ENDS),
        (["--to-time", "2026-11-21T18:00:41"], {0: 11, 1: 10, 2: 10, 3: 10}),
        (["--to-time", "2026-11-21T19:00:41+01:00"], {0: 11, 1: 10, 2: 10, 3: 10}),
        (["--to-time", "2026-11-22"], ENDS),
    ],
)
def test_reset(groups: Groups, kafka: Kafka, idle: str, aim: list[object], offsets: dict[int, int]) -> None:
    """
    Only --execute changes offsets, to those that were shown.
    """
    before = stored(kafka, idle)
    dry = json_of(groups, "reset-offsets", idle, *aim)
    assert (stored(kafka, idle), dry["executed"]) == (before, False)
    done = json_of(groups, "reset-offsets", idle, *aim, "--execute")
    assert done == {**dry, "executed": True}
    assert stored(kafka, idle) == offsets
    assert {one["partition"]: one["to"] for one in done["partitions"]}.items() <= offsets.items()


def test_times_without_a_zone(groups: Groups, idle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Times are UTC wherever the command runs.
    """
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "XYZ-7")
        time.tzset()
        dry = json_of(groups, "reset-offsets", idle, "--to-time", "2026-11-21T18:00:41")
    time.tzset()
    assert (dry["partitions"][0]["to"], dry["partitions"][0]["note"]) == (11, "2026-11-21T18:00:44.000Z")


@pytest.mark.parametrize("execute", [[], ["--execute"]])
def test_reset_of_a_missing_partition(
    groups: Groups, kafka: Kafka, idle: str, execute: list[str], tmp_path: Path
) -> None:
    """
    Nothing is changed, not even in other partitions, with --execute or without.
    """
    file = tmp_path / "offsets.csv"
    file.write_text(f"{TOPIC},0,3\n{TOPIC},9,3\nnothing,0,3\n")
    here, nine, nothing = (
        f"{TOPIC}-0",
        f"{TOPIC}-9: there is no such partition",
        "nothing-0: there is no such partition",
    )
    for aim, why in (
        (["--to-latest", "--topic", f"{TOPIC}:0,9"], nine),
        (["--to-time", "2026-11-21", "--topic", f"{TOPIC}:0,9"], nine),
        (["--from-file", file], f"{nothing}; {nine}"),
    ):
        code, printed = groups("reset-offsets", idle, *aim, *execute)
        assert code == f"kgateway groups reset-offsets: {why}; nothing was changed"
        assert (here in str(code), printed.splitlines()[-1].endswith("there is no such partition")) == (False, True)
        assert stored(kafka, idle) == dict.fromkeys(range(4), 10)


def test_reset_of_missing_topics(groups: Groups, kafka: Kafka, idle: str) -> None:
    """
    Nothing is changed, and each missing topic is named.
    """
    topics = ["--topic", "nothing", "--topic", TOPIC, "--topic", "never:0"]
    code, printed = groups("reset-offsets", idle, "--to-earliest", *topics, "--execute")
    why = "there is no topic nothing, never; nothing was changed"
    assert (code, printed) == (f"kgateway groups reset-offsets: {why}", "")
    assert stored(kafka, idle) == dict.fromkeys(range(4), 10)


def test_a_refused_reset_for_programs(groups: Groups, idle: str) -> None:
    """
    JSON says that nothing was changed, and why.
    """
    code, printed = groups("reset-offsets", idle, "--to-latest", "--topic", f"{TOPIC}:0,9", "--execute", "--json")
    done = json.loads(printed)
    assert (bool(code), done["executed"]) == (True, False)
    assert [(one["partition"], one["to"], one["note"]) for one in done["partitions"]] == [
        (0, RECORDS, ""),
        (9, None, "there is no such partition"),
    ]


def test_a_shift_without_a_committed_offset(groups: Groups, kafka: Kafka) -> None:
    """
    The committed offsets do not change.
    """
    groups("reset-offsets", "half", "--to-offset", 9, "--topic", f"{TOPIC}:0,1", "--execute")
    for execute in ([], ["--execute"]):
        code, printed = groups("reset-offsets", "half", "--shift-by", -1, "--topic", f"{TOPIC}:1,2", *execute)
        why = f"{TOPIC}-2: no offset is committed to shift from; nothing was changed"
        assert code == f"kgateway groups reset-offsets: {why}"
        assert (stored(kafka, "half"), "group half" in printed) == ({0: 9, 1: 9}, False)
    groups("delete", "half")


def test_reset_from_a_file(groups: Groups, kafka: Kafka, idle: str, tmp_path: Path) -> None:
    """
    The file names the partitions.
    """
    file = tmp_path / "offsets.csv"
    file.write_text(f"{TOPIC},1,3\n")
    assert groups("reset-offsets", idle, "--from-file", file, "--execute")[0] == 0
    assert stored(kafka, idle) == {0: 10, 1: 3, 2: 10, 3: 10}


def test_reset_with_members(groups: Groups, kafka: Kafka) -> None:
    """
    The reset is refused before anything is changed.
    """
    code, printed = groups("reset-offsets", "busy", "--to-latest", "--execute")
    told = "group busy has 1 member (app at 127.0.0.1), which would keep their current positions: stop them first"
    assert (code, printed) == (f"kgateway groups reset-offsets: {told}", "")
    assert stored(kafka, "busy") == {0: 5}


def test_reset_with_many_members(groups: Groups, kafka: Kafka) -> None:
    """
    Three of them are named.
    """
    with members(kafka, "crowd", "d", "b", "c", "a", protocol="consumer"):
        code, _ = groups("reset-offsets", "crowd", "--to-latest", "--topic", TOPIC)
    assert "crowd has 4 members (a at 127.0.0.1, b at 127.0.0.1, c at 127.0.0.1, ...), which" in str(code)
    groups("delete", "crowd")


def test_reset_with_members_that_joined_meanwhile(
    groups: Groups, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The server refuses the reset.
    """
    monkeypatch.setattr(changes, "_refuse_members", lambda cluster, group_id: None)
    code, _ = groups("reset-offsets", "busy", "--to-latest", "--execute")
    told = "group busy has members now: stop them first; nothing was changed"
    assert code == f"kgateway groups reset-offsets: {told}"
    assert stored(kafka, "busy") == {0: 5}


def test_reset_of_a_new_group(groups: Groups, kafka: Kafka) -> None:
    """
    A new group requires topics.
    """
    code, _ = groups("reset-offsets", "coming", "--to-earliest")
    assert "group coming has committed nothing: name a topic with --topic" in str(code)
    groups("reset-offsets", "coming", "--to-offset", 3, "--topic", f"{TOPIC}:2", "--execute")
    assert stored(kafka, "coming") == {2: 3}
    groups("delete", "coming")


@pytest.mark.parametrize(
    "wrong",
    [
        ["--to-earliest", "--to-latest"],
        [],
        ["--to-time", "tomorrow"],
        ["--to-earliest", "--topic", f"{TOPIC}:x"],
        ["--to-earliest", "--topic", f"{TOPIC}:"],
        ["--to-earliest", "--topic", ":1"],
        ["--from-file", "offsets.csv", "--topic", TOPIC],
    ],
)
def test_mistakes_in_a_reset(mistake: Mistake, wrong: list[str]) -> None:
    """
    Mistakes are reported before a server is asked.
    """
    assert mistake("reset-offsets", "busy", *wrong)


def test_reset_without_a_group(mistake: Mistake) -> None:
    """
    An empty group id is a mistake; usually a variable of the shell is not set.
    """
    told = mistake("reset-offsets", "", "--to-earliest", "--topic", TOPIC)
    assert told.startswith("argument GROUP: an empty group id")


@pytest.mark.parametrize(
    "time",
    ["1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.9999Z", "1969-01-01", "1970-01-01T00:59:59+01:00", "0001-01-01"],
)
def test_a_time_before_1970_is_a_mistake(mistake: Mistake, time: str) -> None:
    """
    Its timestamp would mean something else to a server.
    """
    told = mistake("reset-offsets", "busy", "--to-time", time)
    assert told.startswith(f"argument --to-time/--to-datetime: {time!r} is before 1970 in UTC")


@pytest.mark.parametrize("time", ["1970-01-01", "1970-01-01T01:00:00+01:00"])
def test_the_earliest_time_is_accepted(groups: Groups, idle: str, time: str) -> None:
    dry = json_of(groups, "reset-offsets", idle, "--to-time", time)
    assert [one["to"] for one in dry["partitions"]] == [0, 0, 0, 0]


def test_the_empty_id(groups: Groups, kafka: Kafka) -> None:
    """
    A group with an empty id can be described and deleted, because clients may commit offsets with it.
    """
    with Cluster([Address.parse(kafka.bootstrap)], 10) as cluster:
        cluster.retry(partial(commit_offsets, cluster, "", {TopicPartition(TOPIC, 0): 5}))
    assert "0 members; lag 20 in 1 partition" in groups("describe", "")[1]
    assert groups("delete", "") == (0, ": deleted\n")


def test_delete(groups: Groups, kafka: Kafka, idle: str) -> None:
    """
    The group and its offsets are gone; each group has its own outcome.
    """
    code, printed = groups("delete", "busy", idle, "nobody")
    assert printed == f"{idle}: deleted\n"
    refused = [
        "busy was not deleted: it has members; stop them first",
        "nobody was not deleted: there is no such group",
    ]
    assert code == f"kgateway groups delete: {'; '.join(refused)}"
    assert stored(kafka, idle) == {}
    assert idle not in {group["group"] for group in json_of(groups, "list")["groups"]}


def test_delete_for_programs(groups: Groups, idle: str) -> None:
    """
    JSON has the reason for each group that was not deleted.
    """
    code, printed = groups("delete", idle, "nobody", "--json")
    assert str(code).startswith("kgateway groups delete: nobody was not deleted")
    assert json.loads(printed)["groups"] == [
        {"group": idle, "deleted": True},
        {
            "group": "nobody",
            "deleted": False,
            "error": {"code": "GROUP_ID_NOT_FOUND", "message": "there is no such group"},
        },
    ]


def test_why_does_not_tell_of_the_tools_own_questions(
    groups: Groups, kafka: Kafka, idle: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Whether a group exists, and of which type it is, has to be asked.
    """
    groups("describe", idle, "nobody")
    groups("reset-offsets", "to-come", "--to-earliest", "--topic", TOPIC)
    main(["why", "--control-socket", kafka.control_socket, "--limit", "1000", "--json"])
    reasons = json.loads(capsys.readouterr().out)["reasons"]
    told = {reason["subject"] for reason in reasons if "Describe" in reason["api"]}
    assert not told & {idle, "nobody", "to-come"}


def test_output_has_no_control_characters(groups: Groups, kafka: Kafka) -> None:
    """
    Clients choose ids and metadata, which appear in output and reasons.
    """
    evil, seen = "\x1b[2Jevil", "\\x1b[2Jevil"
    commit_as_nobody(kafka, evil, {0: 1})
    for command in (["list"], ["describe", "--all"]):
        code, printed = groups(*command)
        assert (code, "\x1b" in printed, seen in printed) == (0, False, True)
    assert evil in {group["group"] for group in json_of(groups, "list")["groups"]}
    assert groups("delete", evil) == (0, f"{seen}: deleted\n")
    assert groups("delete", evil)[0] == f"kgateway groups delete: '{seen}' was not deleted: there is no such group"


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon", "86401"])
def test_a_timeout_out_of_range_is_a_mistake(groups: Groups, seconds: str) -> None:
    assert groups("list", "--timeout", seconds)[0] == 2


def test_timeout(groups: Groups) -> None:
    """
    The command gives up after --timeout.
    """
    with socket.create_server(("127.0.0.1", 0)) as silent:
        bootstrap = f"127.0.0.1:{silent.getsockname()[1]}"
        code, _ = groups("list", "--bootstrap", bootstrap, "--timeout", "0.1")
        assert f"{bootstrap} did not send a response to ApiVersions within 0.1 s" in str(code)
