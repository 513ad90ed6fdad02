"""
A listener with TLS, and a real client.
"""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from kgateway.testing.kafka import Kafka
from tests.broker.seaweed.grpc.certificates import Authority

PATIENCE_S = 20


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def kafka(authority: Authority, tmp_path: Path) -> Iterator[Kafka]:
    """
    A gateway with one listener of each kind, without names.
    """
    pair = authority.certify("localhost")
    (tmp_path / "key.pem").write_bytes(pair.key)
    (tmp_path / "cert.pem").write_bytes(pair.certificate)
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    encrypted = "ssl:0:interface=127.0.0.1:privateKey=key.pem:certKey=cert.pem"
    with Kafka("--listen", encrypted, "--listen", "tcp:0:interface=127.0.0.1", folder=tmp_path) as kafka:
        yield kafka


def test_a_client_produces_and_consumes_over_tls(kafka: Kafka) -> None:
    """
    The ready line says which port is encrypted; clients of both see the same records.
    """
    encrypted, plain = kafka.addresses
    assert f"is ready: TLS on {encrypted}, plaintext on {plain}; " in kafka.log
    secure = {"security.protocol": "ssl", "ssl.ca.location": str(kafka.folder / "ca.pem")}
    producer = Producer({"bootstrap.servers": encrypted, **secure})
    producer.produce("orders", b"42 apples")
    assert producer.flush(PATIENCE_S) == 0
    for address, options in ((encrypted, secure), (plain, {})):
        group = {"group.id": f"g-{len(options)}", "auto.offset.reset": "earliest"}
        consumer = Consumer({"bootstrap.servers": address, **options, **group})
        consumer.subscribe(["orders"])
        message = consumer.poll(PATIENCE_S)
        consumer.close()
        assert message is not None
        assert (message.error(), message.value()) == (None, b"42 apples")


def test_a_client_that_does_not_trust_the_certificate_is_not_served(kafka: Kafka, tmp_path: Path) -> None:
    """
    The address of the certificate is checked as well as who has issued it.
    """
    (tmp_path / "other.pem").write_bytes(Authority("another").certificate)
    secure = {"security.protocol": "ssl", "ssl.ca.location": str(tmp_path / "other.pem")}
    producer = Producer({"bootstrap.servers": kafka.bootstrap, **secure, "log_level": 0})
    producer.produce("orders", b"42 apples")
    assert producer.flush(2) == 1
    producer.purge()
    producer.flush(0)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the page makes its certificate with openssl")
def test_the_example_of_the_page_works(tmp_path: Path) -> None:
    """
    Its commands make a key and a certificate, and its client connects with them.
    """
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text().partition("## TLS\n")[2]
    made, _, served = page.partition("```sh\n")[2].partition("```\n")[0].partition("kgateway serve ")
    subprocess.run(made, shell=True, cwd=tmp_path, capture_output=True, check=True)
    options = shlex.split(served.replace("ssl:9093:", "ssl:0:"))
    example = page.partition("```py\n")[2].partition("```\n")[0]
    with Kafka(*options, folder=tmp_path) as kafka:
        program = example.replace("localhost:9093", f"localhost:{kafka.port}") + "\nassert len(producer) == 0\n"
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, timeout=60, check=True)
        assert "closed" not in kafka.log
