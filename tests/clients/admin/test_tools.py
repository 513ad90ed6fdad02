"""
Kafka's command line tools against Kafka and a gateway print the same and have the same exit code, except for the
differences named here with their reasons.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.clients.admin import differences as why
from tests.clients.admin.sides import TOPIC, Side
from tests.clients.client import PATIENCE_S
from tests.clients.java_tools import java

TOPICS, CONFIGS = "org.apache.kafka.tools.TopicCommand", "kafka.admin.ConfigCommand"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"

_NOISE = re.compile(r"\s*at |\s*\.\.\. \d+ more|Caused by: |SLF4J|WARN|.*(ERROR|WARN) StatusLogger|\[?\d{4}-\d\d-\d\d")


class Printed(NamedTuple):
    """
    The exit code and output of a tool, without what each server generates.
    """

    code: int
    lines: tuple[str, ...]


def run(side: Side, program: str, *arguments: str) -> Printed:
    """
    Run a tool and sort its lines, because many lists have no order.
    """
    command = java(program, "--bootstrap-server", side.bootstrap, *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False)
    lines = side.plain(done.stdout + done.stderr).splitlines()
    return Printed(done.returncode, tuple(sorted(line.rstrip() for line in lines if line and not _NOISE.match(line))))


Run = Callable[..., tuple[Printed, Printed]]


@pytest.fixture
def tool(sides: tuple[Side, Side]) -> Iterator[Run]:
    """
    Runs a tool against both servers at the same time.
    """
    with ThreadPoolExecutor(len(sides)) as threads:

        def both(program: str, *arguments: str) -> tuple[Printed, Printed]:
            kafka, gateway = threads.map(lambda side: run(side, program, *arguments), sides)
            return kafka, gateway

        yield both


@pytest.fixture
def plan(tmp_path: Path) -> Callable[[object], str]:
    """
    Writes a file that a tool reads.
    """

    def write(content: object) -> str:
        path = tmp_path / "plan.json"
        path.write_text(json.dumps(content))
        return str(path)

    return write


def assert_same(printed: tuple[Printed, Printed], *, code: int = 0, says: str = "") -> None:
    """
    Both printed the same, which contains the expected text.
    """
    kafka, gateway = printed
    assert kafka == gateway
    assert gateway.code == code, gateway
    assert says in "\n".join(gateway.lines)


def test_topics(tool: Run) -> None:
    """
    kafka-topics creates, describes, widens, lists and deletes topics, and explains failures.
    """
    topics = partial(tool, TOPICS)
    named = ("--topic", "tools")
    configs = ("--config", "retention.ms=77", "--config", "segment.ms=88")
    assert_same(topics("--create", *named, "--partitions", "2", *configs), says="Created topic tools.")
    assert_same(topics("--create", *named), code=1, says="Topic 'tools' already exists.")
    assert_same(topics("--create", *named, "--if-not-exists"))
    assert_same(topics("--create", "--topic", "bad name"), code=1)
    assert_same(topics("--create", "--topic", "other", "--config", "retention.ms=x"), code=1)
    assert_same(topics("--create", "--topic", "other", "--config", "nope=1"), code=1)
    assert_same(topics("--create", "--topic", "assigned", "--replica-assignment", "1,1,1"))
    assert_same(topics("--create", "--topic", "nobody", "--replica-assignment", "7"), code=1, says="broker 7")
    for name in ("tools", "assigned"):
        assert _without_own(topics("--describe", "--topic", name))
    assert_same(topics("--alter", *named, "--partitions", "4"))
    assert_same(topics("--alter", *named, "--partitions", "3"), code=1, says="would not be an increase")
    assert_same(topics("--describe", "--topic", "nowhere"), code=1)
    assert_same(topics("--list", "--exclude-internal"), says="assigned")
    assert_same(topics("--describe", "--under-replicated-partitions"))
    assert_same(topics("--delete", "--topic", "assigned"))
    assert_same(topics("--delete", "--topic", "nowhere"), code=1)


def _without_own(printed: tuple[Printed, Printed]) -> bool:
    """
    Whether both describe the same topic, whatever the order of its configs.
    """
    kafka, gateway = ([_sorted_configs(line) for line in one.lines] for one in printed)
    assert kafka == gateway
    return bool(gateway)


def _sorted_configs(line: str) -> str:
    head, found, rest = line.partition("Configs: ")
    configs, tab, tail = rest.partition("\t")
    kept = [config for config in configs.split(",") if not config.startswith("min.insync.replicas=")]  # see NO_ELR
    return (head + found + ",".join(sorted(filter(None, kept))) + tab + tail).rstrip()


def test_configs(tool: Run) -> None:
    """
    kafka-configs sets, describes and deletes configs of topics, groups and brokers, and explains failures.
    """

    def configs(kind: str, name: str, *arguments: str) -> tuple[Printed, Printed]:
        return tool(
            CONFIGS, "--entity-type", kind, *(("--entity-name", name) if name else ("--entity-default",)), *arguments
        )

    topic = partial(configs, "topics", TOPIC)
    assert_same(topic("--alter", "--add-config", "cleanup.policy=[delete,compact],segment.bytes=2000000"))
    assert_same(topic("--describe"), says="cleanup.policy=delete,compact")
    assert_same(topic("--alter", "--delete-config", "cleanup.policy,segment.bytes"))
    assert_same(topic("--alter", "--add-config", "retention.ms=x"), code=1, says="Not a number of type LONG")
    assert_same(topic("--alter", "--add-config", "nope=1"), code=1, says="Unknown topic config name: nope")
    assert_same(topic("--alter", "--delete-config", "retention.ms"))
    group = partial(configs, "groups", "g")
    assert_same(group("--alter", "--add-config", "consumer.session.timeout.ms=50000"))
    assert_same(group("--describe"), says="consumer.session.timeout.ms=50000")
    assert_same(group("--alter", "--delete-config", "consumer.session.timeout.ms"))
    for name in ("", "1"):
        broker = partial(configs, "brokers", name)
        assert_same(broker("--alter", "--add-config", "log.segment.bytes=3000000,log.cleanup.policy=[compact,delete]"))
        kafka, gateway = broker("--describe")
        only_kafkas = {*kafka.lines} - {*gateway.lines}
        assert only_kafkas == {line for line in kafka.lines if "min.insync" in line}, why.NO_ELR
        assert any("log.cleanup.policy=compact,delete" in line for line in gateway.lines)
        assert_same(broker("--alter", "--add-config", "num.partitions=9"), code=1, says="Cannot update these configs")
        assert_same(broker("--alter", "--delete-config", "log.segment.bytes,log.cleanup.policy"))
    logger = partial(configs, "broker-loggers", "1")
    assert_same(logger("--alter", "--add-config", "root=ERROR"))
    _, shown = logger("--describe")
    assert "root=ERROR sensitive=false synonyms={}" in "\n".join(shown.lines), why.ONE_LOGGER
    assert_same(logger("--alter", "--add-config", "nope=INFO"), code=1, says="nope")
    assert_same(logger("--alter", "--add-config", "root=LOUD"), code=1)
    kafka, gateway = configs("client-metrics", "m", "--alter", "--add-config", "interval.ms=1000")
    assert (kafka.code, gateway.code) == (0, 1), why.NO_METRICS
    assert any(why.NO_METRICS in line for line in gateway.lines)


def test_records(tool: Run, plan: Callable[[object], str]) -> None:
    """
    kafka-delete-records deletes records, and kafka-get-offsets shows what is left.
    """
    wanted = [{"topic": TOPIC, "partition": 0, "offset": 3}, {"topic": TOPIC, "partition": 1, "offset": -1}]
    file = plan({"version": 1, "partitions": wanted})
    assert_same(tool(DELETE_RECORDS, "--offset-json-file", file), says="low_watermark: 3")
    for time in ("earliest", "latest", "max-timestamp"):
        assert_same(tool(OFFSETS, "--topic", TOPIC, "--time", time), says=TOPIC)
    assert_same(tool(OFFSETS, "--topic-partitions", f"{TOPIC}:0"), says=f"{TOPIC}:0:5")
    assert_same(tool(OFFSETS, "--topic", "nowhere"), code=1)
    beyond = plan({"version": 1, "partitions": [{"topic": TOPIC, "partition": 0, "offset": 99}]})
    assert_same(tool(DELETE_RECORDS, "--offset-json-file", beyond), says="OffsetOutOfRange")


def test_log_dirs(tool: Run) -> None:
    """
    kafka-log-dirs shows the size of each partition in the only directory.
    """
    kafka, gateway = map(_sizes, tool(LOG_DIRS, "--describe", "--topic-list", TOPIC))
    assert kafka == gateway
    assert {*gateway} == {f"{TOPIC}-0", f"{TOPIC}-1"}
    assert_same(tool(LOG_DIRS, "--describe", "--broker-list", "7"), code=1)


def _sizes(printed: Printed) -> dict[str, int]:
    [text] = [line for line in printed.lines if line.startswith("{")]
    [place] = [place for broker in json.loads(text)["brokers"] for place in broker["logDirs"]]
    assert (place["logDir"], place["error"]) == ("DATA", None)
    assert not any(one["offsetLag"] or one["isFuture"] for one in place["partitions"])
    return {one["partition"]: one["size"] for one in place["partitions"]}


def test_leaders(tool: Run) -> None:
    """
    kafka-leader-election finds that each partition has its preferred leader.
    """
    for kind in ("preferred", "unclean"):
        assert_same(tool(ELECTION, "--election-type", kind, "--topic", TOPIC, "--partition", "0"))
    assert_same(tool(ELECTION, "--election-type", "preferred", "--all-topic-partitions"))
    assert_same(tool(ELECTION, "--election-type", "preferred", "--topic", "nowhere", "--partition", "0"), code=1)


def test_reassignments(tool: Run, plan: Callable[[object], str]) -> None:
    """
    kafka-reassign-partitions finds partitions where they should be, sets and removes throttles, and refuses to move
    partitions to unknown brokers.
    """

    def to(*brokers: int) -> str:
        partition = {"topic": TOPIC, "partition": 0, "replicas": list(brokers)}
        return plan({"version": 1, "partitions": [partition]})

    assert_same(tool(REASSIGN, "--list"), says="No partition reassignments found.")
    assert_same(tool(REASSIGN, "--reassignment-json-file", to(1), "--execute"), says="Successfully started")
    assert_same(tool(REASSIGN, "--reassignment-json-file", to(1), "--verify"), says="is completed")
    throttle = ("--throttle", "1000", "--replica-alter-log-dirs-throttle", "1000")
    assert_same(tool(REASSIGN, "--reassignment-json-file", to(1), "--execute", *throttle), says="limit was set to 1000")
    shown = ("--entity-type", "brokers", "--entity-name", "1", "--describe")
    assert_same(tool(CONFIGS, *shown), says="leader.replication.throttled.rate=1000")
    assert_same(tool(REASSIGN, "--reassignment-json-file", to(1), "--verify"), says="Clearing broker-level throttles")
    kafka, gateway = tool(CONFIGS, *shown)
    assert "throttled" not in "\n".join((*kafka.lines, *gateway.lines))
    assert_same(tool(REASSIGN, "--reassignment-json-file", to(7), "--execute"), code=1)
    assert_same(tool(REASSIGN, "--reassignment-json-file", to(1), "--cancel"))


def test_quorum(tool: Run) -> None:
    """
    A gateway refuses kafka-metadata-quorum, with the reason.
    """
    for what in ("--status", "--replication"):
        kafka, gateway = tool(QUORUM, "describe", what)
        assert (kafka.code, gateway.code) == (0, 1), why.NO_QUORUM
        assert any(why.NO_QUORUM in line for line in gateway.lines), gateway


def test_features(tool: Run) -> None:
    """
    kafka-features shows a gateway's features at Kafka's levels, and does not change them.
    """
    kafka, gateway = (_finalized(one) for one in tool(FEATURES, "describe"))
    assert gateway
    assert {name: kafka[name] for name in gateway} == gateway, why.FEATURES
    assert_same(tool(FEATURES, "upgrade", "--feature", "group.version=1"))
    assert_same(tool(FEATURES, "upgrade", "--feature", "nope=1"), code=1)
    assert_same(tool(FEATURES, "downgrade", "--feature", "group.version=1"))


def _finalized(printed: Printed) -> dict[str, str]:
    lines = [re.search(r"Feature: (\S+).*FinalizedVersionLevel: (\S+)", line) for line in printed.lines]
    return {found[1]: found[2] for found in lines if found}
