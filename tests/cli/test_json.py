"""
`--json`: what programs read from stdout, also where a command fails.
"""

import json
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgateway.cli.commands import COMMANDS
from kgateway.cli.main import main
from kgateway.cli.main import parser as parser_of
from kgateway.testing.kafka import Kafka
from tests.cli.log_folder import BATCH, FIRST, change
from tests.cli.tools import Tool, new_topic

# Two that run until they are ended, and one that prints a script.
WITHOUT = {"kgateway serve", "kgateway seaweedmq dev", "kgateway completion"}


def leaves(parser: ArgumentParser) -> Iterator[ArgumentParser]:
    below = [action for action in parser._actions if isinstance(action, _SubParsersAction)]
    if not below:
        yield parser
    for action in below:
        for command in action.choices.values():
            yield from leaves(command)


@pytest.fixture(scope="module")
def tool() -> Iterator[Tool]:
    """
    One gateway serves all tests.
    """
    with Kafka("--broker", "memory:") as kafka:
        yield Tool(kafka.bootstrap, kafka.control_socket)


def test_each_command_has_json() -> None:
    parsers = {parser.prog: parser for parser in leaves(parser_of(None))}
    assert len(parsers) > len(COMMANDS)
    assert {name for name, parser in parsers.items() if "--json" not in parser._option_string_actions} == WITHOUT


@pytest.mark.parametrize(
    ("given", "exit_code", "command", "code"),
    [
        (("topics", "describe", "nowhere"), 1, "topics describe", "UNKNOWN_TOPIC_OR_PARTITION"),
        (("topics", "list", "nowhere*"), 1, "topics list", "UNKNOWN_TOPIC_OR_PARTITION"),
        (("produce", "nowhere"), 1, "produce", "UNKNOWN_TOPIC_OR_PARTITION"),
        (("consume", "nowhere"), 1, "consume", "UNKNOWN_TOPIC_OR_PARTITION"),
        (("configs", "set", "broker", "1", "nothing=1"), 1, "configs set", "INVALID_CONFIG"),
        (("transactions", "abort", "nobody"), 1, "transactions abort", "TRANSACTIONAL_ID_NOT_FOUND"),
        (("topics", "list", "--bootstrap", "127.0.0.1:1"), 1, "topics list", "UNREACHABLE"),
        (("loglevel", "--control-socket", "nowhere.sock"), 1, "loglevel", "UNREACHABLE"),
        (("loglevel", "loud"), 2, "loglevel", "USAGE"),
        (("log", "check", "nowhere"), 2, "log check", "USAGE"),
        (("topics", "create"), 2, "topics create", "USAGE"),
        (("topics", "list", "--nothing"), 2, "topics list", "USAGE"),
        (("groups", "describe", "--all", "one"), 2, "groups describe", "USAGE"),
        (("topics", "delete", "a*"), 2, "topics delete", "USAGE"),
    ],
)
def test_a_failure_is_an_object(tool: Tool, given: tuple[str, ...], exit_code: int, command: str, code: str) -> None:
    """
    Stdout has the reason that people read on stderr; the exit code is the same without --json.
    """
    ended = tool(*given, "--json")
    assert [*ended.json] == ["error"]
    error = ended.json["error"]
    assert (ended.code, error["command"], error["code"]) == (exit_code, command, code)
    [line] = ended.err.splitlines()
    told = line.removeprefix(f"kgateway {command}: ").removeprefix("error: ")
    assert told.removeprefix(f"{code}: ") == error["message"]
    without = tool(*given)
    assert (without.code, without.out, without.err.splitlines()) == (exit_code, b"", [line])


@pytest.mark.parametrize(
    "given",
    [
        ("consume", "nowhere", "-J"),
        ("consume", "nowhere", "-eJ"),
        ("consume", "nowhere", "-qJe"),
        ("consume", "nowhere", "--js"),
        ("consume", "-J", "--count", "none", "nowhere"),
        ("consume", "--count", "none", "nowhere", "-J"),
        ("topics", "list", "--js"),
        ("nothing", "--json"),
    ],
)
def test_a_failure_is_an_object_by_each_name_of_the_option(
    given: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGATEWAY_BOOTSTRAP", "127.0.0.1:1")
    with pytest.raises(SystemExit):
        main(given)
    assert "error" in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("given", [("-fJ",), ("-K", "J"), ("-qe",), ("--", "-J")])
def test_a_value_that_looks_like_the_option_is_no_option(
    given: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGATEWAY_BOOTSTRAP", "127.0.0.1:1")
    with pytest.raises(SystemExit):
        main(["consume", "nowhere", *given])
    assert capsys.readouterr().out == ""


def test_what_follows_two_dashes_is_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["topics", "describe", "--nothing", "--", "--json"])
    assert capsys.readouterr().out == ""


def failed(tool: Tool, *given: str) -> Any:
    """
    The object that a failing command prints.
    """
    ended = tool(*given, "--json")
    assert ended.code == 1
    return ended.json


def test_the_parts_that_fail_have_errors(tool: Tool) -> None:
    """
    What was found or done is there too; the command has the error of the first part that failed.
    """
    topic = new_topic(tool)
    told = failed(tool, "topics", "create", topic, f"{topic}-new")
    exists, created = told["topics"]
    assert (exists["created"], exists["error"]["code"]) == (False, "TOPIC_ALREADY_EXISTS")
    assert (created["created"], "error" in created) == (True, False)
    assert told["error"]["code"] == "TOPIC_ALREADY_EXISTS"
    assert tool("consume", topic, "--group", "readers").code == 0
    told = failed(tool, "groups", "describe", "readers", "nobody")
    assert [(row["group"], row.get("error", {}).get("code")) for row in told["groups"]] == [
        ("readers", None),
        ("nobody", "GROUP_ID_NOT_FOUND"),
    ]
    assert (told["error"]["command"], told["error"]["code"]) == ("groups describe", "GROUP_ID_NOT_FOUND")
    told = failed(tool, "transactions", "describe", "nobody")
    assert told["transactions"][0]["error"]["code"] == told["error"]["code"] == "TRANSACTIONAL_ID_NOT_FOUND"


def test_the_log_level(tool: Tool) -> None:
    assert tool("loglevel", "debug", "--json").json == {"level": "debug", "before": "info"}
    assert tool("loglevel", "info", "--json").json == {"level": "info", "before": "debug"}


@pytest.mark.parametrize(
    ("command", "key", "first"),
    [
        ("apis", "apis", {"key": 0, "api": "Produce"}),
        ("options", "options", {"option": "listen", "default": "tcp:9092:interface=127.0.0.1"}),
        ("topic-configs", "configs", {"config": "cleanup.policy", "default": "delete", "effect": "yes"}),
    ],
)
def test_tables(capsys: pytest.CaptureFixture[str], command: str, key: str, first: dict[str, object]) -> None:
    main([command, "--json"])
    rows = json.loads(capsys.readouterr().out)[key]
    assert any(row.items() >= first.items() for row in rows)


def of_log(capsys: pytest.CaptureFixture[str], *given: str) -> tuple[int, str]:
    """
    The exit code and the output of `kgateway log`.
    """
    code = 0
    try:
        main(["log", *given, "--json"])
    except SystemExit as end:
        code = int(end.code or 0)
    return code, capsys.readouterr().out


def test_a_check_of_a_log(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Findings are no failure of the command, and the exit code says that there are some.
    """
    code, out = of_log(capsys, "check", "data")
    assert code == 0
    assert json.loads(out) | {"bytes": 0} == {
        "in_use_by": None,
        "files": 22,
        "batches": 40,
        "records": 40,
        "bytes": 0,
        "findings": [],
    }
    change(data / f"{FIRST}.log", 2 * BATCH + 100, b"x")
    code, out = of_log(capsys, "check", "data")
    told = json.loads(out)
    assert (code, "error" in told) == (1, False)
    assert (told["findings"][0]["path"], told["findings"][0]["is_fault"]) == (f"data/{FIRST}.log", True)


def test_a_dump_of_a_log_is_a_line_for_each_entry(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    A failure is the last line.
    """
    change(data / f"{FIRST}.log", 2 * BATCH + 100, b"x")
    code, out = of_log(capsys, "dump", f"data/{FIRST}.log", "nowhere.log", "--records", "--limit", "4")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 2
    assert lines[0].items() >= {"base_offset": 0, "byte": 0, "size": BATCH, "codec": "none", "whole": True}.items()
    assert lines[1].items() >= {"offset": 0, "key": "key 00", "headers": []}.items()
    assert [line["whole"] for line in lines if "whole" in line] == [True, True, False, True]
    [damage] = [line for line in lines if "problem" in line]
    assert (damage["byte"], damage["size"]) == (2 * BATCH, BATCH)
    assert lines[-1]["error"]["command"] == "log dump"


@pytest.mark.parametrize(
    ("file", "first"),
    [
        (f"{FIRST}.index", {"offset": 1, "byte": BATCH}),
        (f"{FIRST}.timeindex", {"offset": 1, "timestamp": 1_800_000_001_000}),
        (f"orders-0/{40:020d}.snapshot", {"producer_id": 0, "producer_epoch": 0}),
        ("orders-0/leader-epoch-checkpoint", {"line": "0"}),
    ],
)
def test_a_dump_of_another_file(
    data: Path, capsys: pytest.CaptureFixture[str], file: str, first: dict[str, object]
) -> None:
    _, out = of_log(capsys, "dump", f"data/{file}")
    assert json.loads(out.splitlines()[0]).items() >= first.items()
