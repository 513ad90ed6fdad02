"""
The gateway as a Twisted service.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock
from twisted.logger import capturedLogs

from kgateway.config.settings import Settings
from kgateway.server import service as module
from kgateway.server.gateway import Gateway, StartError
from kgateway.server.process.start_report import StartReport
from kgateway.server.service import GatewayService
from kgateway.testing.kafka import Kafka

_RUN = {
    "twist": "from twisted.application.twist._twist import Twist; Twist.main()",
    "twistd": "from twisted.scripts.twistd import run; run()",
}
_LISTEN = ("kgateway", "--listen", "tcp:0:interface=127.0.0.1", "--port-file", "port")


@pytest.mark.parametrize("program", [["twist"], ["twistd", "-n"], ["twistd", "-n", "-l", "file.log"]], ids=" ".join)
def test_readiness_is_one_line_on_stdout(program: list[str], tmp_path: Path) -> None:
    """
    It has the address and the data; the port file exists by then, and is removed with the gateway.
    """
    name, *arguments = program
    command = [sys.executable, "-c", _RUN[name], *arguments, *_LISTEN]
    with subprocess.Popen(command, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
        assert run.stdout
        ready = next(line for line in run.stdout if " is ready: " in line)
        address = (tmp_path / "port").read_text().strip()
        assert (tmp_path / "port").stat().st_mode & 0o777 == 0o644, "for other users' programs"
        run.send_signal(signal.SIGTERM)
        rest = run.stdout.read()
    assert f"plaintext on {address}; data in kgateway-data (0 topics)" in ready
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} kgateway ", ready)
    assert " is ready: " not in rest
    assert not (tmp_path / "port").exists()


def test_the_ready_line_names_the_socket_of_a_unix_listener(tmp_path: Path) -> None:
    """
    It has no host and port.
    """
    with Kafka("--listen", "unix:kafka.sock", "--listen", "net=tcp:0:interface=127.0.0.1", folder=tmp_path) as kafka:
        port = kafka.addresses[1].rpartition(":")[2]
        assert f"is ready: plaintext on unix:kafka.sock, net on 127.0.0.1:{port}" in kafka.log


def test_a_failed_start_removes_the_pid_file(tmp_path: Path) -> None:
    """
    twistd leaves it where the process ends while it starts.
    """
    command = [sys.executable, "-c", _RUN["twistd"], "-n", *_LISTEN[:3], "--handlers", "acme"]
    run = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False)
    assert run.returncode == 2
    assert run.stderr.startswith("kgateway cannot start: there is no package acme")
    assert [*tmp_path.iterdir()] == []


def test_a_daemon_that_ends_in_its_start_is_reported(tmp_path: Path) -> None:
    """
    The command from which it was started would wait for ever.
    """
    (tmp_path / "acme.py").write_text("raise KeyboardInterrupt")
    command = [sys.executable, "-c", _RUN["twistd"], *_LISTEN[:3], "--handlers", "acme"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, text=True, capture_output=True, check=False, timeout=60
    )
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "the daemon exited before it was ready; see its log\n"
    assert not (tmp_path / "twistd.pid").exists()


def test_a_bug_in_the_start_has_a_line_and_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """
    The line is on the terminal, the traceback in the log.
    """

    def fail(gateway: Gateway) -> NoReturn:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(Gateway, "start", fail)
    monkeypatch.setattr(module, "allow_many_files", lambda: None)
    settings = Settings(listen=(), broker="memory:", control_socket=str(tmp_path / "s"))
    service = GatewayService(settings, MemoryReactorClock(), StartReport({}))
    with capturedLogs() as logged, pytest.raises(SystemExit) as end:
        service.startService()
    assert end.value.code == 1
    line = "kgateway cannot start: ZeroDivisionError: division by zero; the log has the traceback"
    assert line in capfd.readouterr().err.splitlines()
    assert [event["log_failure"].type for event in logged if "log_failure" in event] == [ZeroDivisionError]


def serve(folder: Path, *options: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """
    A start that fails.
    """
    command = [sys.executable, "-m", "kgateway", "serve", *options]
    given = os.environ | {f"KGATEWAY_{name.upper()}": value for name, value in environment.items()}
    return subprocess.run(command, cwd=folder, env=given, text=True, capture_output=True, timeout=60, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """
    A folder with a file and a folder.
    """
    (tmp_path / "here/folder").mkdir(parents=True)
    (tmp_path / "here/file").touch()
    return tmp_path / "here"


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("port_file", "nowhere/port", "--port-file nowhere/port cannot be written: No such file or directory\n"),
        ("port_file", "folder", "--port-file folder cannot be written: Is a directory\n"),
        ("port_file", "file/port", "--port-file file/port cannot be written: Not a directory\n"),
        ("control_socket", "nowhere/socket", "there is no folder for the control socket nowhere/socket: "),
        ("control_socket", "folder", "folder already exists and is not a socket: "),
        ("broker", "log:file", "file cannot be made: File exists; it is a file, not a folder; "),
        ("broker", "log:file/data", "file/data cannot be made: Not a directory; a file is where a folder should be; "),
        ("handlers", "nowhere", "there is no package nowhere: "),
        ("listen", "unix:nowhere/socket", "unix:nowhere/socket: No such file or directory; "),
        ("listen", "unix:folder", "unix:folder: it exists, and is not a socket; "),
        ("listen", f"unix:{'x' * 120}", f"unix:{'x' * 120}: AF_UNIX path too long; "),
    ],
)
def test_an_option_that_can_never_be_used_is_a_mistake(folder: Path, option: str, value: str, reason: str) -> None:
    """
    The start fails with exit code 2 and one line, and leaves nothing.
    """
    run = serve(folder, **{"listen": _LISTEN[2], option: value})
    error = run.stderr.splitlines(keepends=True)
    assert (run.returncode, len(error)) == (2, 1)
    assert error[0].startswith(f"kgateway cannot start: {reason}")
    assert {path.name for path in folder.iterdir()} == {"file", "folder"}


@pytest.mark.parametrize("source", ["flag", "environment", "file"])
def test_a_mistake_is_one_in_each_source_of_settings(folder: Path, source: str) -> None:
    settings = folder.with_name("kgateway.toml")
    settings.write_text('port_file = "folder"')
    run = {
        "flag": lambda: serve(folder, *_LISTEN[1:3], "--port-file", "folder"),
        "environment": lambda: serve(folder, *_LISTEN[1:3], port_file="folder"),
        "file": lambda: serve(folder, *_LISTEN[1:3], "--config", str(settings)),
    }[source]()
    assert run.returncode == 2
    assert run.stderr == "kgateway cannot start: --port-file folder cannot be written: Is a directory\n"


def test_a_busy_port_is_no_mistake(folder: Path) -> None:
    """
    Another start may find it free.
    """
    with socket.create_server(("127.0.0.1", 0)) as taken:
        run = serve(folder, "--listen", f"tcp:{taken.getsockname()[1]}:interface=127.0.0.1")
    assert run.returncode == 1
    assert "the port is in use" in run.stderr


def test_the_port_file_of_another_gateway_stays(folder: Path) -> None:
    """
    A start that fails removes what it has written itself.
    """
    (folder / "port").write_text("127.0.0.1:9092\n")
    run = serve(folder, *_LISTEN[1:], "--control-socket", "folder")
    assert run.returncode == 2
    assert {path.name for path in folder.iterdir()} == {"file", "folder", "port"}


def test_a_port_file_that_cannot_get_its_name_fails_the_start(folder: Path) -> None:
    """
    Everything was ready by then. The command that started the daemon fails, and the daemon leaves only its log.
    """
    (folder / "broken.py").write_text(
        "import os\ndef replace(*_): raise OSError(28, os.strerror(28))\nos.replace = replace\n"
        "from kgateway.handlers.heartbeat import heartbeat\n"
    )
    command = [sys.executable, "-c", _RUN["twistd"], *_LISTEN, "--broker", "memory:", "--handlers", "broken"]
    given = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(command, cwd=folder, env=given, text=True, capture_output=True, timeout=60, check=False)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "kgateway cannot start: --port-file port cannot be written: No space left on device\n"
    expected = {"file", "folder", "broken.py", "twistd.log"}
    until = time.monotonic() + 30
    while {path.name for path in folder.iterdir()} != expected and time.monotonic() < until:
        time.sleep(0.02)
    assert {path.name for path in folder.iterdir()} == expected


def test_a_failed_start_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """
    Nothing remains that serves nobody, and the terminal has the reason.
    """
    start: Deferred[list[Any]] = Deferred()
    monkeypatch.setattr(Gateway, "start", lambda gateway: start)
    monkeypatch.setattr(module, "allow_many_files", lambda: None)
    reactor = MemoryReactorClock()
    settings = Settings(listen=(), broker="memory:", control_socket=str(tmp_path / "s"))
    service = GatewayService(settings, reactor, StartReport({}))
    service.startService()
    start.errback(StartError("the disk is gone"))
    assert reactor.hasStopped
    # Until logging has begun, Twisted prints critical events, too.
    assert set(capfd.readouterr().err.splitlines()) == {"kgateway cannot start: the disk is gone"}
    service.stopService()


def test_timers_do_not_follow_the_wall_clock(tmp_path: Path) -> None:
    """
    A correction of the system's time would end every session.
    """
    script = (
        "import time; from kgateway.server.service import Options, makeService\n"
        "options = Options(); options.parseOptions([]); makeService(options)\n"
        "from twisted.internet import reactor; print(reactor.seconds is time.monotonic)"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, text=True, capture_output=True, check=True)
    assert run.stdout == "True\n"


@pytest.mark.parametrize("twistd", [{}, {"uid": 65534}, {"chroot": "/srv"}])
def test_some_libraries_are_imported_late(twistd: dict[str, object], tmp_path: Path) -> None:
    """
    Codecs, RE2 and the embedded log take 7 MiB, and many gateways do not need them. Another user may not be able to
    import them, and so twistd imports them early if it drops privileges.
    """
    late = {"cramjam", "kgateway.broker.log", "lz4", "re2", "zstandard"}
    script = (
        "import sys; from kgateway.server.service import Options, makeService\n"
        f"options = Options(); options.parent = {twistd}; options.parseOptions([])\n"
        "makeService(options).privilegedStartService()\n"
        f"print(*sorted({late} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.split() == (sorted(late) if twistd else [])
