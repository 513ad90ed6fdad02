"""
The options of `twistd kgateway`, used as twistd uses them.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from twisted.application import app, service

from kgateway import __version__
from kgateway.compilation import form
from kgateway.config.listeners import Listener
from kgateway.config.settings import OPTIONS, Settings
from kgateway.extras import install_command
from kgateway.server.process.options import Options
from tests.broker.seaweed.grpc.certificates import Authority


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


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """
    The one line with which the subcommand refuses its arguments, before anything runs.
    """
    with pytest.raises(SystemExit) as end:
        settings(*arguments)
    assert end.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    [line] = shown.err.splitlines()
    return line


@pytest.mark.parametrize("program", ["twistd", "kgateway serve"])
def test_twistd_shows_a_refusal_in_one_line(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    It names the command, and neither usage nor traceback hides it.
    """
    monkeypatch.setattr(sys, "argv", [f"/usr/bin/{program}", "kgateway", "--node-id", "one"])
    with pytest.raises(SystemExit) as end:
        app.run(pytest.fail, app.ServerOptions)
    assert end.value.code == 2
    shown = capsys.readouterr()
    named = "twistd kgateway" if program == "twistd" else program
    assert shown.err.startswith(f"{named}: --node-id is 'one': it must be an integer")
    assert (shown.out, shown.err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("program", "advice"),
    [("twistd", ", and options of twistd come before the word kgateway"), ("kgateway serve", "")],
)
def test_options_of_twistd_are_explained_where_it_has_any(
    program: str, advice: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    `twistd kgateway -n` is a common slip; `kgateway serve` has only the settings.
    """
    monkeypatch.setattr(sys, "argv", [f"/usr/bin/{program}"])
    assert refusal(capsys, "-n").endswith(f": there is no option -n; `kgateway options` lists all settings{advice}")


@pytest.mark.parametrize(
    ("endpoint", "message"),
    [
        (
            "localhost:9092",
            "Twisted cannot open it: Unknown endpoint type: 'localhost'; write tcp:9092:interface=127.0.0.1",
        ),
        ("udp:9092", "Twisted cannot open it: Unknown endpoint type: 'udp'; write one such as tcp:9092:interface=127."),
        ("PLAINTEXT://0.0.0.0:9092", "Twisted cannot open it: Unknown endpoint type: 'plaintext'; write tcp:9092"),
        ("ssl:1:privateKey=/nowhere/key.pem", "/nowhere/key.pem: No such file or directory"),
        ("systemd:INET:0", "systemd has passed no such socket to this process"),
        ("systemd:INET:name=kafka", "systemd has passed no such socket to this process"),
        ("TCP:9092", "Twisted cannot open it: Unknown endpoint type: 'tcp'; write tcp:9092"),
        ("tcp:70000", "the port '70000' is not a number from 0 to 65535; write one such as tcp:9092:"),
    ],
)
def test_invalid_endpoints_are_refused(endpoint: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Twisted has an exception for each mistake; the user sees one kind of message.
    """
    assert f"kgateway: --listen is {endpoint!r}: {message}" in refusal(capsys, "--listen", endpoint)


DAMAGED = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
NO_KEY = "key.pem has no private key in PEM format that OpenSSL can read without a password"


@pytest.mark.parametrize(
    ("key", "certificate", "fault"),
    [
        (b"no key", "own", NO_KEY),
        (DAMAGED, "own", NO_KEY),
        ("own", b"no certificate", "cert.pem has no certificate in PEM format"),
        ("own", None, "an ssl endpoint needs both privateKey= and certKey="),
        ("own", "other", "Twisted cannot open it: Certificate public and private keys do not match."),
    ],
)
def test_files_that_tls_cannot_use_are_refused(
    key: bytes | str,
    certificate: bytes | str | None,
    fault: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """
    The line names the file that is wrong, which OpenSSL does not.
    """
    monkeypatch.chdir(tmp_path)
    pairs = {name: Authority().certify("localhost") for name in ("own", "other")}
    Path("key.pem").write_bytes(pairs[key].key if isinstance(key, str) else key)
    endpoint = "ssl:1:privateKey=key.pem"
    if certificate is not None:
        Path("cert.pem").write_bytes(pairs[certificate].certificate if isinstance(certificate, str) else certificate)
        endpoint += ":certKey=cert.pem"
    assert refusal(capsys, "--listen", endpoint).endswith(f" kgateway: --listen is {endpoint!r}: {fault}")


def test_one_file_may_have_the_key_and_the_certificate(tmp_path: Path) -> None:
    pair = Authority().certify("localhost")
    (tmp_path / "both.pem").write_bytes(pair.key + pair.certificate)
    endpoint = f"ssl:1:privateKey={tmp_path / 'both.pem'}"
    assert settings("--listen", endpoint).listen == (Listener("tls", endpoint),)


def test_tls_needs_its_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Without the library Twisted cannot import its part for TLS.
    """
    monkeypatch.setitem(sys.modules, "OpenSSL", None)
    monkeypatch.delitem(sys.modules, "twisted.internet.ssl", raising=False)
    monkeypatch.delattr("twisted.internet.ssl", raising=False)
    advice = f"the extra `tls` is not installed (there is no OpenSSL): install it with `{install_command('tls')}`"
    assert refusal(capsys, "--listen", "ssl:1:privateKey=key.pem").endswith(advice)


def test_a_refusal_names_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    That is the option, the variable, or the key and its file.
    """
    file = tmp_path / "gateway.toml"
    file.write_text('broker = "foo:bar"\n')
    assert "kgateway: --broker is 'foo:bar': " in refusal(capsys, "--broker", "foo:bar")
    assert f"kgateway: broker in {file} is 'foo:bar': " in refusal(capsys, "--config", str(file))
    monkeypatch.setenv("KGATEWAY_BROKER", "foo:bar")
    assert "kgateway: KGATEWAY_BROKER is 'foo:bar': " in refusal(capsys)


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
    assert first == f"kgateway {__version__} ({form()})"
    assert second.startswith("Twisted version: ")


@pytest.mark.parametrize(
    ("broker", "message"),
    [
        ("lgo:data", "there is no broker lgo:; write memory:, log: or seaweedmq:"),
        ("memory:data", "memory: accepts nothing after the colon; write memory:"),
        ("log:", "the folder is missing; write log:FOLDER, such as log:kgateway-data"),
    ],
)
def test_an_impossible_broker_is_refused(broker: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """
    It is refused while options are parsed, before the fork.
    """
    assert refusal(capsys, "--broker", broker).endswith(f"--broker is {broker!r}: {message}")


def test_the_help_of_serve_begins_with_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kgateway serve"])
    with pytest.raises(SystemExit):
        settings("--help")
    assert capsys.readouterr().out.startswith("Usage: kgateway serve [options]\n")
