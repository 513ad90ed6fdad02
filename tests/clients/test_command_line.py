"""
`kgateway topics`, `configs`, `produce`, `consume` and `groups` work with Apache Kafka.
"""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.kafka.servers import Apache
from kgateway.client.producer import partition_of
from tests.cli.tools import Ended, Tool
from tests.clients.java_tools import run

RECORDS = 20_000
KEPT = ("--config", "retention.ms=-1")  # though some records of these tests are of 1970


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    """
    `kgateway` with a Kafka of its own.
    """
    kafka = Apache(tmp_path_factory.mktemp("apache") / "kafka")
    kafka.start()
    try:
        yield Tool(kafka.bootstrap)
    finally:
        kafka.stop()


@pytest.fixture
def topic(tool: Tool, name: str) -> str:
    assert done(tool("topics", "create", name, "--partitions", 3, "--replicas", 1, *KEPT)).lines == [f"{name}: created"]
    return name


def done(ended: Ended) -> Ended:
    assert ended.code == 0, ended
    return ended


def java(tool: Tool, program: str, *arguments: str, text: str = "") -> list[str]:
    """
    The lines that one of Kafka's own tools prints.
    """
    return run(program, *arguments, "--bootstrap-server", tool.bootstrap, text=text).splitlines()


def test_topics(tool: Tool, topic: str) -> None:
    """
    Topics are listed, described, widened and deleted; Kafka's refusals are shown in its words.
    """
    done(tool("produce", topic, "--partition", 1, text="a\nb\n"))
    listed = {told["topic"]: told for told in done(tool("topics", "list", "--json")).json["topics"]}
    told = listed[topic]
    assert (told["partitions"], told["replicas"], told["records"], told["cleanup_policy"]) == (3, 1, 2, "delete")
    assert told["bytes"] > 0
    [described] = done(tool("topics", "describe", topic, "--json")).json["topics"]
    assert [(part["start"], part["end"]) for part in described["partitions"]] == [(0, 0), (0, 2), (0, 0)]
    assert done(tool("topics", "alter", topic, "--partitions", 4)).lines == [f"{topic}: altered to 4 partitions"]
    refused = tool("topics", "alter", topic, "--partitions", 2)
    assert (refused.code, "INVALID_PARTITIONS" in refused.err) == (1, True)
    assert "INVALID_REPLICATION_FACTOR" in tool("topics", "create", f"{topic}-x", "--replicas", 3).err
    assert done(tool("topics", "delete", f"{topic}*", "--yes")).lines == [f"{topic}: deleted"]
    assert tool("topics", "describe", topic).err.startswith(f"kgateway topics describe: there is no topic {topic}")


def test_records_are_deleted(tool: Tool, topic: str) -> None:
    """
    Records up to an offset or a time, or all records, are deleted.
    """
    lines = [json.dumps({"value": str(number), "timestamp": 1000 * number, "partition": 0}) for number in range(5)]
    done(tool("produce", topic, "--json", text="\n".join(lines)))
    for command, start in (
        (["delete-records", f"{topic}:0", "--before", "1"], 1),
        (["delete-records", topic, "--before", "1970-01-01T00:00:03Z"], 3),
        (["purge", topic], 5),
    ):
        told = done(tool("topics", *command, "--yes", "--json")).json["partitions"][0]
        assert (told["start"], "error" in told) == (start, False)
        [described] = tool("topics", "describe", topic, "--json").json["topics"]
        assert described["partitions"][0]["start"] == start


def test_configs(tool: Tool, topic: str) -> None:
    """
    Configs of topics, brokers and groups are set and unset.
    """
    assert "would be set" in done(tool("configs", "set", "topic", topic, "retention.ms=5000", "--dry-run")).lines[0]
    for kind, name, config, value in (
        ("topic", topic, "retention.ms", "5000"),
        ("broker", "1", "log.cleaner.threads", "2"),
        ("group", f"g-{topic}", "consumer.session.timeout.ms", "50000"),
    ):
        sources = {"topic": "topic", "broker": "broker", "group": "group"}
        done(tool("configs", "set", kind, name, f"{config}={value}"))
        told = {one["config"]: one for one in done(tool("configs", "describe", kind, name, "--json")).json["configs"]}
        assert (told[config]["value"], told[config]["source"]) == (value, sources[kind])
        done(tool("configs", "unset", kind, name, config))
        left = done(tool("configs", "describe", kind, name, "--json")).json["configs"]
        assert sources[kind] not in {one["source"] for one in left if one["config"] == config}
    done(tool("configs", "append", "topic", topic, "cleanup.policy=compact"))
    done(tool("configs", "subtract", "topic", topic, "cleanup.policy=delete"))
    described = done(tool("configs", "describe", "topic", topic, "--verbose")).out.decode()
    assert "cleanup.policy" in described
    assert "retention policy" in described  # Kafka documents its configs
    wrong = tool("configs", "set", "topic", topic, "retention.mss=1")
    assert wrong.err.endswith(
        "Unknown topic config name: retention.mss; did you mean retention.ms?; nothing was changed\n"
    )


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_kafka_reads_what_is_produced(tool: Tool, topic: str, compression: str) -> None:
    """
    Kafka's consumer reads each record once, in order, whatever the compression.
    """
    text = "".join(f"{number}\n" for number in range(RECORDS))
    done(tool("produce", topic, "--partition", 2, "--compression", compression, text=text))
    reader = ("consumer.ConsoleConsumer", "--topic", topic, "--from-beginning", "--max-messages", str(RECORDS))
    assert java(tool, *reader) == text.split()
    assert done(tool("consume", topic)).out.decode() == text


def test_keys_have_javas_partitions(tool: Tool, topic: str) -> None:
    """
    Java's own partitioner and ours agree.
    """
    keys = [f"key-{number}" for number in range(50)]
    lines = "".join(f"{key}:java\n" for key in keys)
    told = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    java(tool, "ConsoleProducer", "--topic", topic, *told, text=lines)
    done(tool("produce", topic, "--key-delimiter", ":", text=lines.replace("java", "ours")))
    for writer in ("java", "ours"):
        printed = done(tool("consume", topic, "-f", r"%p %k %s\n", "-q")).lines
        placed = {line.split()[1]: int(line.split()[0]) for line in printed if line.endswith(writer)}
        assert placed == {key: partition_of(key.encode(), 3) for key in keys}


def test_consume_from_and_until(tool: Tool, topic: str) -> None:
    """
    The limits are offsets or times.
    """
    lines = [json.dumps({"value": str(number), "timestamp": 1000 * number, "partition": 0}) for number in range(9)]
    done(tool("produce", topic, "--json", text="\n".join(lines)))
    for options, first, last in (
        (["--from", "-2"], 7, 8),
        (["--from", "3", "--until", "5"], 3, 4),
        (["--from", "1970-01-01T00:00:02Z", "--until", "1970-01-01T00:00:04Z"], 2, 3),
        (["--until", "-8"], 0, 0),
    ):
        assert done(tool("consume", topic, *options)).lines == [str(number) for number in range(first, last + 1)]
    copy = done(tool("consume", topic, "--json")).out
    assert [json.loads(line)["timestamp"] for line in copy.splitlines()] == [1000 * number for number in range(9)]


def test_a_group(tool: Tool, topic: str) -> None:
    """
    A member resumes at the group's offsets and shares with a second member; its lag is that of Kafka's own tool.
    """
    group = f"of-{topic}"
    for index in range(3):
        done(tool("produce", topic, "--partition", index, text="1\n2\n3\n"))
    assert len(done(tool("consume", topic, "--group", group, "-n", 4)).lines) == 4
    [described] = done(tool("groups", "describe", group, "--json")).json["groups"]
    assert sum(part["committed"] or 0 for part in described["partitions"]) == 4
    assert len(done(tool("consume", topic, "--group", group)).lines) == 5
    rows = [line.split() for line in java(tool, "consumer.group.ConsumerGroupCommand", "--describe", "--group", group)]
    assert {tuple(row[2:6]) for row in rows if row[:2] == [group, topic]} == {
        (str(index), "3", "3", "0") for index in range(3)
    }
    follow = ("consume", topic, "--follow", "--group", group)
    with tool.start(*follow) as first, tool.start(*follow) as second:
        while True:
            [described] = tool("groups", "describe", group, "--json").json["groups"]
            owned = [member["assigned"] for member in described["members"]]
            if described["state"] == "Stable" and len(owned) == 2:
                break
        assert sorted(len(assigned[topic]) for assigned in owned) == [1, 2]
        for process in (first, second):
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0


def test_a_topic_of_small_batches(tool: Tool, topic: str, tmp_path: Path) -> None:
    """
    Batches are as small as the topic demands; a record that is too large is named.
    """
    done(tool("configs", "set", "topic", topic, "max.message.bytes=2000"))
    file = tmp_path / "lines"
    file.write_text("small\n" * 1000 + "x" * 3000 + "\n")
    refused = tool("produce", topic, file, "--partition", 0)
    assert refused.code == 1
    assert refused.err.startswith(f"kgateway produce: {file}, line 1001: MESSAGE_TOO_LARGE")
    assert refused.err.endswith("(1000 records were delivered)\n")
