"""
`kgateway consume` with a gateway that runs.
"""

import os
import pty
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kgateway.testing.kafka import Kafka
from tests.cli.tools import NO_RETENTION, Tool, new_topic

BEGAN_MS = 1_795_284_000_000  # 2026-11-21T18:00:00Z
RECORDS = 10  # in each partition of the topic, a second apart, with the numbers of their offsets


@pytest.fixture(scope="module")
def tool() -> Iterator[Tool]:
    """
    One gateway serves all tests.
    """
    fast = ("--group-initial-rebalance-delay-ms", "0", "--group-min-session-timeout-ms", "1")
    with Kafka("--broker", "memory:", *fast, *NO_RETENTION) as kafka:
        yield Tool(kafka.bootstrap, kafka.control_socket)


@pytest.fixture(scope="module")
def topic(tool: Tool) -> str:
    """
    A topic of two partitions.
    """
    name = new_topic(tool, partitions=2)
    producer = Producer({"bootstrap.servers": tool.bootstrap})
    for number in range(2 * RECORDS):
        index, offset = number % 2, number // 2
        producer.produce(name, b"%d" % offset, b"k%d" % index, index, timestamp=BEGAN_MS + offset * 1000)
    producer.flush()
    return name


def by_partition(lines: list[str]) -> dict[int, list[int]]:
    """
    The offsets printed as `%p %o`, in order of their partition.
    """
    found: dict[int, list[int]] = {}
    for line in lines:
        index, offset = line.split()
        found.setdefault(int(index), []).append(int(offset))
    return found


@pytest.mark.parametrize(
    ("options", "first", "last"),
    [
        ([], 0, 9),
        (["--from", "beginning", "--until", "end"], 0, 9),
        (["--from", "7"], 7, 9),
        (["--from", "-2"], 8, 9),
        (["--from", "-99"], 0, 9),
        (["--from", "2026-11-21T18:00:04Z"], 4, 9),
        (["--from", "2026-11-21T18:00:03.5"], 4, 9),
        (["--until", "3"], 0, 2),
        (["--until", "-3"], 0, 6),
        (["--until", "99"], 0, 9),
        (["--until", "2026-11-21T18:00:04Z"], 0, 3),
        (["--until", "2027-01-01"], 0, 9),
        (["--from", "2", "--until", "2026-11-21T18:00:04Z"], 2, 3),
    ],
)
def test_from_and_until(tool: Tool, topic: str, options: list[str], first: int, last: int) -> None:
    """
    Both apply to each partition; without --follow reading ends at the current end of the log.
    """
    ended = tool("consume", topic, *options, "-f", "%p %o\n")
    assert ended.code == 0
    assert by_partition(ended.lines) == {index: [*range(first, last + 1)] for index in range(2)}
    count = 2 * (last - first + 1)
    assert ended.err.startswith(f"{count} records ({3 * count} bytes) consumed in ")


@pytest.mark.parametrize(
    ("place", "notes"),
    [
        ("end", []),
        ("10", []),
        ("11", ["{}-0: 11 requested, but the log ends at 10", "{}-1: 11 requested, but the log ends at 10"]),
        ("2027-01-01", ["no record has the time 2027-01-01T00:00:00.000Z or a later one"]),
    ],
)
def test_nothing_to_read(tool: Tool, topic: str, place: str, notes: list[str]) -> None:
    """
    Without records the command ends at once, and says if the start is past the end.
    """
    ended = tool("consume", topic, "--from", place)
    assert (ended.code, ended.out) == (0, b"")
    *noted, summary = ended.err.splitlines()
    assert noted == [f"kgateway consume: {note.format(topic)}" for note in notes]
    assert summary.startswith("0 records (0 bytes) consumed in ")


def test_a_start_outside_the_log(tool: Tool, topic: str) -> None:
    """
    A note says where the log begins or ends.
    """
    ended = tool("consume", topic, "--partition", 0, "--from", 11)
    assert (ended.code, ended.out) == (0, b"")
    assert ended.err.startswith(f"kgateway consume: {topic}-0: 11 requested, but the log ends at 10\n")
    assert tool("consume", topic, "--partition", 0, "--from", 11, "-q").err == ""


def test_a_count(tool: Tool, topic: str) -> None:
    """
    The count is of all partitions together.
    """
    assert len(tool("consume", topic, "-n", 13).lines) == 13
    assert len(tool("consume", topic, "--count", 99).lines) == 20


def test_partitions(tool: Tool, topic: str) -> None:
    """
    Only the named partitions are read.
    """
    assert by_partition(tool("consume", topic, "--partition", 1, "-f", "%p %o\n").lines).keys() == {1}
    assert by_partition(tool("consume", topic, "--partition", "1,0", "-f", "%p %o\n").lines).keys() == {0, 1}


def test_several_topics(tool: Tool, topic: str) -> None:
    """
    Topics are named or matched by a pattern; each is read once.
    """
    other = new_topic(tool)
    tool("produce", other, text="x\n")
    lines = tool("consume", topic, other, f"{topic}*", "-f", "%t %s\n").lines
    assert len(lines) == 2 * RECORDS + 1
    assert f"{other} x" in lines


def test_a_format(tool: Tool, topic: str) -> None:
    """
    The output is what kcat prints.
    """
    ended = tool("consume", topic, "--partition", 1, "-n", 1, "-f", r"%t [%p] %o %T %k=%s\x21\n")
    assert ended.out.decode() == f"{topic} [1] 0 {BEGAN_MS} k1=0!\n"


def test_an_empty_format(tool: Tool, topic: str) -> None:
    """
    The command prints nothing for a record.
    """
    assert tool("consume", topic, "-f", "").out == b""


def test_json(tool: Tool, topic: str) -> None:
    """
    Each record is a line, and `produce --json` reads the lines.
    """
    ended = tool("consume", topic, "--partition", 1, "--json")
    first = '{"topic": "%s", "partition": 1, "offset": 0, "timestamp": %d, "key": "k1", "value": "0", "headers": []}'
    assert ended.lines[0] == first % (topic, BEGAN_MS)
    copy = new_topic(tool, partitions=2)
    tool("produce", copy, "--json", text=ended.out)
    assert tool("consume", copy, "--json").out == ended.out.replace(topic.encode(), copy.encode())


def test_bytes_are_printed_unchanged(tool: Tool) -> None:
    """
    A pipe gets the bytes; options print them in hex, or escaped.
    """
    topic, data = new_topic(tool), bytes(range(256)).replace(b"\n", b"")
    tool("produce", topic, "--key", "k", text=data)
    assert tool("consume", topic).out == data + b"\n"
    assert tool("consume", topic, "--value-as", "hex").out == data.hex().encode() + b"\n"
    escaped = tool("consume", topic, "--value-as", "escaped", "--key-as", "hex", "-f", r"%k %s\n").out
    assert escaped.startswith(rb"6b \x00\x01")
    assert escaped.endswith(rb"\xfe\xff" + b"\n")


def test_a_terminal_is_protected_from_records(tool: Tool) -> None:
    """
    On a terminal, cursor movements are escaped unless an option says otherwise.
    """
    topic = new_topic(tool)
    tool("produce", topic, text="\x1b[2Jä")
    main, other = pty.openpty()
    with tool.start("consume", topic, stdout=other) as process:
        os.close(other)
        assert os.read(main, 100).decode() == "\\x1b[2Jä\r\n"
        assert process.wait(30) == 0
    os.close(main)


def test_records_of_each_codec_are_read(tool: Tool) -> None:
    topic = new_topic(tool)
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        tool("produce", topic, "--compression", codec, text=f"{codec}\n" * 3)
    assert tool("consume", topic, "--from", 1).lines == [*["gzip"] * 2, *["snappy"] * 3, *["lz4"] * 3, *["zstd"] * 3]


def test_many_records_are_printed_as_sent(tool: Tool, tmp_path: Path) -> None:
    topic, text = new_topic(tool), b"".join(b"%d\n" % number for number in range(200_000))
    tool("produce", topic, text=text)
    assert tool("consume", topic).out == text


def test_follow(tool: Tool) -> None:
    """
    New records are printed as they arrive; after Ctrl-C a summary counts them.
    """
    topic = new_topic(tool)
    with tool.start("consume", topic, "--follow") as process:
        assert process.stdout
        assert process.stderr
        for line in (b"1\n", b"2\n"):
            tool("produce", topic, text=line)
            assert process.stdout.readline() == line
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stdout.read() == b""
        assert process.stderr.read().startswith(b"2 records (2 bytes) consumed in ")


def test_follow_to_an_end(tool: Tool) -> None:
    """
    The end may be ahead of the log.
    """
    topic = new_topic(tool)
    with (
        tool.start("consume", topic, "--follow", "--until", 2) as to_an_offset,
        tool.start("consume", topic, "--follow", "--until", "2026-11-21") as to_a_time,
        tool.start("consume", topic, "--follow", "-n", 2) as to_a_count,
    ):
        for value, timestamp in (("1", 5), ("2", 6), ("3", BEGAN_MS)):
            tool("produce", topic, "--json", text=f'{{"value": "{value}", "timestamp": {timestamp}}}')
        for process in (to_an_offset, to_a_time, to_a_count):
            assert process.stdout
            assert process.stdout.read() == b"1\n2\n"
            assert process.wait(30) == 0


def test_a_closed_pipe(tool: Tool) -> None:
    """
    The command ends quietly, as it does for `| head`.
    """
    topic = new_topic(tool)
    tool("produce", topic, text="0\n")
    with tool.start("consume", topic, "--follow") as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        tool("produce", topic, text="more\n")
        assert process.wait(30) == 0
        assert process.stderr.read() == b""


def test_an_unwritable_stdout(tool: Tool, topic: str) -> None:
    """
    The failure is one line, and only printed records are committed.
    """
    group = f"full-{topic}"
    with Path("/dev/full").open("wb") as full:
        for given in ([topic], [topic, "--group", group]):
            with tool.start("consume", *given, stdout=full) as process:
                assert process.stderr
                assert process.stderr.read() == b"kgateway consume: stdout cannot be written: No space left on device\n"
                assert process.wait(30) == 1
    assert len(tool("consume", topic, "--group", group).lines) == 2 * RECORDS


def test_a_restarted_server(tmp_path: Path) -> None:
    """
    A follower continues without gaps and duplicates.
    """
    with Kafka("--broker", f"log:{tmp_path / 'data'}") as first:
        tool, port = Tool(first.bootstrap), first.port
        topic = new_topic(tool)
        process = tool.start("consume", topic, "--follow")
        assert process.stdout
        tool("produce", topic, text="1\n")
        assert process.stdout.readline() == b"1\n"
    listen = ("--listen", f"tcp:{port}:interface=127.0.0.1")
    with process, Kafka("--broker", f"log:{tmp_path / 'data'}", *listen):
        tool("produce", topic, text="2\n")
        assert process.stdout.readline() == b"2\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == b""


def test_damaged_records(tmp_path: Path) -> None:
    """
    What other partitions have is printed and committed, before the error names the offset.
    """
    with Kafka(folder=tmp_path) as kafka:
        tool = Tool(kafka.bootstrap)
        topic = new_topic(tool, partitions=2)
        producer = Producer({"bootstrap.servers": tool.bootstrap})
        for value in (b"a", b"b", b"c"):
            for index in range(2):
                producer.produce(topic, value, partition=index)
            producer.flush()
        kafka.stop()
        [log] = tmp_path.glob(f"*/{topic}-1/{0:020d}.log")
        data = bytearray(log.read_bytes())
        data[len(data) // 2] ^= 1  # in the second of three batches
        log.write_bytes(data)
        kafka.start()
        tool = Tool(kafka.bootstrap)
        for options in ([], ["--group", "group"], ["--follow"]):
            ended = tool("consume", topic, "--quiet", *options)
            assert (ended.code, sorted(ended.lines)) == (1, ["a", "a", "b", "c"])
            assert ended.err == (
                f"kgateway consume: CORRUPT_MESSAGE: {topic}-1: the records at offset 1 are damaged on the server; "
                "reading can continue at a later offset\n"
            )
        assert tool("consume", topic, "--partition", "1", "--from", "2").lines == ["c"]
        [group] = tool("groups", "describe", "group", "--json").json["groups"]
        assert [part["committed"] for part in group["partitions"]] == [3, 1]


class TestGroup:
    """
    The command as a member of a group.
    """

    def test_it_resumes(self, tool: Tool) -> None:
        """
        Exactly the printed records are committed.
        """
        topic = new_topic(tool)
        tool("produce", topic, text="".join(f"{number}\n" for number in range(10)))
        group = ("--group", f"of-{topic}")
        assert tool("consume", topic, *group, "-n", 4).lines == ["0", "1", "2", "3"]
        assert self.committed(tool, topic) == 4
        assert tool("consume", topic, *group).lines == ["4", "5", "6", "7", "8", "9"]
        assert tool("consume", topic, *group).lines == []
        assert self.committed(tool, topic) == 10

    def test_a_new_group_begins_at_from(self, tool: Tool) -> None:
        """
        --from applies if the group has committed nothing.
        """
        topic = new_topic(tool)
        tool("produce", topic, text="0\n1\n2\n")
        for lines in (["2"], []):
            assert tool("consume", topic, "--group", f"of-{topic}", "--from", "-1").lines == lines

    def test_members_share(self, tool: Tool) -> None:
        """
        A second member gets a partition of the first; each record is printed once, and the remaining member reads the
        rest.
        """
        topic = new_topic(tool, partitions=2)
        follow = ("consume", topic, "--follow", "--group", f"of-{topic}", "-f", "%p\n")
        with tool.start(*follow) as first:
            assert first.stdout
            self.produce(tool, topic)
            assert {first.stdout.readline(), first.stdout.readline()} == {b"0\n", b"1\n"}
            with tool.start(*follow) as second:
                assert second.stdout
                self.wait_for_members(tool, topic, 2)
                self.produce(tool, topic)
                assert {first.stdout.readline(), second.stdout.readline()} == {b"0\n", b"1\n"}
                second.send_signal(signal.SIGINT)
                assert (second.stdout.read(), second.wait(30)) == (b"", 0)
            self.wait_for_members(tool, topic, 1)
            self.produce(tool, topic)
            assert {first.stdout.readline(), first.stdout.readline()} == {b"0\n", b"1\n"}
            first.send_signal(signal.SIGINT)
            assert (first.stdout.read(), first.wait(30)) == (b"", 0)

    def test_it_shares_with_other_clients(self, tool: Tool) -> None:
        """
        Another client may lead the group.
        """
        topic = new_topic(tool, partitions=2)
        other = Consumer({"bootstrap.servers": tool.bootstrap, "group.id": f"of-{topic}"})
        other.subscribe([topic])
        try:
            while len(other.assignment()) != 2:
                other.poll(0.1)
            with tool.start("consume", topic, "--follow", "--group", f"of-{topic}", "-f", "%p\n") as process:
                assert process.stdout
                while len(other.assignment()) != 1:
                    other.poll(0.1)
                [theirs] = other.assignment()
                self.produce(tool, topic)
                assert process.stdout.readline() == b"%d\n" % (1 - theirs.partition)
                process.send_signal(signal.SIGINT)
                assert process.wait(30) == 0
        finally:
            other.close()

    @staticmethod
    def committed(tool: Tool, topic: str) -> int:
        """
        The committed offset of partition 0, as librdkafka sees it.
        """
        consumer = Consumer({"bootstrap.servers": tool.bootstrap, "group.id": f"of-{topic}"})
        try:
            [place] = consumer.committed([TopicPartition(topic, 0)], timeout=30)
        finally:
            consumer.close()
        return int(place.offset)

    @staticmethod
    def produce(tool: Tool, topic: str) -> None:
        """
        Sends a record to each of two partitions.
        """
        tool("produce", topic, "--json", text='{"partition": 0}\n{"partition": 1}\n')

    @staticmethod
    def wait_for_members(tool: Tool, topic: str, number: int) -> None:
        """
        Wait until the group is stable with this many members.
        """
        while True:
            [group] = tool("groups", "describe", f"of-{topic}", "--json").json["groups"]
            if group["state"] == "Stable" and len(group["members"]) == number:
                return


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--from", "start"], "argument -o/--from/--offset: 'start' must be beginning, end, an offset"),
        (["--until", "x"], "argument --until: 'x' must be beginning"),
        (["-f", "%z"], "argument -f/--format: there is no format '%z' (character 1); the formats are %t"),
        (["-n", "0"], "argument -n/-c/--count/--max-messages: must be a whole number of at least 1, not '0'"),
        (["--partition", "a"], "argument -p/--partition: 'a' is not N or N,N"),
        (["--group", "g", "--partition", "0"], "--partition and --group: the group assigns the partitions"),
        (["--group", ""], "argument --group: an empty group id: is a shell variable unset?"),
        (["--json", "-f", "%s"], "argument -f/--format: not allowed with argument -J/--json"),
        (["--json", "--key-as", "hex"], "--key-as and --value-as cannot be used with --json"),
        (["--value-as", "octal"], "argument --value-as: 'octal' must be one of text, hex, escaped"),
    ],
)
def test_mistakes_in_the_command(tool: Tool, options: list[str], says: str) -> None:
    """
    Mistakes are reported before a server is asked.
    """
    ended = tool("consume", "nothing", *options)
    assert ended.code == 2
    assert says in ended.err.splitlines()[-1]


@pytest.mark.parametrize(
    "given",
    [
        "-b SERVER -t TOPIC -p 1 -o -2 -c 1 -e -f %o -q",
        "--bootstrap-server SERVER --topic TOPIC --partition 1 --offset 8 --max-messages 1 -f %o -q",
        "--bootstrap-server SERVER TOPIC --from-beginning -t TOPIC -p 1 -n 1 -f 8",
        "-b SERVER -G aliases-GROUP TOPIC -c 1 -f 8",
    ],
)
def test_options_of_other_tools(tool: Tool, topic: str, given: str) -> None:
    """
    Those of kcat and of Kafka's console consumer mean the same here.
    """
    words = given.replace("SERVER", tool.bootstrap).replace("TOPIC", topic).split()
    ended = Tool("127.0.0.1:1")("consume", *words)
    assert (ended.code, ended.out) == (0, b"8")


def test_keys_before_values(tool: Tool, topic: str) -> None:
    """
    The delimiter is text, in which \\t is a tab; what is printed can be produced again.
    """
    assert tool("consume", topic, "-p", 1, "-c", 2, "-K", "\\t%").lines == ["k1\t%0", "k1\t%1"]


def test_missing_topics_and_partitions(tool: Tool) -> None:
    """
    The reason suggests similar names.
    """
    topic = new_topic(tool, partitions=2)
    ended = tool("consume", topic.replace("topic", "topci"))
    assert ended.code == 1
    assert "did you mean" in ended.err
    assert tool("consume", topic, "--partition", "0,2").err == (
        f"kgateway consume: there is no partition 2: {topic} has 2\n"
    )
