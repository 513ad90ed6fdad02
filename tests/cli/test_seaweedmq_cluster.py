"""
What `kgateway seaweedmq` tells of a cluster: verify, stats, mapping.
"""

import json
import re
import subprocess
import sys
from array import array
from collections.abc import Iterator
from typing import NamedTuple
from uuid import uuid4

import pytest

from kgateway.broker.seaweed.dev_cluster import DevCluster
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq import kept_ledgers
from kgateway.broker.seaweedmq.forms.form import Message
from kgateway.broker.seaweedmq.layout import NAMESPACE
from kgateway.broker.seaweedmq.ledger_records import Owner, Part, message
from kgateway.cli.main import main
from tests.broker import behaviour
from tests.broker.behaviour import result
from tests.broker.seaweed.cluster import cluster as cluster
from tests.broker.seaweed.cluster import mended as mended
from tests.broker.seaweed.cluster import seaweed as seaweed
from tests.broker.seaweed.running import wait
from tests.broker.seaweedmq.ledger_world import World, filled, topic

_PATIENCE_S = 60


class Ended(NamedTuple):
    """
    How a command ended.
    """

    code: int
    lines: list[str]
    error: str


class Command:
    """
    `kgateway seaweedmq` before a cluster.
    """

    def __init__(self, masters: str) -> None:
        self._masters = masters

    def __call__(self, kind: str, *arguments: str) -> Ended:
        command = [sys.executable, "-m", "kgateway", "seaweedmq", kind, "--masters", self._masters, *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
        return Ended(ended.returncode, ended.stdout.splitlines(), ended.stderr)


@pytest.fixture
def world(cluster: DevCluster, seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """
    The namespace of all gateways, emptied afterwards.
    """
    monkeypatch.setattr(behaviour, "patience", wait)
    world = World(cluster, seaweed)
    world.namespace = NAMESPACE
    yield world
    with world.running() as broker:
        for each in list(broker.view().topics.values()):
            result(broker.delete_topic(each.id))


@pytest.fixture
def name() -> str:
    """
    Of a topic that never was: SeaweedMQ would go on counting its messages.
    """
    return f"t{uuid4().hex}"


@pytest.fixture
def run(cluster: DevCluster) -> Command:
    """
    The command.
    """
    return Command(",".join(cluster.masters))


@pytest.mark.parametrize("form", ["batch", "record", "plain"])
def test_a_topic_is_looked_at(form: str, name: str, world: World, run: Command) -> None:
    """
    While nobody serves it all three commands say what there is.
    """
    with world.running() as broker:
        made = topic(broker, form, 2, name)
        filled(broker, made, 3)
    verified = run("verify")
    assert (verified.code, verified.error) == (0, "")
    assert re.fullmatch(r"1 topic, 2 partitions, \d rows?, 1 file, .+ in .+ s: nothing is wrong", verified.lines[-1]), (
        verified
    )
    stats = run("stats", name)
    assert (stats.code, stats.error) == (0, "")
    assert len(stats.lines) == 3
    headings, first, second = (re.split("  +", line) for line in stats.lines)
    assert (
        dict(zip(headings, first, strict=True)).items()
        >= {
            "TOPIC": name,
            "P": "0",
            "FORM": form,
            "OFFSETS": "0 to 5",
            "HIGH": "6",
            "HELD": "6",
            "FLUSHED": "6",
            "PUBLISHERS": "-",
            "ROWS": "3" if form == "batch" else "1",
        }.items()
    )
    assert dict(zip(headings, second, strict=True))["OFFSETS"] == "none"
    mapping = json.loads("\n".join(run("mapping", "--json", name, "0", "3").lines))
    assert mapping["offset"] == 3
    assert mapping["message"] == (1 if form == "batch" else 3)
    assert mapping["message_begins_with_offset"] == (2 if form == "batch" else 3)
    assert mapping["file"].startswith(f"/topics/kafka/{name}/{mapping['generation']}/0000-1260/")
    assert mapping["slots_in_ledger"] == "0 to 31"
    for named, offset in (("earliest", 0), ("-2", 0), ("latest", 5), ("-1", 5)):
        assert f"offset{' ' * 22}{offset}" in run("mapping", name, "0", named).lines


def test_a_gateway_is_seen(name: str, world: World, run: Command) -> None:
    """
    While one serves the topic its stream is there, and what its broker has in memory is told.
    """
    with world.running() as broker:
        made = topic(broker, "batch", name=name)
        filled(broker, made, 2)
        (told,) = json.loads("\n".join(run("stats", "--json", name).lines))
        (publisher,) = told["publishers"]
        assert publisher.startswith("127.0.0.1:")
        assert (told["held"], told["high_watermark"]) == (4, 4)
        assert told["flushed"] + 2 * told["messages_held"] == 4


def test_what_is_wrong_is_named(name: str, world: World, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    With its numbers, a line for each, and exit code 1; of many of a kind only some are shown.
    """

    def shifted(owner: Owner, part: Part) -> Message:
        kafka, messages, *others = part.columns
        return message(owner, part._replace(columns=(kafka, array("q", [each + 7 for each in messages]), *others)))

    with world.running() as broker:
        filled(broker, topic(broker, "batch", name=name), 25)
        monkeypatch.setattr(kept_ledgers, "message", shifted)
    ended = run("verify", name)
    assert ended.code == 1
    assert ended.lines[0] == f"{name}-0: sequence: row 0 has offset 0 in message 7, and the log in message 0"
    assert len(ended.lines) == 22
    assert ended.lines[-2] == f"{name}-0: sequence: and 5 more"
    assert ended.lines[-1].endswith(": 25 findings")


def test_examples_of_the_help_run(world: World, run: Command, capsys: pytest.CaptureFixture[str]) -> None:
    """
    As they stand there, but for the addresses.
    """
    with world.running() as broker:
        for name in ("orders", "payments"):
            filled(broker, topic(broker, "batch", name=name), 550)
    count = 0
    for kind in ("verify", "stats", "mapping"):
        with pytest.raises(SystemExit):
            main(["seaweedmq", kind, "--help"])
        for line in capsys.readouterr().out.splitlines():
            words = line.split()
            if words[:2] == ["kgateway", "seaweedmq"] and line.startswith("  "):
                assert words[2:4] == [kind, "--masters"]
                ended = run(kind, *words[5:])
                assert (ended.code, ended.error) == (0, ""), line
                count += 1
    assert count == 6


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["verify", "gone"], "there is no topic gone"),
        (["stats", "gone"], "there is no topic gone"),
        (["mapping", "gone", "0", "0"], "there is no topic gone"),
        (["mapping", "t", "2", "0"], "topic t has partitions 0 to 1, and no 2"),
        (["mapping", "t", "0", "4"], "t-0 has offsets 0 to 3 in files, and no 4"),
        (["mapping", "t", "1", "latest"], "t-1 has no offsets in files"),
    ],
)
def test_what_is_not_there_is_said(arguments: list[str], reason: str, world: World, run: Command) -> None:
    """
    In plain words, with exit code 2.
    """
    with world.running() as broker:
        filled(broker, topic(broker, "record", 2), 2)
    ended = run(*arguments)
    assert (ended.code, ended.lines, ended.error) == (2, [], f"kgateway seaweedmq {arguments[0]}: {reason}\n")


@pytest.mark.parametrize("kind", ["verify", "stats"])
def test_masters_that_do_not_answer_are_named(kind: str) -> None:
    """
    With exit code 2.
    """
    ended = Command("127.0.0.1:1")(kind)
    assert ended.code == 2
    assert ended.error.startswith(f"kgateway seaweedmq {kind}: the cluster of 127.0.0.1:1 cannot be read: no master")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["stats", "--masters", "nowhere"], "'nowhere'"),
        (
            ["mapping", "--masters", "a:1", "t", "0", "soon"],
            "'soon' is no offset; say a number, `earliest` or `latest`",
        ),
        (["mapping", "--masters", "a:1", "t", "0", "-3"], "'-3' is no offset"),
        (["verify", "--masters", "a:1", "--security", "/gone.toml"], "/gone.toml"),
        (["verify"], "--masters"),
        (["mapping", "--masters", "a:1", "", "0", "0"], "'' is no name of a topic"),
        (["mapping", "--masters", "a:1", "a/b", "0", "0"], "'a/b' is no name of a topic"),
        (["verify", "--masters", "a:1", "t", ""], "'' is no name of a topic"),
        (["stats", "--masters", "a:1", ""], "'' is no name of a topic"),
    ],
)
def test_arguments_are_checked(arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Before anybody is asked.
    """
    with pytest.raises(SystemExit) as ended:
        main(["seaweedmq", *arguments])
    assert ended.value.code == 2
    assert reason in capsys.readouterr().err
