"""
The gateway as a process: how it starts, refuses to start, and stops.
"""

import os
import pwd
import re
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kgateway.control.client import ask
from kgateway.messages.fetch import FetchRequest
from kgateway.messages.metadata import MetadataRequest
from kgateway.messages.produce import ProduceRequest
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode
from tests.faults.client import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    Client,
    batch_of,
    fetch_request,
    frame_of,
    produce_request,
    produced,
)
from tests.faults.worlds import wait_for

AT_ONCE_S = 5  # on a busy machine; nothing here waits for long
PATIENCE_S = 30
# twistd re-raises the signal that ended it, after everything is closed; a gateway whose exit code is its own returns 0.
ENDED_AS_ASKED = {0, -signal.SIGTERM}
_CLOSED = "Main loop terminated."
_TWISTD = [sys.executable, "-c", "from twisted.scripts.twistd import run; run()"]
_LOOPBACK = ["--listen", "tcp:0:interface=127.0.0.1"]


def metadata(port: int, topic: str) -> Any:
    """
    A topic's metadata; the topic is created if missing.
    """
    with Client(port) as client:
        return client.ask(MetadataRequest(topics=[MetadataRequest.Topic(name=topic)]), 9)


def test_a_stop_answers_waiting_fetches() -> None:
    """
    A fetch that waits for records is answered long before its time is up, and the process ends.
    """
    with Kafka() as kafka, Client(kafka.port) as waiting:
        metadata(kafka.port, "empty")
        asked = waiting.send(fetch_request("empty", max_wait_ms=300_000), FETCH_VERSION)
        metadata(kafka.port, "empty")  # the fetch waits by now
        began = monotonic()
        stopping = Thread(target=lambda: codes.append(kafka.stop()))
        codes: list[int] = []
        stopping.start()
        answer = waiting.answer(FetchRequest, FETCH_VERSION, asked)
        assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
        assert waiting.receive() is None
        stopping.join()
        assert monotonic() - began < AT_ONCE_S
        assert codes[0] in ENDED_AS_ASKED
        assert _CLOSED in kafka.log


def test_a_stop_amid_requests_answers_whole_requests() -> None:
    """
    A producer that keeps sending gets complete responses, in order, and then the end of the connection.
    """
    with Kafka() as kafka, Client(kafka.port) as producer:
        metadata(kafka.port, "orders")
        batch = batch_of(bytes(1_000))
        frames = [frame_of(produce_request("orders", batch), PRODUCE_VERSION, number) for number in range(1, 2_001)]
        sending = Thread(target=send_until_closed, args=[producer, frames])
        sending.start()
        answered = produced(producer.answer(ProduceRequest, PRODUCE_VERSION, 1)).base_offset
        assert answered == 0
        os.kill(kafka.pid, signal.SIGTERM)
        answers = list(iter(producer.receive, None))
        assert [int.from_bytes(frame[:4], "big") for frame in answers] == list(range(2, 2 + len(answers)))
        sending.join()
        assert kafka.stop() in ENDED_AS_ASKED
        assert "Traceback" not in kafka.log


def send_until_closed(client: Client, frames: list[bytes]) -> None:
    """
    Send as much as the other side reads.
    """
    try:
        for frame in frames:
            client.socket.sendall(frame)
    except OSError:
        pass


def test_a_stop_removes_port_file_and_control_socket(tmp_path: Path) -> None:
    with Kafka(folder=tmp_path) as kafka:
        metadata(kafka.port, "orders")
        assert {"port", "control.sock"} <= set(os.listdir(tmp_path))
        kafka.stop()
        assert not {"port", "control.sock"} & set(os.listdir(tmp_path))


def test_a_stop_right_after_the_start_is_clean() -> None:
    """
    At no moment after "ready" does a signal kill the gateway.
    """
    for _ in range(3):
        with Kafka() as kafka:
            kafka.stop()
        assert _CLOSED in kafka.log


def test_a_taken_port_is_refused(tmp_path: Path) -> None:
    """
    A second gateway on a port says so in one plain line, and its exit code is not 0.
    """
    with Kafka() as kafka:
        taken = f"tcp:{kafka.port}:interface=127.0.0.1"
        options = ["--listen", taken, "--control-socket", str(tmp_path / "control.sock")]
        second = run([sys.executable, "-m", "kgateway", "serve", *options], tmp_path)
    assert second.returncode not in ENDED_AS_ASKED
    [reason] = [line for line in second.stdout.splitlines() if "cannot start" in line]
    assert taken in reason
    assert "in use" in reason
    assert "Traceback" not in second.stdout


def run(command: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """
    Run a command to its end and return its output.
    """
    return subprocess.run(
        command,
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE_S,
        check=False,
    )


class Daemon:
    """
    A gateway that twistd has put into the background.
    """

    def __init__(self, folder: Path, *options: str, listen: str = "tcp:0:interface=127.0.0.1") -> None:
        self.folder = folder
        twistd = [f"--pidfile={folder / 'pid'}", f"--logfile={folder / 'log'}", *options]
        files = ["--port-file", str(folder / "port"), "--control-socket", str(folder / "control.sock")]
        self.start = run([*_TWISTD, *twistd, "kgateway", *f"--listen {listen}".split(), *files], folder)

    @property
    def port(self) -> int:
        return int((self.folder / "port").read_text().rpartition(":")[2])

    @property
    def pid(self) -> int:
        return int((self.folder / "pid").read_text())

    def stop(self) -> None:
        """
        Stop it and wait for its end.
        """
        process = os.pidfd_open(self.pid)
        try:
            signal.pidfd_send_signal(process, signal.SIGTERM)
            waiting = select.poll()  # select.select would refuse descriptors from 1024 on
            waiting.register(process, select.POLLIN)
            ended = waiting.poll(PATIENCE_S * 1000)
            assert ended, "the daemon did not end"
        finally:
            os.close(process)

    def kill(self) -> None:
        if (self.folder / "pid").exists():
            os.kill(self.pid, signal.SIGKILL)


@pytest.fixture
def folder() -> Iterator[Path]:
    """
    A folder that every user can reach, with a path short enough for the control socket.
    """
    with tempfile.TemporaryDirectory(prefix="kgateway-") as name:
        yield Path(name)


@pytest.fixture
def daemon(folder: Path) -> Iterator[Daemon]:
    daemon = Daemon(folder)
    try:
        assert daemon.start.returncode == 0, daemon.start.stdout
        yield daemon
    finally:
        daemon.kill()


def test_a_daemon_is_ready_when_twistd_returns(daemon: Daemon) -> None:
    """
    Clients are served at once. The terminal has one line, which says where they connect, and where the log is.
    """
    assert metadata(daemon.port, "orders").topics[0].error_code == ErrorCode.NONE
    ready = f"is ready: plaintext on 127.0.0.1:{daemon.port}; data in kgateway-data (0 topics)"
    [line] = daemon.start.stdout.splitlines()
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} kgateway ", line)
    assert line.endswith(f"{ready}; process {daemon.pid}; log in {daemon.folder / 'log'}")
    assert ready in (daemon.folder / "log").read_text()


@pytest.fixture(params=[signal.SIG_DFL, signal.SIG_IGN], ids=["shell", "nohup"])
def hangups(request: pytest.FixtureRequest) -> Iterator[None]:
    """
    What the process that starts the gateway does about SIGHUP; its children inherit it.
    """
    before = signal.signal(signal.SIGHUP, request.param)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangups")
def test_a_hangup_opens_the_log_again(daemon: Daemon) -> None:
    """
    That is how log files are rotated by other programs. The gateway serves on, and its files stay.
    """
    (daemon.folder / "log").rename(daemon.folder / "log.1")
    os.kill(daemon.pid, signal.SIGHUP)
    wait_for((daemon.folder / "log").exists)
    assert ask(str(daemon.folder / "control.sock"), "loglevel", {})["level"] == "info"
    assert metadata(daemon.port, "orders").topics[0].error_code == ErrorCode.NONE
    daemon.stop()
    assert "Server Shut Down" in (daemon.folder / "log").read_text()
    assert "Server Shut Down" not in (daemon.folder / "log.1").read_text()


def test_a_signal_rotates_the_log(daemon: Daemon) -> None:
    """
    SIGUSR1 numbers the old log, and the gateway serves on.
    """
    os.kill(daemon.pid, signal.SIGUSR1)
    wait_for((daemon.folder / "log.1").exists)
    assert "is ready" in (daemon.folder / "log.1").read_text()
    assert metadata(daemon.port, "orders").topics[0].error_code == ErrorCode.NONE


def test_a_daemon_stops_on_a_signal(daemon: Daemon) -> None:
    """
    It removes its pid file, its port file and its control socket.
    """
    metadata(daemon.port, "orders")
    daemon.stop()
    assert sorted(os.listdir(daemon.folder)) == ["kgateway-data", "log"]
    assert "Traceback" not in (daemon.folder / "log").read_text()


def test_a_daemon_on_a_taken_port_is_refused(folder: Path) -> None:
    """
    One line on the terminal says why, as one in the log does. Its exit code is not 0, and no other file is left.
    """
    with Kafka() as kafka:
        taken = f"tcp:{kafka.port}:interface=127.0.0.1"
        second = Daemon(folder, listen=taken)
    assert second.start.returncode == 1
    advice = "stop the program that uses it, or listen on another port with --listen"
    reason = f"kgateway cannot start: {taken}: the port is in use; {advice}\n"
    assert second.start.stdout == reason
    log = (folder / "log").read_text()
    assert log.endswith(reason)
    assert "Traceback" not in log
    assert os.listdir(folder) == ["log"]


def test_a_daemon_on_two_ports_leaves_nothing_of_a_failed_start(folder: Path) -> None:
    """
    The first port must be closed again, which takes a turn of the reactor.
    """
    with Kafka() as kafka:
        taken = f"tcp:{kafka.port}:interface=127.0.0.1"
        second = Daemon(folder, listen=f"one=tcp:0:interface=127.0.0.1 --listen two={taken}")
    assert second.start.returncode == 1
    assert second.start.stdout.startswith(f"kgateway cannot start: two={taken}: the port is in use")
    wait_for(lambda: os.listdir(folder) == ["log"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_gateway_drops_root(folder: Path) -> None:
    """
    Started by root for another user, it runs as that user, writes its files as that user, and serves.
    """
    user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    daemon = Daemon(folder, f"--uid={user.pw_uid}", f"--gid={user.pw_gid}")
    try:
        assert daemon.start.returncode == 0, daemon.start.stdout
        assert os.stat(f"/proc/{daemon.pid}").st_uid == user.pw_uid
        owners = {name: (folder / name).stat().st_uid for name in ("port", "control.sock")}
        assert owners == {"port": user.pw_uid, "control.sock": user.pw_uid}
        check_round_trip(f"127.0.0.1:{daemon.port}")
        daemon.stop()
        assert sorted(os.listdir(folder)) == ["kgateway-data", "log"]
    finally:
        daemon.kill()


def check_round_trip(bootstrap: str) -> None:
    """
    Check that a client gets back the record it produces.
    """
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4"})
    producer.produce("trip", b"value", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    try:
        consumer.assign([TopicPartition("trip", 0, 0)])
        message = consumer.poll(PATIENCE_S)
        assert message
        assert message.value() == b"value"
    finally:
        consumer.close()


def test_listeners_and_their_advertised_addresses() -> None:
    """
    Each of two listeners gets a free port; one advertises the address that clients connected to, the other the
    configured one.
    """
    listen = ["--listen", "inside=tcp:0:interface=127.0.0.1", "--listen", "outside=tcp:0:interface=127.0.0.1"]
    with Kafka(*listen, "--advertise", "outside=kafka.example.org:443") as kafka:
        inside, outside = (int(address.rpartition(":")[2]) for address in kafka.addresses)
        assert inside != outside
        told = [(broker.host, broker.port) for port in (inside, outside) for broker in metadata(port, "t").brokers]
    assert told == [("127.0.0.1", inside), ("kafka.example.org", 443)]
