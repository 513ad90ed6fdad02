"""
Batches made by real clients, and clients that read ours: librdkafka through confluent-kafka, and kafka-python.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPythonPartition

from kgateway.records.batch import Batch, TimestampType, check_produced, read_batch
from kgateway.records.compression import Codec
from kgateway.records.record import Header, Record, records
from tests.records.scripted_broker import PRODUCER_EPOCH, PRODUCER_ID, TOPIC, ScriptedBroker
from tests.records.values import built

HEADERS = (Header("h", b"1"), Header("é", b"\xff"), Header("h", b""))
ROWS = [
    Record(0, 1_700_000_000_000, b"key", b"value " * 50, HEADERS),
    Record(1, 1_699_999_999_000, None, b"before the one before " * 20),
    Record(2, 1_700_000_005_000, b"tombstone", None),
    Record(3, 1_700_000_005_000, b"", b""),
]
# Records that kafka-python refuses to send: without key and value, or with a header without a value.
BARE = [Record(0, 1_700_000_000_000, None, None, (Header("null", None),))]

Produce = Callable[[str, Codec, Sequence[Record]], None]
Consume = Callable[[str, int], list[Record]]


def librdkafka_produces(address: str, codec: Codec, rows: Sequence[Record], **settings: Any) -> None:
    producer = Producer(
        {"bootstrap.servers": address, "compression.type": codec.name.lower(), "linger.ms": 1_000, **settings}
    )
    failures = []
    for row in rows:
        producer.produce(
            TOPIC,
            row.value,
            row.key,
            partition=0,
            timestamp=row.timestamp,
            headers=list(row.headers),
            on_delivery=lambda error, message: failures.append(error) if error else None,
        )
    assert producer.flush(20) == 0
    assert not failures


def kafka_python_produces(address: str, codec: Codec, rows: Sequence[Record]) -> None:
    name = None if codec is Codec.NONE else codec.name.lower()
    producer = KafkaProducer(bootstrap_servers=address, compression_type=name, linger_ms=1_000)
    try:
        sent = [
            producer.send(TOPIC, row.value, row.key, [tuple(h) for h in row.headers], 0, timestamp_ms=row.timestamp)
            for row in rows
        ]
        producer.flush(20)
        for future in sent:
            future.get(0)
    finally:
        producer.close()


def librdkafka_consumes(address: str, count: int) -> list[Record]:
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "g", "enable.auto.commit": False, "check.crcs": True}
    )
    try:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        messages = consumer.consume(count, 20)
        assert [message.error() for message in messages] == [None] * count
        return [_record_of(message) for message in messages]
    finally:
        consumer.close()


def _record_of(message: Message) -> Record:
    offset, headers = message.offset(), tuple(Header(*header) for header in message.headers() or ())
    assert offset is not None
    return Record(offset, message.timestamp()[1], message.key(), message.value(), headers)


def kafka_python_consumes(address: str, count: int) -> list[Record]:
    consumer = KafkaConsumer(bootstrap_servers=address, consumer_timeout_ms=20_000, check_crcs=True)
    try:
        partition = KafkaPythonPartition(TOPIC, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        found = [next(consumer) for _ in range(count)]
        return [Record(m.offset, m.timestamp, m.key, m.value, tuple(Header(*h) for h in m.headers)) for m in found]
    finally:
        consumer.close()


def _captured(produce: Callable[[str], None]) -> Batch:
    with ScriptedBroker() as broker:
        produce(broker.address)
    (data,) = broker.produced
    return read_batch(data)


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("produce", [librdkafka_produces, kafka_python_produces])
def test_batches_of_clients_are_read(produce: Produce, codec: Codec) -> None:
    """
    A client's batch has the requested codec and the original records.
    """
    batch = _captured(lambda address: produce(address, codec, ROWS))
    check_produced(batch)
    assert batch.header.size == len(batch.data)
    assert batch.header.codec is codec
    assert batch.header.timestamp_type is TimestampType.CREATE_TIME
    assert not batch.header.is_transactional
    assert list(records(batch)) == ROWS


def test_nulls_of_librdkafka_are_read() -> None:
    """
    A null key, value or header value differs from an empty one.
    """
    batch = _captured(lambda address: librdkafka_produces(address, Codec.NONE, BARE))
    assert list(records(batch)) == BARE


def test_idempotent_librdkafka_numbers_its_batches() -> None:
    """
    The header has the producer id and epoch from the broker, with sequences from 0.
    """
    settings = {"enable.idempotence": True, "batch.num.messages": 3}
    with ScriptedBroker() as broker:
        librdkafka_produces(broker.address, Codec.LZ4, ROWS, **settings)
    headers = [read_batch(data).header for data in broker.produced]
    assert [(h.producer_id, h.producer_epoch) for h in headers] == [(PRODUCER_ID, PRODUCER_EPOCH)] * 2
    assert [(h.base_sequence, h.records_count) for h in headers] == [(0, 3), (3, 1)]


def test_kafka_python_is_idempotent_by_default() -> None:
    """
    kafka-python 3 asks for a producer id by default.
    """
    header = _captured(lambda address: kafka_python_produces(address, Codec.NONE, ROWS)).header
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (PRODUCER_ID, PRODUCER_EPOCH, 0)


def test_plain_librdkafka_has_no_producer_id() -> None:
    header = _captured(lambda address: librdkafka_produces(address, Codec.NONE, ROWS)).header
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)


@pytest.mark.parametrize("consume", [librdkafka_consumes, kafka_python_consumes])
def test_clients_read_our_batches(consume: Consume) -> None:
    """
    A client consumes batches of ours, one of each codec, and gets the original records.
    """
    rows = [*ROWS, *BARE]
    log = b"".join(built(rows, codec=codec, base_offset=len(rows) * codec, leader_epoch=0) for codec in Codec)
    expected = [row._replace(offset=offset) for offset, row in enumerate(rows * len(Codec))]
    with ScriptedBroker(log) as broker:
        assert consume(broker.address, len(expected)) == expected


@pytest.mark.parametrize("consume", [librdkafka_consumes, kafka_python_consumes])
def test_clients_read_log_append_time(consume: Consume) -> None:
    """
    All records of a batch have the LogAppendTime that we wrote.
    """
    with ScriptedBroker(built(ROWS, log_append_time_ms=1_800_000_000_000, codec=Codec.ZSTD)) as broker:
        found = consume(broker.address, len(ROWS))
    assert [record.timestamp for record in found] == [1_800_000_000_000] * len(ROWS)


@pytest.mark.parametrize("consume", [librdkafka_consumes, kafka_python_consumes])
def test_clients_skip_an_emptied_batch(consume: Consume) -> None:
    """
    They read on behind a batch without records.
    """
    log = built(ROWS[:2]) + built([], base_offset=2) + built(ROWS[3:], base_offset=3)
    with ScriptedBroker(log) as broker:
        assert consume(broker.address, 3) == [*ROWS[:2], *ROWS[3:]]
