"""
kcat with Debian's librdkafka, which is older than that of confluent-kafka.
"""

import json
import subprocess
from collections.abc import Sequence

import pytest

from kgateway.records.compression import Codec
from kgateway.records.record import Header, Record
from kgateway.testing.kafka import Kafka
from kgateway.testing.pytest_plugin import StartKafka
from tests.clients.behaviour import CODEC_NAME, HOUR_MS, START_MS, rows
from tests.clients.client import PATIENCE_S
from tests.clients.raw import Raw

LINES = "".join(f"key {i}:value {i}\n" for i in range(20))
PAIRS = [(b"key %d" % i, b"value %d" % i) for i in range(20)]


def started(kafka: Kafka, *arguments: str) -> subprocess.Popen[str]:
    """
    A process of kcat with this gateway.
    """
    pipe = subprocess.PIPE
    command = ["kcat", "-b", kafka.bootstrap, *arguments]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def kcat(kafka: Kafka, *arguments: str, text: str = "") -> str:
    """
    The output of a successful kcat with this input.
    """
    with started(kafka, *arguments) as process:
        printed, complaints = process.communicate(text, PATIENCE_S)
    assert process.returncode == 0, complaints
    return printed


def produce(kafka: Kafka, topic: str, *options: str, text: str = LINES) -> None:
    """
    Send lines of a key, a colon and a value.
    """
    kcat(kafka, "-P", "-t", topic, "-K:", *options, text=text)


def consume(kafka: Kafka, topic: str, *options: str) -> list[tuple[int, Record]]:
    """
    The records with their partitions, to the end of each partition unless options say otherwise.
    """
    return _shown(kcat(kafka, "-C", "-t", topic, "-J", "-e", "-X", "check.crcs=true", *options))


def _shown(printed: str) -> list[tuple[int, Record]]:
    found = [json.loads(line) for line in printed.splitlines()]
    return [
        (row["partition"], Record(row["offset"], row["ts"], _bytes(row["key"]), _bytes(row["payload"]), _headers(row)))
        for row in found
    ]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _headers(row: dict[str, list[str]]) -> tuple[Header, ...]:
    notes = iter(row.get("headers", []))
    return tuple(Header(key, _bytes(value)) for key, value in zip(notes, notes, strict=True))


def pairs(records: Sequence[Record]) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in records]


def first(found: Sequence[tuple[int, Record]]) -> list[Record]:
    """
    The records of the first partition.
    """
    assert all(partition == 0 for partition, _ in found)
    return [record for _, record in found]


@pytest.mark.parametrize("codec", Codec, ids=CODEC_NAME)
def test_codec_is_stored(shared_kafka: Kafka, raw: Raw, topic: str, codec: Codec) -> None:
    """
    Batches are stored in the codec that kcat was given, and can be read.
    """
    produce(shared_kafka, topic, "-z", codec.name.lower())
    assert {batch.header.codec for batch in raw.batches(topic)} == {codec}
    assert pairs(raw.records(topic)) == PAIRS
    assert first(consume(shared_kafka, topic)) == raw.records(topic)


def test_headers_are_kept(shared_kafka: Kafka, raw: Raw, topic: str) -> None:
    """
    Headers keep their order; one may be repeated, be empty or have no value.
    """
    produce(shared_kafka, topic, "-H", "h=1", "-H", "e=", "-H", "h=2", "-H", "n", text="k:v\n")
    (record,) = raw.records(topic)
    assert record.headers == (Header("h", b"1"), Header("e", b""), Header("h", b"2"), Header("n", None))
    assert first(consume(shared_kafka, topic)) == [record]


@pytest.mark.parametrize(("options", "empty"), [((), b""), (("-Z",), None)], ids=["empty", "null"])
def test_nulls_are_kept(shared_kafka: Kafka, raw: Raw, topic: str, options: Sequence[str], empty: bytes | None) -> None:
    """
    Empty keys and values differ from the nulls that `-Z` sends.
    """
    produce(shared_kafka, topic, *options, text=":value\nkey:\n")
    assert pairs(raw.records(topic)) == [(empty, b"value"), (b"key", empty)]
    assert first(consume(shared_kafka, topic)) == raw.records(topic)


def test_idempotent_batches_are_numbered(shared_kafka: Kafka, raw: Raw, topic: str) -> None:
    """
    An idempotent producer gets an id, and its batches carry it and consecutive sequence numbers.
    """
    produce(shared_kafka, topic, "-X", "enable.idempotence=true", "-X", "batch.num.messages=5")
    headers = [batch.header for batch in raw.batches(topic)]
    assert len(headers) > 1
    assert headers[0].producer_id >= 0
    assert {(header.producer_id, header.producer_epoch) for header in headers} == {(headers[0].producer_id, 0)}
    assert [header.base_sequence for header in headers] == [header.base_offset for header in headers]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(shared_kafka: Kafka, topic: str, acks: str) -> None:
    """
    Records arrive whether kcat waits for no response, the leader or all replicas.
    """
    produce(shared_kafka, topic, "-X", f"acks={acks}")
    assert pairs(first(consume(shared_kafka, topic, "-c", "20"))) == PAIRS


def test_many_records_over_partitions(shared_kafka: Kafka, wide_topic: str) -> None:
    """
    Of a thousand records over four partitions none is lost, and each partition is in order.
    """
    produce(shared_kafka, wide_topic, text="".join(f"key {i % 50}:{i:04}\n" for i in range(1_000)))
    found = consume(shared_kafka, wide_topic)
    for index in range(4):
        records = [record for partition, record in found if partition == index]
        assert [record.offset for record in records] == list(range(len(records)))
        assert records == sorted(records, key=lambda record: record.value or b"")
    assert sorted(record.value or b"" for _, record in found) == [b"%04d" % i for i in range(1_000)]
    assert {partition for partition, _ in found} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("start", "count"),
    [("beginning", 10), ("7", 3), ("-2", 2), (f"s@{START_MS + 6_500}", 3)],
    ids=["beginning", "offset", "tail", "time"],
)
def test_where_consuming_starts(shared_kafka: Kafka, raw: Raw, topic: str, start: str, count: int) -> None:
    """
    kcat reads from the beginning, an offset, a number of records before the end, or a time, and keeps the timestamps.
    """
    raw.append(topic, rows(10), codec=Codec.LZ4)
    assert first(consume(shared_kafka, topic, "-p", "0", "-o", start)) == rows(10)[-count:]


def test_from_the_end(shared_kafka: Kafka, raw: Raw, topic: str) -> None:
    """
    kcat at the end waits, and reads what is produced from then on.
    """
    raw.append(topic, rows(10))
    with started(shared_kafka, "-C", "-t", topic, "-p", "0", "-o", "end", "-c", "2", "-J") as process:
        assert process.stderr
        assert "Reached end of topic" in process.stderr.readline()
        raw.append(topic, rows(2, 50))
        printed, complaints = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, complaints
    assert first(_shown(printed)) == [row._replace(offset=10 + row.offset) for row in rows(2, 50)]


@pytest.mark.parametrize(("timestamp", "offset"), [(-2, 0), (-1, 10), (START_MS + 6_500, 7), (START_MS + HOUR_MS, -1)])
def test_offsets_are_queried(shared_kafka: Kafka, raw: Raw, topic: str, timestamp: int, offset: int) -> None:
    """
    Both watermarks, the offset for a time, and the lack of one behind all records are shown.
    """
    raw.append(topic, rows(10))
    assert kcat(shared_kafka, "-Q", "-t", f"{topic}:0:{timestamp}") == f"{topic} [0] offset {offset}\n"


def test_topics_are_listed(shared_kafka: Kafka, wide_topic: str) -> None:
    """
    The metadata name the gateway as the leader of each partition.
    """
    told = json.loads(kcat(shared_kafka, "-L", "-J", "-t", wide_topic))
    assert [(broker["id"], broker["name"]) for broker in told["brokers"]] == [(1, shared_kafka.bootstrap)]
    (listed,) = told["topics"]
    assert listed["topic"] == wide_topic
    assert [(p["partition"], p["leader"]) for p in listed["partitions"]] == [(index, 1) for index in range(4)]


def test_topics_are_created_by_producing(shared_kafka: Kafka, raw: Raw, name: str) -> None:
    """
    Producing to a missing topic creates it, with the gateway's default number of partitions.
    """
    produce(shared_kafka, name, "-p", "3")
    assert pairs(raw.records(name, 3)) == PAIRS


def test_a_large_record_is_refused(start_kafka: StartKafka) -> None:
    """
    A record above the gateway's limit is an error, and is not stored.
    """
    kafka = start_kafka("--message-max-bytes", "2000")
    with started(kafka, "-P", "-t", "small", "-p", "0") as process:
        _, complaints = process.communicate("x" * 3_000, PATIENCE_S)
    assert process.returncode == 1
    assert "Message size too large" in complaints
    with Raw(kafka.bootstrap) as raw:
        assert raw.records("small") == []


def test_an_unknown_topic_is_refused(strict_kafka: Kafka, name: str) -> None:
    """
    Without automatic creation, producing to a missing topic fails.
    """
    with started(strict_kafka, "-P", "-t", name, "-X", "topic.metadata.propagation.max.ms=1000") as process:
        _, complaints = process.communicate("value", PATIENCE_S)
    assert process.returncode == 1
    assert "Unknown topic" in complaints
