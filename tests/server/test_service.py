"""
The gateway as a Twisted service.
"""

import os
import re
import signal
import subprocess
import sys
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
    assert run.returncode == 1
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


def test_an_unwritable_port_file_fails_the_start(tmp_path: Path) -> None:
    """
    A caller that waits for it would wait for ever.
    """
    command = [sys.executable, "-m", "kgateway", "serve", *_LISTEN[1:3], "--port-file", "nowhere/port"]
    run = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False)
    assert run.returncode == 1
    assert "kgateway cannot start: --port-file nowhere/port cannot be written: No such file or directory" in run.stderr
    assert [*tmp_path.iterdir()] == [], "the data folder was new, and empty"


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
