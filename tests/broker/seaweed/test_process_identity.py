"""
Real processes, which end while another process looks.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgateway.broker.seaweed import process_identity
from kgateway.broker.seaweed.process_identity import ProcessIdentity, own_identity

pytestmark = pytest.mark.skipif(own_identity() is None, reason="the system cannot identify processes")


@pytest.fixture
def child() -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def _own() -> ProcessIdentity:
    own = own_identity()
    assert own
    return own


def _identity_of(pid: int) -> ProcessIdentity:
    started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return _own()._replace(pid=pid, started=int(started))


def _kill(child: "subprocess.Popen[str]") -> None:
    """
    Kill the process without collecting its exit code.
    """
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)


def test_a_process_identifies_itself(child: "subprocess.Popen[str]") -> None:
    """
    Its id and start time are those that others see.
    """
    own = _own()
    assert own == _identity_of(os.getpid())
    assert own.started != _identity_of(child.pid).started or own.pid != child.pid


def test_a_process_that_runs_or_is_stopped_has_not_ended(child: "subprocess.Popen[str]") -> None:
    identity = _identity_of(child.pid)
    assert not _own().has_ended()
    assert not identity.has_ended()
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
    assert not identity.has_ended()


def test_a_killed_process_has_ended_before_and_after_its_parent_knows(child: "subprocess.Popen[str]") -> None:
    identity = _identity_of(child.pid)
    _kill(child)
    assert identity.has_ended()
    child.wait()
    assert identity.has_ended()


def test_a_process_id_that_was_given_again_is_another_process(child: "subprocess.Popen[str]") -> None:
    identity = _identity_of(child.pid)
    assert identity._replace(started=identity.started - 1).has_ended()


@pytest.mark.parametrize("field", ["host", "boot", "pid_namespace", "time_namespace"])
def test_a_process_elsewhere_is_never_known_to_have_ended(child: "subprocess.Popen[str]", field: str) -> None:
    """
    Its process id means nothing here.
    """
    identity = _identity_of(child.pid)
    _kill(child)
    assert not ProcessIdentity(**{**identity._asdict(), field: "elsewhere"}).has_ended()


def test_a_process_whose_main_thread_alone_has_ended_goes_on() -> None:
    """
    It looks like one whose exit code was not collected.
    """
    program = "import ctypes, threading, time\nthreading.Thread(target=input).start()\nprint(flush=True)\n"
    program += "ctypes.CDLL(None).pthread_exit(None)"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        identity = _identity_of(process.pid)
        try:
            _until_main_thread_has_ended(process.pid)
            assert not identity.has_ended()
        finally:
            process.kill()


def _until_main_thread_has_ended(pid: int) -> None:
    while ") Z " not in Path(f"/proc/{pid}/stat").read_text():
        pass


def test_a_process_that_proc_hides_has_not_ended(
    child: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """
    The mount option hidepid hides the processes of other users. A signal still finds them.
    """
    identity = _identity_of(child.pid)
    own = _own()
    monkeypatch.setattr(process_identity, "own_identity", lambda: own)
    monkeypatch.setattr(process_identity, "_PROC", tmp_path)
    assert not identity.has_ended()
    _kill(child)
    child.wait()
    assert identity.has_ended()


def test_another_users_process_has_not_ended(child: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The system does not let this process send it a signal.
    """

    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert not _identity_of(child.pid).has_ended()


def test_a_system_without_these_files_has_no_identity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """
    Nor has a process whose /proc is that of another namespace.
    """
    monkeypatch.setattr(process_identity, "_PROC", tmp_path)
    assert own_identity() is None
    (tmp_path / "self").symlink_to("1")
    assert own_identity() is None


def test_without_an_identity_of_its_own_a_process_proves_nothing(
    child: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = _identity_of(child.pid)
    _kill(child)
    monkeypatch.setattr(process_identity, "own_identity", lambda: None)
    assert not identity.has_ended()
