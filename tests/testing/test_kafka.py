"""
Gateways for tests are real processes that tests start and stop.
"""

import re
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]

from kgateway.control.client import ask
from kgateway.messages.api_versions import ApiVersionsRequest
from kgateway.testing import Kafka, NotStarted
from kgateway.wire.headers import request_frame

_FRAME = b"".join(request_frame(ApiVersionsRequest(), 0, 7, None))


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafka("--num-partitions", "7") as kafka:
        yield kafka


def serves(address: str) -> bool:
    """
    Whether a client gets a response from this port.
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
    The gateway listens at a free loopback port as soon as its block is entered.
    """
    assert kafka.bootstrap == f"127.0.0.1:{kafka.port}"
    assert kafka.addresses == [kafka.bootstrap]
    assert serves(kafka.bootstrap)


def test_operators_connect(kafka: Kafka) -> None:
    """
    Each gateway has its own control socket.
    """
    assert ask(kafka.control_socket, "loglevel", {})["level"] == "info"


def test_two_gateways_are_separate(kafka: Kafka) -> None:
    """
    Each has a folder, a port and a process of its own.
    """
    with Kafka() as other:
        assert other.port != kafka.port
        assert other.folder != kafka.folder
        assert other.pid != kafka.pid


def test_the_log_is_available(kafka: Kafka) -> None:
    """
    A failing test can show it.
    """
    assert "is ready: plaintext on 127.0.0.1" in kafka.log


def test_it_stops(tmp_path: Path) -> None:
    """
    SIGTERM ends it in order, and it may be started again.
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
    Its own folder is deleted.
    """
    with Kafka() as kafka:
        assert kafka.folder.parent == Path(tempfile.gettempdir())
    assert not kafka.folder.exists()


def test_it_leaves_nothing_behind_where_it_does_not_start() -> None:
    """
    Its own folder is deleted as well.
    """
    kafka = Kafka("--num-partitions", "many")
    with pytest.raises(NotStarted), kafka:
        pass
    assert not kafka.folder.exists()


def test_its_folder_may_have_a_long_path(tmp_path: Path) -> None:
    """
    The address of a Unix socket may not.
    """
    folder = tmp_path / ("deep" * 30)
    folder.mkdir()
    with Kafka(folder=folder) as kafka:
        assert serves(kafka.bootstrap)


def test_it_crashes_on_request(tmp_path: Path) -> None:
    """
    The crash is immediate; the exit code has the signal.
    """
    kafka = Kafka(folder=tmp_path).start()
    assert kafka.kill() == -SIGKILL
    assert not serves(f"127.0.0.1:{kafka.port}")


def test_a_crashed_gateway_may_be_broken(tmp_path: Path) -> None:
    """
    It does not start again, though the file with the port still exists.
    """
    config = tmp_path / "gateway.toml"
    config.write_text("num_partitions = 2")
    kafka = Kafka("--config", str(config), folder=tmp_path).start()
    kafka.kill()
    config.write_text("num_partitions = true")
    with pytest.raises(NotStarted):
        kafka.start()


def test_given_listeners_are_used(tmp_path: Path) -> None:
    """
    They replace the free port; a given folder is kept.
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
def test_a_failed_start_has_a_reason(tmp_path: Path, option: str, value: str, why: str) -> None:
    """
    The exception has the gateway's output.
    """
    with pytest.raises(NotStarted, match=f"(?s)did not become ready.*{why}"):
        Kafka(option, value, folder=tmp_path).start()


def test_options_may_be_keywords(tmp_path: Path) -> None:
    """
    Their values are those of Python; of an option that may be repeated there may be several.
    """
    listen = ["one=tcp:0:interface=127.0.0.1", "two=tcp:0:interface=127.0.0.1"]
    with Kafka(listen=listen, broker="memory:", num_partitions=7, auto_create_topics=False, folder=tmp_path) as kafka:
        assert len(kafka.addresses) == 2
        assert configs(kafka, "num.partitions", "auto.create.topics.enable") == {
            "num.partitions": "7",
            "auto.create.topics.enable": "false",
        }


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"num_partition": 8}, TypeError, "there is no option num_partition; did you mean num_partitions?"),
        ({"port_file": "p"}, TypeError, "there is no option port_file; "),
        ({"num_partitions": "many"}, ValueError, "num_partitions is 'many': it must be an integer from 1 to 10000"),
        ({"listen": "tcp:1:interfac=x"}, ValueError, "listen is 'tcp:1:interfac=x': an endpoint of type tcp has no"),
    ],
)
def test_a_mistake_in_keywords_is_an_error(settings: Any, error: type[Exception], message: str) -> None:
    """
    Nothing is started.
    """
    with pytest.raises(error, match=re.escape(message)):
        Kafka(**settings)


def test_groups_rebalance_at_once() -> None:
    """
    A test does not wait for members that do not come, unless it asks for that.
    """
    name = "group.initial.rebalance.delay.ms"
    with Kafka(broker="memory:") as kafka:
        assert configs(kafka, name) == {name: "0"}
        producer = Producer({"bootstrap.servers": kafka.bootstrap})
        producer.produce("orders", b"42 apples")
        assert producer.flush(20) == 0
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        message = consumer.poll(20)
        consumer.close()
        assert message is not None
        assert message.value() == b"42 apples"
    for kafka in (Kafka(group_initial_rebalance_delay_ms=50), Kafka("--group-initial-rebalance-delay-ms", "50")):
        with kafka:
            assert configs(kafka, name) == {name: "50"}


def configs(kafka: Kafka, *names: str) -> dict[str, str | None]:
    """
    These configs of the gateway, as administrators see them.
    """
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    [described] = admin.describe_configs([ConfigResource(ConfigResource.Type.BROKER, "1")]).values()
    found = described.result(20)
    return {name: found[name].value for name in names}


def test_patience_ends(tmp_path: Path) -> None:
    """
    A gateway that is not ready in time is killed.
    """
    kafka = Kafka(folder=tmp_path, patience_s=0)
    with pytest.raises(NotStarted):
        kafka.start()
    assert kafka.stop() == -SIGKILL
