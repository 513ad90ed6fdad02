"""
`kgateway configs` with a gateway that runs.
"""

import re
from collections.abc import Iterator

import pytest

from kgateway.testing.kafka import Kafka
from tests.cli.tools import Tool, new_topic


@pytest.fixture(scope="module")
def tool() -> Iterator[Tool]:
    """
    One gateway serves all tests.
    """
    with Kafka("--broker", "memory:") as kafka:
        yield Tool(kafka.bootstrap, kafka.control_socket)


@pytest.fixture
def topic(tool: Tool) -> str:
    """
    A topic with a config of its own.
    """
    return new_topic(tool, retention_ms="1000")


def is_set(tool: Tool, topic: str) -> dict[str, str]:
    """
    The configs that are set for the topic.
    """
    told = tool("configs", "describe", "topic", topic, "--json").json
    return {config["config"]: config["value"] for config in told["configs"]}


def test_describe(tool: Tool, topic: str) -> None:
    """
    Configs that are set are shown with source and default.
    """
    heading, line = tool("configs", "describe", "topic", topic).lines
    assert heading.split() == ["CONFIG", "VALUE", "SOURCE", "DEFAULT"]
    assert line.split() == ["retention.ms", "1000", "topic", "604800000"]


def test_describe_all(tool: Tool, topic: str) -> None:
    """
    Default configs are shown too.
    """
    rows = {line.split()[0]: line.split()[1:] for line in tool("configs", "describe", "topic", topic, "--all").lines}
    assert rows["cleanup.policy"] == ["delete", "default", "delete"]
    assert rows["retention.ms"] == ["1000", "topic", "604800000"]


def test_describe_what_an_option_has_set(tool: Tool) -> None:
    """
    Options, the environment and the file of settings are one source.
    """
    _, *rows = tool("configs", "describe", "broker", "1").lines
    [line] = [row for row in rows if row.startswith("log.dirs ")]
    assert re.split("  +", line) == ["log.dirs", "memory", "set at start", "-"]


def test_describe_nothing(tool: Tool) -> None:
    """
    The command says how to see more.
    """
    topic = new_topic(tool)
    [line] = tool("configs", "describe", "topic", topic).lines
    assert line.startswith(f"topic {topic} has no configs of its own: --all shows ")


def test_describe_for_programs(tool: Tool, topic: str) -> None:
    """
    JSON has all details.
    """
    told = tool("configs", "describe", "topic", topic, "--json").json
    assert (told["kind"], told["name"]) == ("topic", topic)
    [config] = told["configs"]
    config.pop("documentation")
    assert config == {
        "config": "retention.ms",
        "value": "1000",
        "source": "topic",
        "default": "604800000",
        "read_only": False,
        "sensitive": False,
    }


def test_describe_a_broker(tool: Tool) -> None:
    """
    The broker itself is asked; for a missing one the existing brokers are named.
    """
    rows = [line.split()[0] for line in tool("configs", "describe", "broker", 1, "--all").lines]
    assert "num.partitions" in rows
    assert tool("configs", "describe", "broker", 7).err == (
        "kgateway configs describe: BROKER_NOT_AVAILABLE: there is no broker 7; there are: 1\n"
    )


def test_a_group_has_configs_before_it_exists(tool: Tool) -> None:
    group, session = ("group", "billing"), "consumer.session.timeout.ms"
    assert tool("configs", "set", *group, f"{session}=60000").lines == [f"group billing: {session}=60000 set"]
    assert tool("configs", "describe", *group).lines[1].split() == [session, "60000", "group", "45000"]
    assert tool("configs", "unset", *group, session).lines == [f"group billing: {session} unset"]
    assert tool("configs", "describe", *group).lines[0].startswith("group billing has no configs of its own")


def test_set_and_unset(tool: Tool, topic: str) -> None:
    """
    Several configs can be changed at once.
    """
    told = tool("configs", "set", "topic", topic, "retention.ms=5", "max.message.bytes=99999").lines
    assert told == [f"topic {topic}: retention.ms=5 set", f"topic {topic}: max.message.bytes=99999 set"]
    assert is_set(tool, topic) == {"retention.ms": "5", "max.message.bytes": "99999"}
    assert tool("configs", "unset", "topic", topic, "retention.ms").lines == [f"topic {topic}: retention.ms unset"]
    assert is_set(tool, topic) == {"max.message.bytes": "99999"}


def test_append_and_subtract(tool: Tool, topic: str) -> None:
    """
    Both change lists.
    """
    told = tool("configs", "append", "topic", topic, "cleanup.policy=compact").lines
    assert told == [f"topic {topic}: cleanup.policy=compact appended"]
    assert is_set(tool, topic)["cleanup.policy"] == "delete,compact"
    told = tool("configs", "subtract", "topic", topic, "cleanup.policy=delete").lines
    assert told == [f"topic {topic}: cleanup.policy=delete subtracted"]
    assert is_set(tool, topic)["cleanup.policy"] == "compact"


@pytest.mark.parametrize(
    ("given", "done"),
    [
        (["set", "retention.ms=5"], "retention.ms=5 would be set"),
        (["append", "cleanup.policy=compact"], "cleanup.policy=compact would be appended"),
        (["unset", "retention.ms"], "retention.ms would be unset"),
    ],
)
def test_a_dry_run_changes_nothing(tool: Tool, topic: str, given: list[str], done: str) -> None:
    how, *values = given
    assert tool("configs", how, "topic", topic, *values, "--dry-run").lines == [f"topic {topic}: {done}"]
    told = tool("configs", how, "topic", topic, *values, "--dry-run", "--json").json
    names = [value.partition("=")[0] for value in values]
    assert told == {"kind": "topic", "name": topic, "changed": False, "configs": names}
    assert is_set(tool, topic) == {"retention.ms": "1000"}


@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]])
@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("retention.mss=5", "did you mean retention.ms?; nothing was changed"),
        ("retention.ms=soon", "; nothing was changed"),
        ("segment.bytes=-7", "; nothing was changed"),
    ],
)
def test_a_refusal(tool: Tool, topic: str, value: str, says: str, dry_run: list[str]) -> None:
    """
    The command changes nothing, and suggests the nearest name.
    """
    ended = tool("configs", "set", "topic", topic, "max.message.bytes=99999", value, *dry_run)
    assert (ended.code, ended.out) == (1, b"")
    [line] = ended.err.splitlines()
    assert line.startswith("kgateway configs set: INVALID_CONFIG: ")
    assert line.endswith(says)
    assert is_set(tool, topic) == {"retention.ms": "1000"}


def test_unset_of_an_unknown_config(tool: Tool, topic: str) -> None:
    """
    The command changes nothing, and suggests the nearest name.
    """
    for name, says in (("retenton.ms", "; did you mean retention.ms?"), ("x", "")):
        ended = tool("configs", "unset", "topic", topic, "retention.ms", name)
        assert (ended.code, ended.out) == (1, b"")
        assert ended.err == f"kgateway configs unset: topic {topic} has no config {name}{says}; nothing was changed\n"
    assert is_set(tool, topic) == {"retention.ms": "1000"}


def test_diff(tool: Tool, topic: str) -> None:
    """
    Differing configs are listed by name.
    """
    other = new_topic(tool, cleanup_policy="compact")
    heading, *rows = [line.split() for line in tool("configs", "diff", topic, other).lines]
    assert heading == ["CONFIG", topic, other]
    assert rows == [["cleanup.policy", "delete", "compact"], ["retention.ms", "1000", "604800000"]]
    told = tool("configs", "diff", topic, other, "--json").json
    assert told["topics"] == [topic, other]
    assert told["configs"][0] == {"config": "cleanup.policy", "values": ["delete", "compact"]}
    assert tool("configs", "diff", topic, topic).lines == [f"{topic} and {topic} have the same configs"]


def test_a_missing_topic(tool: Tool, topic: str) -> None:
    """
    Each subcommand suggests the nearest names.
    """
    for given in (["describe", "topic"], ["set", "topic"], ["unset", "topic"], ["diff", topic]):
        values = {"set": ["retention.ms=1"], "unset": ["retention.ms"]}.get(given[0], [])
        ended = tool("configs", *given, f"{topic}x", *values)
        assert ended.code == 1
        assert ended.err.startswith(f"kgateway configs {given[0]}: there is no topic {topic}x; did you mean {topic}")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["describe", "user", "a"], "argument KIND: 'user' must be one of topic, broker, group"),
        (["set", "topic", "a", "b"], "argument CONFIG=VALUE: 'b' is not NAME=VALUE"),
        (
            ["set", "topic", "a", "b=1", "c=2", "b=1"],
            "configs set: error: b is given twice: which value should it have?",
        ),
        (["append", "topic", "a", "b=1", "b=2"], "b is given twice: which value should it have?"),
        (["subtract", "topic", "a", "b=1", "b=2"], "b is given twice: which value should it have?"),
        (["set", "topic", "a"], "the following arguments are required: CONFIG=VALUE"),
    ],
)
def test_mistakes_in_the_command(tool: Tool, given: list[str], says: str) -> None:
    """
    Mistakes are reported before a server is asked.
    """
    ended = tool("configs", *given)
    assert ended.code == 2
    assert says in ended.err.splitlines()[-1]


def test_values_may_have_units(tool: Tool, topic: str) -> None:
    """
    The output shows the numbers that are set.
    """
    ended = tool("configs", "set", "topic", topic, "retention.ms=1h", "segment.bytes=1MiB")
    assert ended.lines == [
        f"topic {topic}: retention.ms=3600000 set",
        f"topic {topic}: segment.bytes=1048576 set",
    ]
    ended = tool("configs", "set", "topic", topic, "segment.bytes=1MB")
    assert (ended.code, "there is no unit MB" in ended.err) == (2, True)
