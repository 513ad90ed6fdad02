"""
Gateways for tests: real processes, started and stopped.
"""

import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL, SIGTERM

import pytest

from kgateway.control.client import ask
from kgateway.messages.api_versions import ApiVersionsRequest
from kgateway.testing import Kafka, NotStarted
from kgateway.wire.headers import request_frame

_FRAME = b"".join(request_frame(ApiVersionsRequest(), 0, 7, None))


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    """
    One that serves meanwhile.
    """
    with Kafka("--num-partitions", "7") as kafka:
        yield kafka


def serves(address: str) -> bool:
    """
    Whether a client gets an answer there.
    """
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=10) as client:
            client.sendall(_FRAME)
            return client.recv(8)[4:] == (7).to_bytes(4, "big")
    except ConnectionRefusedError:
        return False


def test_clients_connect(kafka: Kafka) -> None:
    """
    To a free port of the loopback interface, as soon as it is entered.
    """
    assert kafka.bootstrap == f"127.0.0.1:{kafka.port}"
    assert kafka.addresses == [kafka.bootstrap]
    assert serves(kafka.bootstrap)


def test_operators_ask(kafka: Kafka) -> None:
    """
    Through a control socket of its own.
    """
    assert ask(kafka.control_socket, "loglevel", {})["level"] == "info"


def test_two_are_apart(kafka: Kafka) -> None:
    """
    Each has a folder, a port and a process of its own.
    """
    with Kafka() as other:
        assert other.port != kafka.port
        assert other.folder != kafka.folder
        assert other.pid != kafka.pid


def test_the_log_is_at_hand(kafka: Kafka) -> None:
    """
    For the message of a test that fails.
    """
    assert "is ready: plaintext on 127.0.0.1" in kafka.log


def test_it_stops(tmp_path: Path) -> None:
    """
    In good order, by the signal that it is sent, and may be started again.
    """
    kafka = Kafka(folder=tmp_path).start()
    first = kafka.bootstrap
    assert kafka.stop() == -SIGTERM
    assert "Server Shut Down" in kafka.log
    assert not serves(first)
    assert serves(kafka.start().bootstrap)
    assert kafka.stop() == -SIGTERM


def test_it_leaves_nothing_behind() -> None:
    """
    A folder of its own goes with it.
    """
    with Kafka() as kafka:
        assert kafka.folder.parent == Path(tempfile.gettempdir())
    assert not kafka.folder.exists()


def test_it_leaves_nothing_behind_where_it_does_not_start() -> None:
    """
    Its folder goes then, too.
    """
    kafka = Kafka("--num-partitions", "many")
    with pytest.raises(NotStarted), kafka:
        pass
    assert not kafka.folder.exists()


def test_it_crashes_when_told_to(tmp_path: Path) -> None:
    """
    At once; the exit code says by what.
    """
    kafka = Kafka(folder=tmp_path).start()
    assert kafka.kill() == -SIGKILL
    assert not serves(f"127.0.0.1:{kafka.port}")


def test_one_that_crashed_may_be_broken(tmp_path: Path) -> None:
    """
    Then it does not start, though the file with the port is still there.
    """
    config = tmp_path / "gateway.toml"
    config.write_text("num_partitions = 2")
    kafka = Kafka("--config", str(config), folder=tmp_path).start()
    kafka.kill()
    config.write_text("num_partitions = true")
    with pytest.raises(NotStarted):
        kafka.start()


def test_listeners_are_as_they_are_given(tmp_path: Path) -> None:
    """
    In place of the free port; and the folder that was given is left.
    """
    listen = ["--listen", "one=tcp:0:interface=127.0.0.1", "--listen", "two=tcp:0:interface=127.0.0.1"]
    with Kafka(*listen, folder=tmp_path) as kafka:
        assert len(set(kafka.addresses)) == 2
        assert all(map(serves, kafka.addresses))
    assert tmp_path.exists()


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [("--num-partitions", "many", "num-partitions"), ("--handlers", "acme", "there is no package acme")],
)
def test_why_it_did_not_start(tmp_path: Path, option: str, value: str, why: str) -> None:
    """
    What the gateway said is in the exception.
    """
    with pytest.raises(NotStarted, match=f"(?s)did not become ready.*{why}"):
        Kafka(option, value, folder=tmp_path).start()


def test_patience_ends(tmp_path: Path) -> None:
    """
    One that is not ready in time is killed.
    """
    kafka = Kafka(folder=tmp_path, patience_s=0)
    with pytest.raises(NotStarted):
        kafka.start()
    assert kafka.stop() == -SIGKILL
