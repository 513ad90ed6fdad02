"""
A listener with TLS, and a real client.
"""

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
