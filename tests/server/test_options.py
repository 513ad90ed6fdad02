"""
The options of `twistd kgateway`, used as twistd uses them.
"""

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from twisted.application import app, service
from twisted.python import usage

from kgateway import __version__
from kgateway.config.settings import OPTIONS, Settings
from kgateway.server.service import Options


def only_ours(_interface: object, _package: object = None) -> Iterable[Any]:
    """
    The plugins that twistd sees.
    """
    return [service.ServiceMaker("kgateway", "kgateway.server.service", "A gateway.", "kgateway")]


def settings(*arguments: str) -> Settings:
    """
    The settings that the subcommand parses.
    """
    twistd = app.ServerOptions()
    twistd.parseOptions(["kgateway", *arguments])
    assert isinstance(twistd.subOptions, Options)
    return twistd.subOptions.settings


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app.ServerOptions, "_getPlugins", staticmethod(only_ours))
    for variable in [name for name in os.environ if name.startswith("KGATEWAY_")]:
        monkeypatch.delenv(variable)


def test_settings_come_from_arguments_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The arguments are those behind the subcommand's name.
    """
    monkeypatch.setenv("KGATEWAY_NODE_ID", "7")
    read = settings("--num-partitions", "3")
    assert (read.num_partitions, read.node_id) == (3, 7)


def test_without_arguments_those_of_the_process_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    All options of Twisted do so.
    """
    monkeypatch.setattr(sys, "argv", ["kgateway", "--node-id=7"])
    options = Options()
    options.parseOptions()
    assert options.settings.node_id == 7


def test_a_refusal_is_a_usage_error() -> None:
    """
    twistd handles that exception by showing its message.
    """
    with pytest.raises(usage.UsageError, match=r"^--node-id is 'one': it must be an integer"):
        settings("--node-id", "one")


def test_twistd_shows_a_refusal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """
    It prints the usage of the subcommand and the message, no traceback, and runs nothing.
    """
    monkeypatch.setattr(sys, "argv", ["twistd", "kgateway", "--node-id", "one"])
    with pytest.raises(SystemExit) as end:
        app.run(pytest.fail, app.ServerOptions)
    shown = capsys.readouterr().out
    assert end.value.code == 1
    assert "--num-partitions=" in shown
    assert shown.splitlines()[-1].startswith("twistd kgateway: --node-id is 'one': ")


@pytest.mark.parametrize(
    "endpoint",
    ["localhost:9092", "tcp:kafka", "tcp:9092:host=localhost", "ssl:1:privateKey=nowhere.pem", "systemd:INET:0"],
)
def test_invalid_endpoints_are_refused(endpoint: str) -> None:
    """
    Twisted has an exception for each mistake; the user sees one kind of message.
    """
    with pytest.raises(usage.UsageError, match=f"^listen: '{endpoint}' is no endpoint of Twisted"):
        settings("--listen", endpoint)


def test_a_missing_file_of_an_endpoint_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    With TLS installed Twisted opens the key while it parses the endpoint.
    """
    monkeypatch.setattr("kgateway.server.service.serverFromString", lambda *_: Path("/nowhere/key.pem").read_bytes())
    with pytest.raises(usage.UsageError, match=r"No such file or directory: '/nowhere/key.pem'"):
        settings("--listen", "ssl:1:privateKey=/nowhere/key.pem")


def test_endpoints_are_parsed_without_a_reactor(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    twistd chooses its reactor itself, so parsing must install none.
    """
    monkeypatch.delitem(sys.modules, "twisted.internet.reactor", raising=False)
    settings("--listen", "a=tcp:1", "--listen", "b=unix:b.sock")
    assert "twisted.internet.reactor" not in sys.modules


@pytest.mark.parametrize("arguments", [["--help"], ["--node-id", "one", "--help"]])
def test_help_has_the_table_of_settings(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """
    It has each setting with its meaning, allowed values and default, even if something else in the arguments is
    wrong.
    """
    with pytest.raises(SystemExit) as end:
        settings(*arguments)
    assert end.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "[options] kgateway [options] Options:" in shown
    for row in OPTIONS.values():
        assert f" {row.flag}= {row.meaning} ({row.allowed})" in shown
    assert "(an integer from 1 to 10000) [default: 4]" in shown
    assert "(a path) --" in shown, "no default, so none is shown"
    assert "docs/configuration.md" in shown


def test_version_is_that_of_kgateway(capsys: pytest.CaptureFixture[str]) -> None:
    """
    Twisted's own follows.
    """
    with pytest.raises(SystemExit) as end:
        settings("--version")
    assert end.value.code == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"kgateway {__version__}"
    assert second.startswith("Twisted version: ")


@pytest.mark.parametrize(
    ("broker", "message"),
    [
        ("lgo:data", "there is no broker 'lgo:data'; name one that begins with memory:, log: or seaweedmq:"),
        ("memory:data", "the broker is 'memory:data': memory: takes nothing behind the colon"),
    ],
)
def test_an_unknown_broker_is_a_usage_error(broker: str, message: str) -> None:
    """
    It is raised while options are parsed, before the fork.
    """
    with pytest.raises(usage.UsageError, match=re.escape(message)):
        settings("--broker", broker)
