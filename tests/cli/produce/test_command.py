"""
`kgateway produce` with a gateway that runs.
"""

import json
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest
from confluent_kafka import Producer

from kgateway.client.producer import partition_of
from kgateway.testing.kafka import Kafka
from tests.cli.tools import NO_RETENTION, Ended, Tool, new_topic, stored


@pytest.fixture(scope="module")
def tool() -> Iterator[Tool]:
    """
    One gateway serves all tests.
    """
    with Kafka("--broker", "memory:", *NO_RETENTION) as kafka:
        yield Tool(kafka.bootstrap, kafka.control_socket)


def values(tool: Tool, topic: str, number: int, partitions: int = 1) -> list[bytes | None]:
    """
    The values in a topic, as librdkafka reads them.
    """
    return [message.value() for message in stored(tool.bootstrap, topic, number, partitions)]


def refused(ended: Ended) -> str:
    """
    The one-line reason of a failure.
    """
    assert ended.code == 1, ended
    [line] = ended.err.splitlines()
    return line.removeprefix("kgateway produce: ")


def test_lines_of_stdin(tool: Tool) -> None:
    """
    Each line is a record, in order, even an empty one or a last one without a line end; bytes do not change.
    """
    topic = new_topic(tool)
    ended = tool("produce", topic, text=b"a\n\n\xff\0b\nc")
    assert (ended.code, ended.out) == (0, b"")
    assert ended.err.startswith(f"4 records (5 bytes) produced to {topic} in ")
    assert values(tool, topic, 4) == [b"a", b"", b"\xff\0b", b"c"]


def test_empty_input_has_no_record(tool: Tool) -> None:
    topic = new_topic(tool)
    assert tool("produce", topic).err.startswith("0 records (0 bytes)")
    assert tool("produce", topic, "--quiet").err == ""


def test_options_of_other_tools(tool: Tool, tmp_path: Path) -> None:
    """
    Those of kcat mean the same here; with -t all arguments are files.
    """
    topic, file = new_topic(tool, partitions=2), tmp_path / "file"
    file.write_text("a\n")
    server = Tool("127.0.0.1:1")
    assert server("produce", "-b", tool.bootstrap, "-t", topic, "-p", 1, "-k", "key", "-z", "lz4", "-q", file).code == 0
    assert (
        server("produce", "-b", tool.bootstrap, "-t", topic, "-p", 1, "-K", ":", "-H", "h=1", "-q", text="k:b").code
        == 0
    )
    first, second = stored(tool.bootstrap, topic, 2, partitions=2)
    assert (first.partition(), first.key(), first.value()) == (1, b"key", b"a")
    assert (second.key(), second.value(), second.headers()) == (b"k", b"b", [("h", b"1")])


def test_lines_of_files(tool: Tool, tmp_path: Path) -> None:
    """
    Files are read one after the other; - is stdin.
    """
    topic, (one, two) = new_topic(tool), [tmp_path / name for name in "ab"]
    one.write_bytes(b"1\n2\n")
    two.write_bytes(b"3")
    assert tool("produce", topic, one, "--quiet", "-", two, text=b"x\n").err == ""
    assert values(tool, topic, 4) == [b"1", b"2", b"x", b"3"]


def test_whole_files(tool: Tool, tmp_path: Path) -> None:
    """
    Each file is a record with all its lines, and may be empty.
    """
    topic, (one, two) = new_topic(tool), [tmp_path / name for name in "ab"]
    one.write_bytes(b"1\n2\n")
    two.write_bytes(b"")
    tool("produce", topic, "--whole-file", one, two)
    assert values(tool, topic, 2) == [b"1\n2\n", b""]


def test_a_line_longer_than_a_read(tool: Tool) -> None:
    """
    The line is one record, however its pieces arrive.
    """
    topic = new_topic(tool, max_message_bytes="10000000")
    line = b"0123456789" * 300_000
    tool("produce", topic, text=b"a\n" + line + b"\nb\n")
    assert values(tool, topic, 3) == [b"a", line, b"b"]


def test_keys_headers_and_a_partition(tool: Tool) -> None:
    """
    Options apply to all records; a delimiter may have several characters, and may occur in the value.
    """
    topic = new_topic(tool, partitions=3)
    headers = ("--header", "a=1", "--header", "b=x=y")
    tool("produce", topic, "--partition", 2, "--key-delimiter", "::", *headers, text="k::v::w\n::\n")
    tool("produce", topic, "--partition", 2, "--key", "all", "--compression", "zstd", text="z\n")
    told = [(one.partition(), one.key(), one.value(), one.headers()) for one in stored(tool.bootstrap, topic, 3, 3)]
    given = [("a", b"1"), ("b", b"x=y")]
    assert told == [(2, b"k", b"v::w", given), (2, b"", b"", given), (2, b"all", b"z", None)]


def test_a_tab_between_key_and_value(tool: Tool) -> None:
    r"""
    The delimiter can be written as `\t`.
    """
    topic = new_topic(tool)
    tool("produce", topic, "--key-delimiter", "\\t", text="k\tv\n")
    assert [(one.key(), one.value()) for one in stored(tool.bootstrap, topic, 1)] == [(b"k", b"v")]


def test_keys_have_the_partitions_of_other_clients(tool: Tool) -> None:
    """
    Java's partitioner and librdkafka's copy of it agree.
    """
    topic, partitions, number = new_topic(tool, partitions=7), 7, 200
    keys = [f"key-{one}" for one in range(number)]
    tool("produce", topic, "--key-delimiter", ":", text="".join(f"{key}:ours\n" for key in keys))
    producer = Producer({"bootstrap.servers": tool.bootstrap, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce(topic, b"theirs", key)
    producer.flush()
    found: dict[bytes, set[int]] = {}
    for one in stored(tool.bootstrap, topic, 2 * number, partitions):
        found.setdefault(one.key() or b"", set()).add(one.partition() or 0)
    assert found == {key.encode(): {partition_of(key.encode(), partitions)} for key in keys}
    assert len(set.union(*found.values())) == partitions


def test_json(tool: Tool) -> None:
    """
    A line has all fields of a record; options supply the missing ones, and their headers are added.
    """
    topic = new_topic(tool, partitions=2)
    lines = [
        {"key": "k", "value": "v", "headers": [{"key": "h", "value": "1"}], "partition": 1, "timestamp": 1000},
        {"value": "/w==", "base64": ["value"]},
        {"key": "gone", "value": None},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    options = ("--partition", 0, "--key", "else", "--header", "all=1")
    assert tool("produce", topic, "--json", *options, text=text).code == 0
    told = [(one.partition(), one.key(), one.value(), one.headers()) for one in stored(tool.bootstrap, topic, 3, 2)]
    of_all = [("all", b"1")]
    assert told == [
        (0, b"else", b"\xff", of_all),
        (0, b"gone", None, of_all),
        (1, b"k", b"v", [*of_all, ("h", b"1")]),
    ]
    assert stored(tool.bootstrap, topic, 3, 2)[2].timestamp()[1] == 1000


@pytest.mark.parametrize(("acks", "compression"), [("0", "none"), ("1", "snappy"), ("all", "gzip"), ("all", "lz4")])
def test_acks_and_compression(tool: Tool, acks: str, compression: str) -> None:
    """
    Each combination delivers all records in order.
    """
    topic, lines = new_topic(tool), [b"%d" % number for number in range(1000)]
    ended = tool("produce", topic, "--acks", acks, "--compression", compression, text=b"\n".join(lines))
    assert ended.code == 0
    assert values(tool, topic, 1000) == lines


def test_many_lines(tool: Tool) -> None:
    """
    Lines are sent in batches, each once, and in order within a partition.
    """
    topic, number = new_topic(tool, partitions=3), 100_000
    text = "".join(f"{one}\n" for one in range(number))
    assert tool("produce", topic, text=text).err.startswith("100,000 records (477.4 KiB) produced")
    found = stored(tool.bootstrap, topic, number, 3)
    for index in range(3):
        own = [int(one.value() or b"") for one in found if one.partition() == index]
        assert own == sorted(own)
    assert sorted(int(one.value() or b"") for one in found) == [*range(number)]


def test_small_batches(tool: Tool) -> None:
    """
    Batches are as small as the topic demands.
    """
    topic, lines = new_topic(tool, max_message_bytes="2000"), [b"%05d" % number for number in range(5000)]
    assert tool("produce", topic, text=b"\n".join(lines)).code == 0
    assert values(tool, topic, 5000) == lines


def test_slow_input_is_sent_at_once(tool: Tool) -> None:
    """
    A record does not wait for later ones.
    """
    topic = new_topic(tool)
    with tool.start("produce", topic) as process:
        assert process.stdin
        for value in (b"first", b"second"):
            process.stdin.write(value + b"\n")
            process.stdin.flush()
            assert values(tool, topic, 1 + (value == b"second"))[-1] == value
        process.stdin.close()
        assert process.wait(30) == 0


def test_typed_records(tool: Tool) -> None:
    """
    A terminal shows only what is typed, until the summary.
    """
    topic = new_topic(tool)
    command = [sys.executable, "-c", _WITH_BARS_AT_ONCE, "produce", topic]
    keyboard, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    with subprocess.Popen(command, env=tool.environment, stdin=terminal, stderr=terminal) as process:
        os.close(terminal)
        for number, value in enumerate((b"first", b"second"), 1):
            os.write(keyboard, value + b"\n")
            assert values(tool, topic, number)[-1] == value
        os.write(keyboard, b"third\n\x04")
        with open(keyboard, "rb", buffering=0) as screen:
            shown = b"".join(shown_on(screen))
        assert process.wait(30) == 0
    assert shown.startswith(b"first\r\nsecond\r\nthird\r\n3 records (16 bytes) produced to ")


_WITH_BARS_AT_ONCE = """
import sys
from kgateway.cli.common import progress
from kgateway.cli.main import main
progress._REDRAWN_S = 0
sys.exit(main())
"""


def shown_on(screen: IO[bytes]) -> Iterator[bytes]:
    """
    What a terminal shows until its last program ends.
    """
    with suppress(OSError):
        while shown := screen.read(1000):
            yield shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals(tool: Tool, number: signal.Signals) -> None:
    """
    At Ctrl-C, SIGTERM or SIGHUP, the records read so far are delivered and counted.
    """
    topic = new_topic(tool)
    with tool.start("produce", topic) as process:
        assert process.stdin
        assert process.stderr
        process.stdin.write(b"first\nhalf")
        process.stdin.flush()
        assert values(tool, topic, 1) == [b"first"]
        process.send_signal(number)
        assert process.wait(30) == 128 + number
        assert process.stderr.read().startswith(b"1 record (5 bytes) produced")
    assert values(tool, topic, 1) == [b"first"]


def test_a_rate(tool: Tool) -> None:
    """
    The fifth record is sent at least 0.4 s after the first.
    """
    topic = new_topic(tool)
    ended = tool("produce", topic, "--rate", 10, text="1\n2\n3\n4\n5\n")
    seconds = float(ended.err.partition(" in ")[2].partition(" s")[0])
    assert seconds >= 0.4
    assert values(tool, topic, 5) == [b"1", b"2", b"3", b"4", b"5"]


def test_a_missing_topic(tool: Tool) -> None:
    """
    --create creates it; otherwise the nearest name is suggested.
    """
    topic = new_topic(tool)
    told = refused(tool("produce", f"{topic}x", text="a"))
    assert told.startswith(f"there is no topic {topic}x; did you mean {topic}")
    assert told.endswith("?; --create creates it")
    assert tool("produce", f"{topic}x", "--create", "--partition", 0, text="a").code == 0
    assert values(tool, f"{topic}x", 1) == [b"a"]


@pytest.mark.parametrize(
    ("options", "text", "delivered", "says"),
    [
        (["--key-delimiter", ":"], "a:1\nb\n", 1, "stdin, line 2: there is no ':' between a key and a value (1 record"),
        (["--json"], '{"value": "a"}\n{"value": \n', 1, "stdin, line 2: this is not JSON at character 11"),
        (["--json"], '{"value": "a"}\n{"partition": 9}', 1, "stdin, line 2: {topic} has no partition 9: it has 1 (1"),
        (["--json"], '{"partition": 9}', 0, "stdin, line 1: {topic} has no partition 9: it has 1 (0 records"),
        (["--partition", "1"], "a", 0, "stdin, line 1: {topic} has no partition 1: it has 1"),
        (["/nowhere"], "", 0, "/nowhere cannot be read: No such file or directory (0 records were delivered)"),
        (["/"], "", 0, "/ cannot be read: Is a directory"),
    ],
)
def test_a_mistake_is_reported_with_its_place(
    tool: Tool, options: list[str], text: str, delivered: int, says: str
) -> None:
    """
    The reason names file and line, and the records before it are delivered.
    """
    topic = new_topic(tool)
    assert refused(tool("produce", topic, *options, text=text)).startswith(says.format(topic=topic))
    assert len(values(tool, topic, delivered)) == delivered


@pytest.mark.parametrize("form", [[], ["--whole-file"]])
def test_a_missing_file(tool: Tool, tmp_path: Path, form: list[str]) -> None:
    """
    The records of the files before it are delivered.
    """
    topic, file = new_topic(tool), tmp_path / "a"
    file.write_bytes(b"1")
    told = refused(tool("produce", topic, *form, file, "/nowhere"))
    assert told == "/nowhere cannot be read: No such file or directory (1 record was delivered)"
    assert values(tool, topic, 1) == [b"1"]


def test_a_line_without_an_end(tool: Tool) -> None:
    """
    A line that is too long is no record; the records before it are delivered.
    """
    topic = new_topic(tool)
    told = refused(tool("produce", topic, text=b"1\n2\n" + bytes(70 << 20)))
    assert (
        told
        == "stdin, line 3: a record of more than 64 MiB: is this really a single record? (2 records were delivered)"
    )
    assert values(tool, topic, 2) == [b"1", b"2"]


def test_without_acks_a_refusal_is_an_error(tool: Tool) -> None:
    """
    The server does not answer, and yet refused records do not count as delivered.
    """
    topic = new_topic(tool, max_message_bytes="1000")
    told = refused(tool("produce", topic, "--acks", "0", text="x" * 5000))
    assert "closed the connection" in told
    assert told.endswith("records: with acks of 1 or all it would give the reason (0 records were delivered)")


def test_a_record_that_is_too_large_is_named(tool: Tool) -> None:
    """
    Even inside a batch it is named, and the records before it are delivered.
    """
    topic = new_topic(tool, max_message_bytes="2000")
    text = "\n".join(["small"] * 3 + ["x" * 3000] + ["small"] * 3)
    told = refused(tool("produce", topic, text=text))
    assert told.startswith("stdin, line 4: MESSAGE_TOO_LARGE: ")
    assert told.endswith("(3 records were delivered)")
    assert values(tool, topic, 3) == [b"small"] * 3


def test_records_without_a_key_for_a_compacted_topic_are_named(tool: Tool) -> None:
    """
    The reason is the server's.
    """
    topic = new_topic(tool, cleanup_policy="compact")
    told = refused(tool("produce", topic, "--json", text='{"key": "a", "value": "1"}\n{"value": "2"}\n'))
    assert "stdin, line 2" in told
    assert "key" in told


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--key-delimiter", ""], "argument -K/--key-delimiter: must not be empty"),
        (["--key-delimiter", ":", "--json"], "--key-delimiter is for lines, not for --json"),
        (["--key-delimiter", ":", "--key", "a"], "argument -k/--key: not allowed with argument -K/--key-delimiter"),
        (["--header", "a"], "argument -H/--header: 'a' is not NAME=VALUE"),
        (["--partition", "-1"], "argument -p/--partition: must be a partition number of at least 0, not '-1'"),
        (["--acks", "2"], "argument --acks: '2' must be one of 0, 1, all"),
        (
            ["--compression", "zip"],
            "argument -z/--compression: 'zip' must be one of none, gzip, snappy, lz4, zstd; did you mean gzip?",
        ),
        (["--rate", "0"], "argument --rate: must be a number above 0, not '0'"),
        (["--rate", "fast"], "argument --rate: must be a number above 0, not 'fast'"),
        (["--bootstrap", "kafka:"], "argument -b/--bootstrap/--bootstrap-server: 'kafka:' must be HOST or HOST:PORT"),
    ],
)
def test_mistakes_in_the_command(tool: Tool, options: list[str], says: str) -> None:
    """
    Mistakes are reported before a server is asked.
    """
    ended = tool("produce", "nothing", *options)
    assert ended.code == 2
    assert says in ended.err.splitlines()[-1]
