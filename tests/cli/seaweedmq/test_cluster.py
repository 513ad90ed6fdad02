"""
The commands that inspect a SeaweedMQ cluster: verify, stats and mapping.
"""

import json
import re
import subprocess
import sys
from array import array
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from uuid import uuid4

import pytest

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweedmq.layout.topic_paths import NAMESPACE
from kgateway.broker.seaweedmq.ledger.snapshot import decode, encode
from kgateway.cli.main import main
from kgateway.topic_partition import PartitionId
from tests.broker import behaviour
from tests.broker.behaviour import result
from tests.broker.seaweed.cluster import cluster as cluster
from tests.broker.seaweed.cluster import filer as filer
from tests.broker.seaweed.cluster import mended as mended
from tests.broker.seaweed.cluster import seaweed as seaweed
from tests.broker.seaweed.real_reactor import wait
from tests.broker.seaweedmq.ledger_world import World, filled, topic

_PATIENCE_S = 60


class Ended(NamedTuple):
    """
    The exit code and output of a command.
    """

    code: int
    lines: list[str]
    error: str


class Command:
    """
    `kgateway seaweedmq` with a cluster.
    """

    def __init__(self, masters: str) -> None:
        self._masters = masters

    def __call__(self, kind: str, *arguments: str) -> Ended:
        command = [sys.executable, "-m", "kgateway", "seaweedmq", kind, "--masters", self._masters, *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
        return Ended(ended.returncode, ended.stdout.splitlines(), ended.stderr)


@pytest.fixture
def world(cluster: DevCluster, seaweed: SeaweedCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
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
    A new topic name: SeaweedMQ would continue the message count of an old one.
    """
    return f"t{uuid4().hex}"


@pytest.fixture
def run(cluster: DevCluster) -> Command:
    return Command(",".join(cluster.masters))


@pytest.mark.parametrize("form", ["batch", "record", "plain"])
def test_a_topic_is_inspected(form: str, name: str, world: World, run: Command) -> None:
    """
    Without a gateway all three commands show what is stored.
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
            "FORMAT": form,
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
    for named, offset in (("earliest", 0), ("-2", 0), ("latest", 5), ("-1", 5)):
        assert f"offset{' ' * 22}{offset}" in run("mapping", name, "0", named).lines


def test_a_gateway_is_seen(name: str, world: World, run: Command) -> None:
    """
    While a gateway serves the topic, its stream and what the broker holds in memory are shown.
    """
    with world.running() as broker:
        made = topic(broker, "batch", name=name)
        filled(broker, made, 2)
        (told,) = json.loads("\n".join(run("stats", "--json", name).lines))["partitions"]
        (publisher,) = told["publishers"]
        assert publisher.startswith("127.0.0.1:")
        assert (told["held"], told["high_watermark"]) == (4, 4)
        assert told["flushed"] + 2 * told["messages_held"] == 4


def test_findings(name: str, world: World, run: Command, filer: Filer) -> None:
    """
    Each finding is a line with its numbers, and the exit code is 1; only some of many findings of a kind are shown.
    """
    with world.running() as broker:
        filled(broker, made := topic(broker, "batch", name=name), 25)
    path, owner = world.ledger_path(name), PartitionId(made.id, 0)
    snapshot = decode(wait(filer.files.read(path, 0, 1 << 20)), owner)
    messages = snapshot.ledger.rows.messages
    messages[:] = array("q", [each + 7 for each in messages])
    wait(filer.files.put(path, encode(snapshot, owner)))
    ended = run("verify", name)
    assert ended.code == 1
    assert ended.lines[0] == f"{name}-0: sequence: row 0 has offset 0 in message 7, but the log has it in message 0"
    assert len(ended.lines) == 22
    assert ended.lines[-2] == f"{name}-0: sequence: and 5 more"
    assert ended.lines[-1].endswith(": 25 findings")
    ended = run("verify", name, "--json")
    assert ended.code == 1
    told = json.loads("\n".join(ended.lines))
    first, *others = told["findings"]
    assert first == {
        "place": f"{name}-0",
        "kind": "sequence",
        "reason": "row 0 has offset 0 in message 7, but the log has it in message 0",
        "is_fault": True,
    }
    assert len(others) == 24  # all, not only some of a kind
    assert (told["topics"], told["partitions"]) == (1, 1)


def test_examples_of_the_help_run(world: World, run: Command, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The examples succeed with the addresses replaced.
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
            if words[:3] == ["$", "kgateway", "seaweedmq"]:
                assert words[3:5] == [kind, "--masters"]
                ended = run(kind, *words[6:])
                assert (ended.code, ended.error) == (0, ""), line
                count += 1
    assert count == 6


def test_damage_of_a_ledger_is_found(name: str, world: World, run: Command, filer: Filer) -> None:
    """
    `verify` names it; for the other commands there is no ledger, and `mapping` reads the files.
    """
    with world.running() as broker:
        filled(broker, topic(broker, "batch", name=name), 2)
    path = world.ledger_path(name)
    data = wait(filer.files.read(path, 0, 1 << 20))
    wait(filer.files.put(path, data[:-1]))
    ended = run("verify", name)
    reason = f"its file is truncated or damaged: the CRC is not that of its {len(data) - 1} bytes"
    assert ended.code == 1
    assert ended.lines[0] == f"{name}-0: ledger: the saved ledger cannot be used: {reason}"
    assert ended.lines[-1].endswith(": 1 finding")
    (told,) = json.loads("\n".join(run("stats", "--json", name).lines))["partitions"]
    assert (told["rows"], told["start"], told["flushed"]) == (0, 0, 4)
    mapping = json.loads("\n".join(run("mapping", "--json", name, "0", "3").lines))
    assert (mapping["offset"], mapping["message"]) == (3, 1)


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
def test_missing_topics_partitions_and_offsets(arguments: list[str], reason: str, world: World, run: Command) -> None:
    """
    The reason is in plain words, and the exit code is 2.
    """
    with world.running() as broker:
        filled(broker, topic(broker, "record", 2), 2)
    ended = run(*arguments)
    assert (ended.code, ended.lines, ended.error) == (2, [], f"kgateway seaweedmq {arguments[0]}: {reason}\n")


def test_unreachable_masters_are_named() -> None:
    """
    The exit code is 2.
    """
    kinds = ["verify", "stats"]
    with ThreadPoolExecutor() as threads:
        for kind, ended in zip(kinds, threads.map(Command("127.0.0.1:1"), kinds), strict=True):
            assert ended.code == 2
            reason = "the cluster of 127.0.0.1:1 cannot be read: no master"
            assert ended.error.startswith(f"kgateway seaweedmq {kind}: {reason}")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["stats", "--masters", "nowhere"], "'nowhere'"),
        (
            ["mapping", "--masters", "a:1", "t", "0", "soon"],
            "'soon' is not an offset: must be a number, `earliest` or `latest`",
        ),
        (["mapping", "--masters", "a:1", "t", "0", "-3"], "'-3' is not an offset"),
        (["verify", "--masters", "a:1", "--security", "/gone.toml"], "/gone.toml"),
        (["verify"], "--masters"),
        (["mapping", "--masters", "a:1", "", "0", "0"], "'' is not the name of a topic"),
        (["mapping", "--masters", "a:1", "a/b", "0", "0"], "'a/b' is not the name of a topic"),
        (["verify", "--masters", "a:1", "t", ""], "'' is not the name of a topic"),
        (["stats", "--masters", "a:1", ""], "'' is not the name of a topic"),
    ],
)
def test_arguments_are_checked(arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Mistakes are reported before a master is asked.
    """
    with pytest.raises(SystemExit) as ended:
        main(["seaweedmq", *arguments])
    assert ended.value.code == 2
    assert reason in capsys.readouterr().err
