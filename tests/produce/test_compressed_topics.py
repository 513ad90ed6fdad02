"""
A running gateway whose topics have a `compression.type`, and librdkafka.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest

from kgateway.records.batch import TimestampType
from kgateway.records.compression import Codec
from kgateway.records.record import Header, Record
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode
from tests.clients.behaviour import START_MS, read, rows
from tests.clients.client import Refused, Sending
from tests.clients.confluent_client import Confluent
from tests.clients.raw import Raw

TYPES = {"uncompressed": Codec.NONE} | {codec.name.lower(): codec for codec in list(Codec)[1:]}
KEPT = ("--retention-ms", str((1 << 63) - 1))


@pytest.fixture(scope="module", params=["log:kgateway-data", "memory:"])
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    with Kafka("--broker", request.param, *KEPT) as kafka:
        yield kafka
        assert "Traceback" not in kafka.log, kafka.log


@pytest.fixture
def raw(kafka: Kafka) -> Iterator[Raw]:
    """
    Access to the stored bytes.
    """
    with Raw(kafka.bootstrap) as raw:
        yield raw


def codecs(raw: Raw, topic: str) -> set[Codec]:
    return {batch.header.codec for batch in raw.batches(topic)}


@pytest.mark.parametrize("name", TYPES)
def test_batches_get_the_codec_of_the_topic(name: str, kafka: Kafka, raw: Raw) -> None:
    """
    Whatever the producer's codec is, the log has the topic's, and consumers read what was sent.
    """
    client = Confluent(kafka.bootstrap)
    client.create_topic(name, 1, {"compression.type": name})
    sent: list[Record] = []
    for codec in Codec:
        some = [row._replace(offset=len(sent) + row.offset, headers=(Header("h", b"1"),)) for row in rows(20)]
        client.send(name, some, how=Sending(codec=codec))
        sent += some
    assert codecs(raw, name) == {TYPES[name]}
    assert read(client, name, len(sent)) == sent


def test_producer_keeps_the_codec(kafka: Kafka, raw: Raw) -> None:
    """
    Without a config the log has the producer's codec.
    """
    for codec in Codec:
        topic = f"as-{codec.name}"
        Confluent(kafka.bootstrap).send(topic, rows(20), how=Sending(codec=codec))
        assert codecs(raw, topic) == {codec}


def test_levels(kafka: Kafka, raw: Raw) -> None:
    """
    The level of the topic's codec decides how small batches become.
    """
    client, sizes = Confluent(kafka.bootstrap), {}
    for level in ("1", "19"):
        topic = f"level-{level}"
        client.create_topic(topic, 1, {"compression.type": "zstd", "compression.zstd.level": level})
        raw.append(topic, rows(3_000))
        sizes[level] = sum(len(batch.data) for batch in raw.batches(topic))
    assert sizes["19"] < sizes["1"]


def test_idempotent_producers_keep_their_order(kafka: Kafka, raw: Raw) -> None:
    """
    Many concurrent batches of a producer with sequence numbers are stored in order and once.
    """
    client = Confluent(kafka.bootstrap)
    client.create_topic("ordered", 1, {"compression.type": "zstd"})
    sent = rows(3_000, 200)
    assert client.send("ordered", sent, how=Sending(idempotent=True, batch_bytes=3_000)) == list(range(3_000))
    batches = raw.batches("ordered")
    assert len(batches) > 50
    assert [batch.header.base_sequence for batch in batches] == [batch.header.base_offset for batch in batches]
    assert raw.records("ordered") == sent
    assert codecs(raw, "ordered") == {Codec.ZSTD}


def test_log_append_time(kafka: Kafka, raw: Raw) -> None:
    """
    The topic may have LogAppendTime, too.
    """
    client = Confluent(kafka.bootstrap)
    client.create_topic("stamped", 1, {"compression.type": "lz4", "message.timestamp.type": "LogAppendTime"})
    client.send("stamped", rows(20))
    assert {batch.header.timestamp_type for batch in raw.batches("stamped")} == {TimestampType.LOG_APPEND_TIME}
    assert all(record.timestamp > START_MS for record in read(client, "stamped", 20))
    assert codecs(raw, "stamped") == {Codec.LZ4}


def test_a_batch_that_becomes_too_large(kafka: Kafka, raw: Raw) -> None:
    """
    A batch that is too large once it is decompressed gives MESSAGE_TOO_LARGE, and is not stored.
    """
    client = Confluent(kafka.bootstrap)
    client.create_topic("large", 1, {"compression.type": "uncompressed", "max.message.bytes": "2000"})
    with pytest.raises(Refused) as refused:
        client.send("large", rows(1, 5_000), how=Sending(codec=Codec.GZIP))
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
    assert raw.records("large") == []


def dumped(kafka: Kafka, *arguments: str) -> Sequence[str]:
    command = [sys.executable, "-m", "kgateway", "log", "dump", str(kafka.folder / "kgateway-data"), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()


def test_default_and_dump(tmp_path_factory: pytest.TempPathFactory) -> None:
    """
    `--compression-type` applies where a topic sets nothing, a change applies to later batches, and `kgateway log dump`
    shows them.
    """
    folder = tmp_path_factory.mktemp("gateway")
    with Kafka("--compression-type", "gzip", *KEPT, folder=folder) as kafka:
        client = Confluent(kafka.bootstrap)
        client.create_topic("orders", 1, {})
        assert client.config("orders")["compression.type"] == "gzip"
        client.send("orders", rows(20))
        client.create_topic("other", 1, {"compression.type": "snappy"})
        client.send("other", rows(20))
    for topic, codec in (("orders", "gzip"), ("other", "snappy")):
        lines = [line.split() for line in dumped(kafka, "--partition", f"{topic}-0") if re.match(r"\d+-\d+ ", line)]
        assert {(line[3], line[-1]) for line in lines} == {(codec, "ok")}
        assert (lines[0][0].split("-")[0], lines[-1][0].split("-")[1]) == ("0", "19"), "all that was sent"
