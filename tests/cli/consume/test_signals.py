"""
Signals that end `kgateway consume`.
"""

import fcntl
import os
import random
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest

from kgateway.testing.kafka import Kafka
from tests.cli.tools import Tool, new_topic

PATIENCE_S = 30
PIPE_BYTES = 64 * 1024  # what Linux holds for a pipe
RECORDS = 10
INT, TERM = signal.SIGINT, signal.SIGTERM
BURSTS = ([TERM], [INT] * 2, [INT] * 2, [TERM] * 2, [INT] * 5, [INT, TERM, INT])
GAPS_S = (0, 0.003, 0.03, 0.1)


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with Kafka("--broker", "memory:", "--group-initial-rebalance-delay-ms", "0") as kafka:
        yield kafka


def filled(tool: Tool) -> str:
    topic = new_topic(tool)
    tool("produce", topic, text="".join(f"{number}\n" for number in range(RECORDS)))
    return topic


def member(tool: Tool, topic: str, group: str) -> "subprocess.Popen[bytes]":
    return tool.start("consume", topic, "--follow", "--group", group, start_new_session=True)


def read(process: "subprocess.Popen[bytes]") -> None:
    """
    Wait until the process has printed all records.
    """
    assert process.stdout
    assert [process.stdout.readline() for _ in range(RECORDS)] == [b"%d\n" % number for number in range(RECORDS)]


def test_a_member_commits_and_leaves(kafka: Kafka) -> None:
    """
    It does so on SIGTERM and on any number of Ctrl-C; `timeout` signals the process and its group.
    """
    tool, chance = Tool(kafka.bootstrap), random.Random(3)
    topic = filled(tool)
    with ExitStack() as stack:
        members = [stack.enter_context(member(tool, topic, f"group-{number}")) for number, _ in enumerate(BURSTS)]
        for process in members:
            stack.callback(process.kill)
        for process, burst in zip(members, BURSTS, strict=True):
            read(process)
            for each in burst:
                os.kill(process.pid, each)  # nobody has waited for it, so there is nothing else with this number
                os.killpg(process.pid, each)
                time.sleep(chance.uniform(0, chance.choice(GAPS_S)))
        for process in members:
            assert (process.wait(PATIENCE_S), process.stdout and process.stdout.read()) == (0, b"")
            assert process.stderr
            assert process.stderr.read().startswith(b"10 records (10 bytes) consumed in ")
    for number, _ in enumerate(BURSTS):
        [group] = tool("groups", "describe", f"group-{number}", "--json").json["groups"]
        assert (group["state"], group["members"]) == ("Empty", [])
        assert [part["committed"] for part in group["partitions"]] == [RECORDS]


@pytest.mark.parametrize("number", [INT, TERM, signal.SIGHUP])
def test_a_blocked_output_is_interrupted(kafka: Kafka, number: signal.Signals) -> None:
    """
    The member commits what was written whole, and leaves; the next one goes on with the first record that was not.
    """
    tool = Tool(kafka.bootstrap)
    topic, count = new_topic(tool), 300
    lines = [b"%06d" % index + b"x" * 1000 for index in range(count)]
    tool("produce", topic, text=b"\n".join(lines))
    with member(tool, topic, "group") as process:
        assert process.stdout
        assert process.stderr
        while waiting_bytes(process.stdout.fileno()) < PIPE_BYTES - 2 * select.PIPE_BUF:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 0
        written = process.stdout.read()
        assert process.stderr.read().startswith(b"%d records (" % written.count(b"\n"))
    [group] = tool("groups", "describe", "group", "--json").json["groups"]
    assert (group["state"], group["members"]) == ("Empty", [])
    whole = written.split(b"\n")[:-1]
    assert 0 < len(whole) < count
    assert [part["committed"] for part in group["partitions"]] == [len(whole)]
    rest = tool("consume", topic, "--group", "group").out.splitlines()
    assert whole + rest == lines


def waiting_bytes(pipe: int) -> int:
    """
    How much was written to a pipe and not yet read.
    """
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4), sys.byteorder)


def test_nohup_keeps_the_hangup_out(kafka: Kafka) -> None:
    tool = Tool(kafka.bootstrap)
    with tool.start("consume", filled(tool), "--follow", preexec_fn=ignore_hangup) as process:
        read(process)
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.kill()


def ignore_hangup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def test_a_join_is_interrupted() -> None:
    """
    A member that waits for others leaves at once.
    """
    with Kafka("--broker", "memory:", "--group-initial-rebalance-delay-ms", "60000") as kafka:
        tool = Tool(kafka.bootstrap)
        with member(tool, filled(tool), "group") as process:
            while not tool("groups", "list", "--json").json["groups"]:
                assert process.poll() is None
            process.send_signal(TERM)
            assert process.wait(PATIENCE_S) == 0
        [group] = tool("groups", "describe", "group", "--json").json["groups"]
        assert group["members"] == []


def unanswered(kafka: Kafka) -> str:
    os.kill(kafka.pid, signal.SIGSTOP)
    return "did not send"


def dead(kafka: Kafka) -> str:
    kafka.kill()
    return "nothing listens at"


@pytest.mark.parametrize("gone", [unanswered, dead])
@pytest.mark.parametrize("is_member", [False, True])
def test_a_server_that_is_gone_holds_up_nothing(kafka: Kafka, gone: Callable[[Kafka], str], is_member: bool) -> None:
    """
    A signal ends a fetch that is retried; a member has a few seconds to commit.
    """
    tool = Tool(kafka.bootstrap)
    topic = filled(tool)
    command = ["consume", topic, "--follow", *(["--group", "group"] if is_member else [])]
    with tool.start(*command, start_new_session=True) as process:
        read(process)
        told = gone(kafka)
        began = time.monotonic()
        process.send_signal(TERM)
        try:
            code = process.wait(PATIENCE_S)
        finally:
            process.kill()
            with suppress(ProcessLookupError):
                os.kill(kafka.pid, signal.SIGCONT)
        assert time.monotonic() - began < (9 if is_member else 2)
        assert process.stderr
        complaints = process.stderr.read().decode()
        assert (code, told in complaints) == ((1, True) if is_member else (0, False))


def test_a_late_second_signal_ends_the_process(kafka: Kafka) -> None:
    """
    The first one waits for a server that does not answer, and so do others within three seconds.
    """
    tool = Tool(kafka.bootstrap)
    with member(tool, filled(tool), "group") as process:
        read(process)
        os.kill(kafka.pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            while process.poll() is None and time.monotonic() < began + PATIENCE_S:
                process.send_signal(INT)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.5)
            assert process.returncode == -INT
            assert time.monotonic() - began > 3
        finally:
            os.kill(kafka.pid, signal.SIGCONT)


def test_an_unfinished_command_says_so(kafka: Kafka) -> None:
    """
    Without --follow the exit code is that of the signal.
    """
    tool = Tool(kafka.bootstrap)
    topic, line = new_topic(tool), b"x" * 1023 + b"\n"
    tool("produce", topic, text=4096 * line)
    with tool.start("consume", topic) as process:
        assert process.stdout
        assert process.stdout.read(len(line)) == line
        process.send_signal(TERM)
        assert 0 < len(process.stdout.read()) < 4095 * len(line)
        assert process.wait(PATIENCE_S) == 128 + TERM
