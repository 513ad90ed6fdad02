"""
Topics of SeaweedMQ read straight from a filer that requires certificates and signatures.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from kgateway.client.offsets import Extent
from kgateway.records.record import Record
from kgateway.spark.archive.store import read_file as read_all
from kgateway.spark.errors import Unreadable
from kgateway.spark.http.client import Access, RemoteError, url_path
from kgateway.spark.logs.offset_range import OffsetRange
from kgateway.spark.options import READ, Options
from kgateway.spark.query import location_of
from kgateway.spark.readers.range_reader import ReadSpec, read_range
from kgateway.spark.seaweed.archive_store import filer_store
from kgateway.testing.kafka import Kafka
from kgateway.topic_partition import TopicPartition
from tests.broker.seaweed.grpc.certificates import Authority
from tests.broker.seaweed.secured_cluster import FILER_GROUP, Sections, SecuredCluster
from tests.clients.confluent_client import Confluent

PLACE = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    """
    A secured cluster with a topic of twenty records.
    """
    secured = SecuredCluster(tmp_path_factory.mktemp("secured"))
    rows = [Record(offset, 1_700_000_000_000 + offset, b"k", b"v%d" % offset) for offset in range(20)]
    where = ("--broker", f"seaweedmq:{secured.cluster.masters[0]}", "--seaweed-filer-group", FILER_GROUP)
    try:
        secured.cluster.start()
        with Kafka(*where, "--seaweed-security", str(secured.gateway("gateway"))) as kafka:
            config = {"seaweedmq.format": "record", "seaweedmq.acks": "flushed"}
            Confluent(kafka.bootstrap).create_topic("t", 1, config)
            assert Confluent(kafka.bootstrap).send("t", rows) == list(range(20))
        yield secured
    finally:
        secured.cluster.kill()


def offsets(secured: SecuredCluster, security: Path | None, scheme: str = "https") -> list[int]:
    """
    The offsets read with this security file.
    """
    given = {"kgateway.filer": f"{scheme}://{secured.cluster.filer}", "kafkaConsumer.pollTimeoutMs": "300"}
    given |= {"kgateway.seaweed.security": str(security)} if security else {}
    with closing(location_of(Options(given, READ)).open(planning=True)) as logs:
        assert logs.extents([PLACE]) == {PLACE: Extent(0, 20)}
        found = list(read_range(logs.windows, OffsetRange(PLACE, 0, 20), ReadSpec(("offset",))))
    return [row["offset"] for rows in found for row in rows.to_pylist()]


def test_a_complete_security_file_reads(secured: SecuredCluster) -> None:
    """
    The file is that of a gateway.
    """
    assert offsets(secured, secured.gateway("reader")) == list(range(20))


def test_missing_security_is_named(secured: SecuredCluster) -> None:
    """
    A key, an authority or TLS may be missing.
    """
    wrong = secured.gateway("wrong", {"jwt.filer_signing.read": {"key": "another"}})
    with pytest.raises(
        Unreadable, match=r"401.*does not accept signatures made with `key` under \[jwt.filer_signing.read\]"
    ):
        offsets(secured, wrong)
    with pytest.raises(Unreadable, match=r"no TLS with https://127.0.0.1:\d+: .*CERTIFICATE_VERIFY_FAILED"):
        offsets(secured, None)
    other = secured.keep("other-ca.pem", Authority().certificate)
    with pytest.raises(Unreadable, match=r"no TLS with https://127.0.0.1:\d+: .*CERTIFICATE_VERIFY_FAILED"):
        offsets(secured, secured.gateway("other", {"https.client": {"enabled": True, "ca": other}}))
    with pytest.raises(Unreadable, match=r"HTTP 400 Client sent an HTTP request to an HTTPS server"):
        offsets(secured, secured.gateway("reader"), scheme="http")


def test_a_complete_security_file_writes(secured: SecuredCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A file of an archive is written by gRPC and HTTP; the error names a missing certificate.
    """
    path = url_path(f"https://{secured.cluster.filer}/archives/orders/file")
    store = filer_store(path.origin, Access(security_file=str(secured.gateway("writer"))))
    making = store.make(path.parent)
    making.write(b"some bytes")
    making.finish(path.name)
    making.discard()
    assert read_all(store, path) == b"some bytes"
    store.remove(path)
    assert store.names(path.parent) == []
    monkeypatch.setattr("kgateway.broker.seaweed.filer.content._ALL_S", 1.0)
    none: Sections = {"grpc": {}, "grpc.mq": {}}
    making = filer_store(path.origin, Access(security_file=str(secured.gateway("nobody", none)))).make(path.parent)
    making.write(b"some bytes")
    with pytest.raises(RemoteError, match=r"the filer 127.0.0.1:\d+ cannot be reached by gRPC"):
        making.finish(path.name)
    making.discard()
