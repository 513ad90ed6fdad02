"""
`kgateway topics` with a gateway that runs.
"""

import os
import pty
import re
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from kgateway.testing.kafka import Kafka
from tests.cli.tools import NO_RETENTION, Ended, Tool, new_topic


@pytest.fixture(scope="module")
def tool() -> Iterator[Tool]:
    """
    One gateway serves all tests.
    """
    with Kafka("--broker", "memory:", *NO_RETENTION) as kafka:
        yield Tool(kafka.bootstrap, kafka.control_socket)


@pytest.fixture
def topic(tool: Tool) -> str:
    """
    A topic of two partitions, with two records in the first and three in the second.
    """
    name = new_topic(tool, partitions=2)
    producer = Producer({"bootstrap.servers": tool.bootstrap})
    for value in ("a", "b"):
        producer.produce(name, value, partition=0)
    for number in range(3):
        producer.produce(name, str(number), partition=1, timestamp=1000 * number or 1)  # 0 would be now
    producer.flush()
    return name


def refused(ended: Ended) -> str:
    """
    The one-line reason of a failure.
    """
    assert ended.code == 1, ended
    [line] = ended.err.splitlines()
    return re.sub(r"^kgateway topics [\w-]+: ", "", line)


def starts(tool: Tool, topic: str) -> list[int]:
    """
    The start offset of each partition.
    """
    [described] = tool("topics", "describe", topic, "--json").json["topics"]
    return [part["start"] for part in described["partitions"]]


def test_list(tool: Tool, topic: str) -> None:
    """
    All or only the named topics are in a table.
    """
    heading, line = tool("topics", "list", topic).lines
    assert heading.split() == ["TOPIC", "PARTITIONS", "REPLICAS", "RECORDS", *heading.split()[4:]]
    assert line.split()[:4] == [topic, "2", "1", "5"]
    assert line.split()[-1] == "delete"
    listed = [line.split()[0] for line in tool("topics", "list").lines[1:]]
    assert topic in listed
    assert listed == sorted(listed)


def test_list_for_programs(tool: Tool, topic: str) -> None:
    """
    JSON has all details.
    """
    [told] = tool("topics", "list", topic, "--json").json["topics"]
    told.pop("bytes")  # not every server and broker reports it
    assert told == {
        "topic": topic,
        "partitions": 2,
        "replicas": 1,
        "records": 5,
        "cleanup_policy": "delete",
        "internal": False,
    }


def test_internal_topics_are_listed_on_request(tool: Tool, topic: str) -> None:
    tool("consume", topic, "--group", "any", "-n", 1)
    assert "__consumer_offsets" not in tool("topics", "list").out.decode()
    assert "__consumer_offsets" in tool("topics", "list", "--internal").out.decode()
    assert "__consumer_offsets" in tool("topics", "list", "__consumer_offsets").out.decode()


def test_no_topics() -> None:
    with Kafka("--broker", "memory:") as kafka:
        tool = Tool(kafka.bootstrap)
        assert tool("topics", "list").lines == ["there are no topics"]
        assert tool("topics", "list", "--json").json == {"topics": []}


def test_describe(tool: Tool, topic: str) -> None:
    """
    The partitions and the configs that are set are shown.
    """
    tool("configs", "set", "topic", topic, "retention.ms=86400000")
    summary, config, empty, heading, *rows = tool("topics", "describe", topic).lines
    assert summary.startswith(f"{topic}: 2 partitions, 1 replica, 5 records")
    assert (config, empty) == ("  retention.ms=86400000", "")
    assert heading.split() == ["PARTITION", "LEADER", "EPOCH", "START", "END", "RECORDS", "REPLICAS", "IN", "SYNC"]
    cells = [row.split() for row in rows]
    assert [[*row[:2], *row[3:]] for row in cells] == [
        ["0", "1", "0", "2", "2", "1", "1"],
        ["1", "1", "0", "3", "3", "1", "1"],
    ]


def test_describe_for_programs(tool: Tool, topic: str) -> None:
    """
    JSON has all details.
    """
    [told] = tool("topics", "describe", topic, "--json").json["topics"]
    assert (told["topic"], told["replicas"], told["records"], told["configs"]) == (topic, 1, 5, {})
    assert len(told["id"]) == 22
    ends = [(part["partition"], part["leader"], part["start"], part["end"]) for part in told["partitions"]]
    assert ends == [(0, 1, 0, 2), (1, 1, 0, 3)]
    assert [(part["replicas"], part["in_sync"]) for part in told["partitions"]] == [([1], [1])] * 2


def test_describe_several(tool: Tool) -> None:
    """
    Topics are separated by empty lines; for missing ones similar names are suggested.
    """
    one, two = new_topic(tool), new_topic(tool)
    out = tool("topics", "describe", one, two).out.decode()
    assert f"\n\n{two}: 1 partition, 1 replica, 0 records" in out
    told = refused(tool("topics", "describe", one, f"{two}x"))
    assert told.startswith(f"there is no topic {two}x; did you mean {two}")


def test_create(tool: Tool) -> None:
    """
    Options are obeyed, and the server chooses the rest.
    """
    options = (
        "--partitions",
        3,
        "--replicas",
        1,
        "--config",
        "retention.ms=1000",
        "--config",
        "cleanup.policy=compact",
    )
    assert tool("topics", "create", "made-a", "made-b", *options).lines == ["made-a: created", "made-b: created"]
    [told] = tool("topics", "describe", "made-b", "--json").json["topics"]
    assert len(told["partitions"]) == 3
    assert told["configs"] == {"cleanup.policy": "compact", "retention.ms": "1000"}
    tool("topics", "create", "made-c")
    [told] = tool("topics", "describe", "made-c", "--json").json["topics"]
    assert (len(told["partitions"]), told["configs"]) == (4, {})


def test_create_reports_what_is_not_as_it_was_given(tool: Tool) -> None:
    """
    A gateway of one node makes one replica, and values with units are sent as numbers.
    """
    config = ("--config", "retention.ms=1h", "--config", "cleanup.policy=delete")
    ended = tool("topics", "create", "made-g", "--replicas", 5, *config)
    assert ended.lines == ["made-g: created, with 1 replica instead of 5, retention.ms=3600000"]
    [described] = tool("topics", "describe", "made-g", "--json").json["topics"]
    assert described["configs"]["retention.ms"] == "3600000"
    ended = tool("topics", "create", "made-h", "--replicas", 5, "--json")
    assert ended.json == {"topics": [{"topic": "made-h", "created": True, "partitions": 4, "replicas": 1}]}


def test_create_invalid_topics(tool: Tool, topic: str) -> None:
    """
    They are refused with the server's reason; the others are created.
    """
    ended = tool("topics", "create", topic, "a b", "made-d")
    assert ended.lines == ["made-d: created"]
    assert refused(ended).startswith(f"{topic} was not created: TOPIC_ALREADY_EXISTS")
    assert "; 'a b' was not created: INVALID_TOPIC_EXCEPTION" in ended.err
    ended = tool("topics", "create", topic, "made-e", "--json")
    assert [(told["topic"], told["created"]) for told in ended.json["topics"]] == [(topic, False), ("made-e", True)]
    assert "retention.mss" in refused(tool("topics", "create", "made-f", "--config", "retention.mss=1"))


def test_alter(tool: Tool, topic: str) -> None:
    """
    Partitions can be added, but not removed.
    """
    assert tool("topics", "alter", topic, "--partitions", 5).lines == [f"{topic}: altered to 5 partitions"]
    assert starts(tool, topic) == [0] * 5
    told = refused(tool("topics", "alter", topic, "--partitions", 4))
    assert told.startswith(f"{topic} was not altered to 4 partitions: INVALID_PARTITIONS")
    told = refused(tool("topics", "alter", f"{topic}x", "--partitions", 4))
    assert told.startswith(f"there is no topic {topic}x; did you mean {topic}")


def test_delete(tool: Tool, topic: str) -> None:
    """
    Several topics can be deleted at once, by pattern too.
    """
    tool("topics", "create", f"{topic}-a", f"{topic}-b")
    assert tool("topics", "delete", topic, "--yes").lines == [f"{topic}: deleted"]
    ended = tool("topics", "delete", f"{topic}-*", "--yes", "--json")
    told = [{"topic": f"{topic}-{one}", "deleted": True} for one in "ab"]
    assert ended.json == {"topics": told}
    assert refused(tool("topics", "delete", f"{topic}-*", "--yes")) == f"no topic matches {topic}-*"


def test_delete_missing_topics(tool: Tool, topic: str) -> None:
    """
    The command is refused before anything is deleted.
    """
    told = refused(tool("topics", "delete", topic, f"{topic}x", "--yes"))
    assert told.startswith(f"there is no topic {topic}x; did you mean {topic}")
    assert tool("topics", "list", topic).code == 0


@pytest.mark.parametrize(
    "command", [["delete"], ["delete-records", "--before", "1"], ["purge"]], ids=lambda command: command[0]
)
def test_without_a_terminal_yes_is_required(tool: Tool, topic: str, command: list[str]) -> None:
    told = refused(tool("topics", *command, topic))
    assert told.startswith("this would delete ")
    assert told.endswith(": add --yes to confirm, because there is no terminal; nothing was done")
    assert starts(tool, topic) == [0, 0]


@pytest.mark.parametrize(("says", "deletes"), [("y", True), ("YES", True), ("n", False), ("", False), ("yet", False)])
def test_a_terminal_asks_for_confirmation(tool: Tool, topic: str, says: str, deletes: bool) -> None:
    """
    Only yes means yes.
    """
    main, other = pty.openpty()
    os.write(main, says.encode() + b"\n")
    with tool.start("topics", "delete", topic, stdin=other) as process:
        assert process.stderr
        told = process.stderr.read().decode()
        assert process.wait(30) == (0 if deletes else 1)
    os.close(main)
    os.close(other)
    assert told.startswith(f"delete {topic} with 5 records? [y/N] ")
    assert ("nothing was done" in told) == (not deletes)
    assert (tool("topics", "list", topic).code == 0) == (not deletes)


def test_a_pattern_is_deleted_only_with_yes(tool: Tool) -> None:
    """
    Without --yes it is a mistake, with advice on how to see the matching topics.
    """
    ended = tool("topics", "delete", "order*")
    assert ended.code == 2
    seen = "`kgateway topics list 'order*'` shows which topics match"
    assert ended.err.splitlines()[-1].endswith(
        f"order* is a pattern: add --yes to delete all topics that match; {seen}"
    )


@pytest.mark.parametrize(
    ("which", "before", "begin"),
    [
        ("", "1", [1, 1]),
        (":0", "1", [1, 0]),
        (":1", "1970-01-01T00:00:01Z", [0, 1]),
        (":1", "1970-01-01T00:00:01.001Z", [0, 2]),
        (":0,1", "2999-01-01", [2, 3]),
        ("", "end", [2, 3]),
        ("", "-1", [1, 2]),
        ("", "beginning", [0, 0]),
    ],
)
def test_delete_records(tool: Tool, topic: str, which: str, before: str, begin: list[int]) -> None:
    """
    Records before an offset are deleted in each named partition.
    """
    ended = tool("topics", "delete-records", f"{topic}{which}", "--before", before, "--yes")
    assert ended.code == 0
    assert starts(tool, topic) == begin
    rows = {int(row.split()[1]): [int(cell) for cell in row.split()[2:]] for row in ended.lines[1:]}
    assert rows == {index: [begin[index], begin[index], 2 + index] for index in rows}
    assert rows.keys() == ({int(index) for index in which[1:].split(",")} if which else {0, 1})


def test_delete_records_of_a_pattern(tool: Tool, topic: str) -> None:
    """
    A pattern stands for the topics that it matches, also with partitions.
    """
    pattern = f"{topic[:-1]}[{topic[-1]}]"
    for which, begin in (":1", [0, 1]), ("", [1, 1]):
        assert tool("topics", "delete-records", f"{pattern}{which}", "--before", 1, "--yes").code == 0
        assert starts(tool, topic) == begin


def test_delete_records_for_programs(tool: Tool, topic: str) -> None:
    """
    JSON has all details.
    """
    told = tool("topics", "delete-records", f"{topic}:1", "--before", 2, "--yes", "--json").json
    one = {"topic": topic, "partition": 1, "deleted": 2, "start": 2, "end": 3}
    assert told == {"partitions": [one]}


def test_delete_records_of_missing_partitions(tool: Tool, topic: str) -> None:
    """
    The command is refused before anything is deleted.
    """
    delete = ("topics", "delete-records", "--yes", "--before")
    told = refused(tool(*delete, 3, topic))
    assert told == f"{topic}-0 ends at 2: nothing beyond the end can be deleted; nothing was done"
    told = refused(tool(*delete, 1, f"{topic}:0,7"))
    assert told == f"there is no partition {topic}-7: {topic} has 2; nothing was done"
    assert starts(tool, topic) == [0, 0]


def test_records_of_a_compacted_topic_are_not_deleted(tool: Tool) -> None:
    """
    The server refuses, and the reason says what to do.
    """
    topic = new_topic(tool, cleanup_policy="compact")
    tool("produce", topic, "--key", "a", "--partition", 0, text="1\n")
    told = refused(tool("topics", "purge", topic, "--yes"))
    assert told.startswith(f"{topic}-0: POLICY_VIOLATION")


def test_purge(tool: Tool, topic: str) -> None:
    """
    The topic is empty, and its offsets continue.
    """
    assert tool("topics", "purge", topic, "--yes").code == 0
    assert starts(tool, topic) == [2, 3]
    tool("produce", topic, "--partition", 0, text="c")
    assert tool("consume", topic, "-f", "%o %s\n").lines == ["2 c"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["create", "a", "--partitions", "0"], "argument --partitions: must be a whole number of at least 1, not '0'"),
        (["create", "a", "--partitions", "2147483648"], "must be at most 2147483647, not 2147483648"),
        (["create", "a", "--replicas", "32768"], "must be at most 32767, not 32768"),
        (["create", "a", "--config", "b"], "argument --config: 'b' is not NAME=VALUE"),
        (["create", "a", "--config", "b=1", "--config", "b=2"], "b is given twice: which value should it have?"),
        (["create", "a\udcff"], r"'a\udcff': a topic name has only letters, digits, '.', '_' and '-'"),
        (["create", "-t", "a\udcff"], r"'a\udcff': a topic name has only letters, digits, '.', '_' and '-'"),
        (["list", "--json=1"], "argument --json: it has no value, but '1' is given"),
        (["alter", "a"], "the following arguments are required: --partitions"),
        (["delete-records", "a:x", "--before", "1"], "'a:x' is not TOPIC or TOPIC:N,N"),
        (["delete-records", "a", "--before", "x"], "argument --before: 'x' must be beginning, end"),
        (["list", "--timeout", "0"], "argument --timeout: must be a number of seconds above 0, up to 86400, not '0'"),
        ([], "name a command: list, describe, create, alter, delete, delete-records, purge"),
    ],
)
def test_mistakes_in_the_command(tool: Tool, given: list[str], says: str) -> None:
    """
    Mistakes are reported before a server is asked.
    """
    ended = tool("topics", *given)
    assert ended.code == 2
    assert says in ended.err.splitlines()[-1]


@pytest.mark.parametrize(
    "given",
    [
        ("topics", "create", "a", "--config", "retention.ms=\udcff"),
        ("configs", "set", "topic", "TOPIC", "retention.ms=\udcff"),
        ("groups", "describe", "a\udcff"),
        ("consume", "TOPIC", "--group", "\udcff"),
        ("produce", "a\udcff", "--create"),
    ],
)
def test_names_that_are_no_utf_8(tool: Tool, topic: str, given: tuple[str, ...]) -> None:
    """
    They are refused in one line.
    """
    ended = tool(*[topic if word == "TOPIC" else word for word in given], text="value\n")
    assert ended.code == 2
    assert "that does not fit into a request" in ended.err
    assert "Traceback" not in ended.err


def test_an_unreachable_server_is_reported() -> None:
    """
    The reason is followed by what named the address, in each subcommand.
    """
    tool = Tool("127.0.0.1:1")
    for command, called in (
        (["topics", "list"], "topics list"),
        (["configs", "describe", "topic", "a"], "configs describe"),
        (["produce", "a"], "produce"),
        (["consume", "a"], "consume"),
    ):
        ended = tool(*command)
        assert (ended.code, ended.out) == (1, b"")
        assert ended.err == f"kgateway {called}: nothing listens at 127.0.0.1:1; that is $KGATEWAY_BOOTSTRAP\n"
