"""
The commands that query a running gateway over its control socket.
"""

import io
import json
import socketserver
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgateway.cli.gateway.profile import countdown
from kgateway.cli.main import main

REASON = {
    "when_ms": 43_424_000,
    "since_ms": 43_424_000,
    "client_id": "checkout",
    "host": "10.0.0.7",
    "api": "Fetch",
    "version": 13,
    "outcome": "OFFSET_OUT_OF_RANGE",
    "subject": "orders-3",
    "message": "105 is past the end at 100",
    "times": 1,
}
PLUGIN = {
    "key": 3,
    "api": "Metadata",
    "versions": "0-13",
    "handler": "kgateway.handlers.metadata.metadata",
    "from": "kgateway",
    "priority": 0,
    "filters": [],
}
ROW = {"own_s": 1.25, "total_s": 9.5, "calls": 1200, "function": "twisted/internet/defer.py:997 Deferred.callback"}


class Gateway(socketserver.UnixStreamServer):
    """
    A gateway that answers from a table, and records the last question.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, Operator)
        self.asked: dict[str, Any] = {}
        self.results: dict[str, Any] = {}
        self.is_usage = False


class Operator(socketserver.StreamRequestHandler):
    server: Gateway

    def handle(self) -> None:
        self.server.asked = json.loads(self.rfile.readline())
        result = self.server.results.get(self.server.asked["command"])
        refusal = {"ok": False, "error": "not today", "usage": self.server.is_usage}
        answer = refusal if result is None else {"ok": True, "result": result}
        self.wfile.write(json.dumps(answer).encode() + b"\n")


@pytest.fixture
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    """
    A gateway in this folder.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KGATEWAY_CONTROL_SOCKET", raising=False)
    with Gateway("kgateway.sock") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """
    The lines that a command prints.
    """
    assert main(arguments) == 0
    return capsys.readouterr().out.splitlines()


def failed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """
    The reason of a failure.
    """
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 1
    return capsys.readouterr().err


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Have stdout look like a terminal of 100 columns.
    """
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)


def test_why_is_a_table(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Each reason takes two lines: time, client, request and code, then subject and reason.
    """
    other = REASON | {"client_id": "c", "outcome": "NOT_COORDINATOR", "subject": "", "message": "broker 2 is"}
    gateway.results["why"] = {"remembered": 2, "steps": 0, "reasons": [REASON, other]}
    assert shown(capsys, "why") == [
        "TIME                      TIMES  CLIENT             REQUEST    OUTCOME",
        "1970-01-01T12:03:44+0000         checkout@10.0.0.7  Fetch v13  OFFSET_OUT_OF_RANGE",
        "    orders-3: 105 is past the end at 100",
        "1970-01-01T12:03:44+0000         c@10.0.0.7         Fetch v13  NOT_COORDINATOR",
        "    broker 2 is",
    ]


def test_why_counts_repeated_reasons(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The count follows the first time.
    """
    repeated = REASON | {"times": 12, "since_ms": 43_364_000}
    gateway.results["why"] = {"remembered": 1, "steps": 0, "reasons": [repeated]}
    _, line, story = shown(capsys, "why")
    assert line.startswith("1970-01-01T12:03:44+0000  x12    checkout@10.0.0.7")
    assert story.endswith("at 100 (first at 1970-01-01T12:02:44+0000)")


def test_why_counts_the_steps_of_the_protocol(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    """
    They are shown only if they are asked for.
    """
    gateway.results["why"] = {"remembered": 3, "steps": 3, "reasons": []}
    assert shown(capsys, "why") == ["not shown: 3 steps of the protocol (--all)"]
    assert "all" not in gateway.asked
    gateway.results["why"] = {"remembered": 2, "steps": 1, "reasons": [REASON]}
    assert shown(capsys, "why")[-1] == "not shown: 1 step of the protocol (--all)"
    gateway.results["why"] = {"remembered": 2, "steps": 0, "reasons": [REASON, REASON]}
    assert len(shown(capsys, "why", "--all")) == 5
    assert gateway.asked["all"] is True


def test_why_fits_the_terminal(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Lines have the width of the terminal whatever names clients choose, and the message is shown completely.
    """
    on_a_terminal(monkeypatch)
    words = " ".join(f"word{number}" for number in range(100))
    long = {"client_id": "c" * 400, "api": "DescribeShareGroupOffsets", "message": words, "times": 1_000_000}
    outcome = {"outcome": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"}
    gateway.results["why"] = {"remembered": 1, "steps": 0, "reasons": [REASON | long | outcome]}
    lines = shown(capsys, "why")
    assert max(map(len, lines[:2])) == 100
    assert "c…  " in lines[1]
    assert words in " ".join(line.strip() for line in lines[2:])


def test_why_of_a_closed_connection(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The host replaces a missing client id, and the request is empty.
    """
    closed = REASON | {"client_id": "", "api": "", "version": None, "outcome": "malformed"}
    gateway.results["why"] = {"remembered": 1, "steps": 0, "reasons": [closed]}
    assert shown(capsys, "why")[1].split()[1:] == ["10.0.0.7", "malformed"]


def test_control_characters_are_escaped(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Clients choose names that would otherwise control the terminal.
    """
    evil = {"client_id": "\x1b[2J\n", "subject": "\x1b]0;x\x07", "message": "über \r"}
    gateway.results["why"] = {"remembered": 1, "steps": 0, "reasons": [REASON | evil]}
    lines = shown(capsys, "why")
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)
    assert "\\x1b[2J\\n@10.0.0.7" in lines[1]


def test_why_without_any_reason(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The output distinguishes no reasons at all from none that match.
    """
    gateway.results["why"] = {"remembered": 0, "steps": 0, "reasons": []}
    assert shown(capsys, "why") == ["no client was refused since the gateway started"]
    gateway.results["why"] = {"remembered": 7, "steps": 0, "reasons": []}
    assert shown(capsys, "why", "--api", "Fetch") == ["no reason matches (7 reasons in all)"]


def test_why_sends_only_given_options(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    gateway.results["why"] = {"remembered": 0, "steps": 0, "reasons": []}
    shown(capsys, "why", "--client", "check*", "--api", "Fetch", "--code", "closed", "--limit", "3")
    assert gateway.asked == {"command": "why", "client": "check*", "api": "Fetch", "code": "closed", "limit": 3}
    shown(capsys, "why")
    assert gateway.asked == {"command": "why", "limit": 20}


@pytest.mark.parametrize("command", ["why", "plugins", "profile"])
def test_json_is_the_gateways_answer(gateway: Gateway, capsys: pytest.CaptureFixture[str], command: str) -> None:
    gateway.results[command] = {"some": ["result"]}
    assert json.loads("\n".join(shown(capsys, command, "--json"))) == {"some": ["result"]}


def test_plugins_is_a_table(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Each handler has a line, and each filter around it.
    """
    watch = {"filter": "audit.watch", "from": "audit 1.0", "priority": 5, "topics": ["a", "b*"]}
    around = [watch | {"listeners": ["outside"], "principals": []}]
    audited = PLUGIN | {"key": 18, "api": "ApiVersions", "priority": 10, "filters": around}
    gateway.results["plugins"] = {"plugins": [PLUGIN, audited]}
    assert shown(capsys, "plugins") == [
        "KEY  API          VERSIONS  HANDLER                              FROM      PRIORITY",
        "3    Metadata     0-13      kgateway.handlers.metadata.metadata  kgateway  0",
        "18   ApiVersions  0-13      kgateway.handlers.metadata.metadata  kgateway  10",
        "       wrapped by audit.watch, from audit 1.0, priority 5, topics a b*, listeners outside",
    ]


def test_plugins_fits_the_terminal(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Long names are cut, the longest first.
    """
    on_a_terminal(monkeypatch)
    scope = dict.fromkeys(("filter", "from"), "x" * 200) | {key: ["y"] for key in ("topics", "listeners", "principals")}
    names = dict.fromkeys(("api", "handler", "from"), "x" * 200) | {"filters": [scope | {"priority": 0}]}
    gateway.results["plugins"] = {"plugins": [PLUGIN | names]}
    lines = shown(capsys, "plugins")
    assert max(map(len, lines)) == 100
    assert lines[1].startswith("3    xxxxxx")
    assert lines[1].endswith("  0")
    gateway.results["plugins"] = {"plugins": [PLUGIN | {"handler": "x" * 200}]}
    assert shown(capsys, "plugins")[1].startswith("3    Metadata  0-13      xxxxxxx")


def test_plugins_are_shown_whole_in_a_pipe(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"handler": "h" * 200, "from": "f" * 200}
    watch = {"filter": "w" * 200, "from": "audit", "priority": 5, "topics": [], "listeners": [], "principals": []}
    gateway.results["plugins"] = {"plugins": [PLUGIN | names | {"filters": [watch]}]}
    _, line, around = shown(capsys, "plugins")
    assert line.split()[3:5] == ["h" * 200, "f" * 200]
    assert "w" * 200 in around


def test_the_level_is_shown(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The level is one word, and is not changed.
    """
    gateway.results["loglevel"] = {"level": "info", "before": "info"}
    assert shown(capsys, "loglevel") == ["info"]
    assert gateway.asked == {"command": "loglevel"}


def test_the_level_is_set(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The previous level is shown, so that the user can restore it.
    """
    gateway.results["loglevel"] = {"level": "debug", "before": "info"}
    assert shown(capsys, "loglevel", "debug") == ["debug (it was info)"]
    assert gateway.asked == {"command": "loglevel", "level": "debug"}


def test_profile_is_a_table(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The first line says how busy the gateway was; each function has a line.
    """
    gateway.results["profile"] = {"seconds": 5.0, "waiting_s": 3.5, "rows": [ROW]}
    assert shown(capsys, "profile", "--seconds", "5") == [
        "5.0 s, of which the reactor was idle for 70%",
        "",
        "   OWN s   TOTAL s      CALLS  FUNCTION",
        "   1.250     9.500       1200  twisted/internet/defer.py:997 Deferred.callback",
    ]
    assert gateway.asked == {"command": "profile", "seconds": 5}


def test_profile_fits_the_terminal(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Long names are cut.
    """
    on_a_terminal(monkeypatch)
    gateway.results["profile"] = {"seconds": 5.0, "waiting_s": 0, "rows": [ROW | {"function": "x" * 200}]}
    assert max(map(len, shown(capsys, "profile"))) == 100


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_profile_counts_down() -> None:
    """
    One line shows the seconds left, and is cleared at the end.
    """
    terminal = Terminal()
    show = countdown(10, terminal)
    for elapsed_s in (0, 4, 10):
        show(elapsed_s)
    assert terminal.getvalue() == "\rprofiling, 10 s to go \x1b[K\rprofiling, 6 s to go \x1b[K\r\x1b[K"


def test_a_file_gets_no_countdown() -> None:
    """
    Nothing is written to a stderr that is no terminal.
    """
    file = io.StringIO()
    countdown(10, file)(3)
    assert file.getvalue() == ""


def test_the_countdown_is_cleared_before_the_result(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    The line is cleared before a result or a refusal is printed.
    """
    gateway.results["profile"] = {"seconds": 5.0, "waiting_s": 0, "rows": []}
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    shown(capsys, "profile")
    assert terminal.getvalue().endswith("to go \x1b[K\r\x1b[K")
    del gateway.results["profile"]
    with pytest.raises(SystemExit):
        main(["profile"])
    assert terminal.getvalue().endswith("to go \x1b[K\r\x1b[Kkgateway profile: not today\n")


@pytest.mark.parametrize("command", ["why", "plugins", "loglevel", "profile"])
def test_a_refusal_is_one_line(gateway: Gateway, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The line has the command and the gateway's reason; the exit code is 1.
    """
    assert failed(capsys, command) == f"kgateway {command}: not today\n"


def test_a_mistake_that_the_gateway_finds_has_exit_code_2(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    """
    It is reported as a mistake that the command finds itself.
    """
    gateway.is_usage = True
    with pytest.raises(SystemExit) as end:
        main(["why", "--api", "Prodcue"])
    assert (end.value.code, capsys.readouterr().err) == (2, "kgateway why: error: not today\n")


def test_why_since_an_age(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The gateway is asked for what came since then.
    """
    gateway.results["why"] = {"remembered": 0, "reasons": []}
    now_ms = time.time_ns() // 1_000_000
    shown(capsys, "why", "--since", "5m")
    assert -60_000 < gateway.asked["since_ms"] - (now_ms - 300_000) < 60_000


def test_another_gateway_may_be_queried(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    The option names the socket, else the environment; an empty variable counts as unset.
    """
    gateway.results["loglevel"] = {"level": "info"}
    monkeypatch.setenv("KGATEWAY_CONTROL_SOCKET", "elsewhere.sock")
    assert "no gateway responds at elsewhere.sock" in failed(capsys, "loglevel")
    assert "no gateway responds at third.sock" in failed(capsys, "loglevel", "--control-socket", "third.sock")
    assert shown(capsys, "loglevel", "--control-socket", "kgateway.sock") == ["info"]
    monkeypatch.setenv("KGATEWAY_CONTROL_SOCKET", "")
    assert shown(capsys, "loglevel") == ["info"]


def test_seconds_that_are_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["profile", "--seconds", "x"])
    told = "argument --seconds: must be a number of seconds, not 'x'"
    assert (end.value.code, capsys.readouterr().err) == (2, f"kgateway profile: error: {told}\n")


def test_names_of_clients_are_cut_on_terminals_only(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    In a pipe they are whole.
    """
    texts = dict.fromkeys(("address", "listener", "waits_for", "software_version"), "x")
    counts = dict.fromkeys(("since_ms", "requests", "bytes_in", "bytes_out"), 1)
    client = texts | counts | {"client_id": "c" * 60, "software": "s" * 60}
    gateway.results["clients"] = {"connected": 1, "fitting": 1, "clients": [client]}
    assert f"{'c' * 60}  {'s' * 60} x" in shown(capsys, "clients")[1]
    on_a_terminal(monkeypatch)
    assert max(map(len, shown(capsys, "clients"))) == 100
