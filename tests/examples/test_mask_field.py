"""
The mask-field example, seen by real clients.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.records.builder import BatchBuilder
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode
from tests.examples.client import PATIENCE_S, Client

CARD = "4111111111111111"
PAID = {"card": CARD, "amount": 12.5, "note": "Zürich"}


@pytest.fixture(scope="module")
def kafka(examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """
    A gateway with the example in a folder on PYTHONPATH.
    """
    copy = shutil.copytree(examples / "mask-field", tmp_path_factory.mktemp("examples") / "mask-field")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(copy), str(examples.parent)]))
        with Kafka("--handlers", "mask_field", "--num-partitions", "1") as kafka:
            yield kafka


def produce(kafka: Kafka, topic: str, *values: bytes | None, **config: Any) -> list[int]:
    """
    Produce records with a key, a header and a timestamp; returns the error codes.
    """
    codes: list[int] = []
    with Producer({"bootstrap.servers": kafka.bootstrap, **config}) as producer:
        if "transactional.id" in config:
            producer.init_transactions()
            producer.begin_transaction()
        for value in values:
            producer.produce(
                topic,
                value,
                key=b"customer",
                headers=[("trace", b"1")],
                timestamp=1_700_000_000_000,
                on_delivery=lambda error, message: codes.append(error.code() if error else ErrorCode.NONE),
            )
        assert producer.flush(PATIENCE_S) == 0
        if "transactional.id" in config:
            producer.commit_transaction()
    return codes


def consume(kafka: Kafka, topic: str, number: int) -> list[Message]:
    with Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "none"}) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = consumer.consume(number, PATIENCE_S)
    assert len(found) == number
    return found


def value_of(message: Message) -> Any:
    value = message.value()
    return None if value is None else json.loads(value)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"enable.idempotence": True, "compression.type": "zstd"},
        {"transactional.id": "payments-1", "compression.type": "gzip"},
    ],
    ids=["plain", "idempotent", "transactional"],
)
def test_the_field_is_masked(kafka: Kafka, config: dict[str, Any]) -> None:
    """
    Everything else in the records stays, in batches of every kind.
    """
    topic = f"payments-{len(config)}-{config.get('compression.type', 'none')}"
    values = [json.dumps({**PAID, "amount": number}).encode() for number in range(500)]
    assert produce(kafka, topic, *values, **config) == [ErrorCode.NONE] * 500
    found = consume(kafka, topic, 500)
    assert [value_of(one) for one in found] == [{**PAID, "card": "*" * 12 + "1111", "amount": n} for n in range(500)]
    assert {(one.key(), str(one.headers()), one.timestamp()[1]) for one in found} == {
        (b"customer", "[('trace', b'1')]", 1_700_000_000_000)
    }


def test_the_number_is_not_stored(kafka: Kafka) -> None:
    """
    No file has it.
    """
    assert produce(kafka, "payments-stored", json.dumps(PAID).encode()) == [ErrorCode.NONE]
    logs = [path.read_bytes() for path in (kafka.folder / "kgateway-data").glob("payments-stored-0/*.log")]
    assert b"************1111" in b"".join(logs)
    assert CARD.encode() not in b"".join(logs)


def test_other_records_are_kept_as_they_are(kafka: Kafka) -> None:
    """
    Tombstones, records without the field, and other topics pass unchanged; a short number is masked completely.
    """
    values = (None, b'{"amount":  1}', b"[1]", b'{"card": 12}')
    assert produce(kafka, "payments-other", *values) == [ErrorCode.NONE] * 4
    assert [one.value() for one in consume(kafka, "payments-other", 4)] == [*values[:3], b'{"card": "**"}']
    for topic in ("orders", "my-payments"):
        assert produce(kafka, topic, json.dumps(PAID).encode(), b"no JSON") == [ErrorCode.NONE] * 2
        assert consume(kafka, topic, 2)[0].value() == json.dumps(PAID).encode()


def test_what_cannot_be_masked_is_refused(kafka: Kafka) -> None:
    """
    Nothing of the request is stored.
    """
    assert produce(kafka, "payments-text", b"card 4111111111111111") == [ErrorCode.INVALID_RECORD]
    with Client(kafka.bootstrap) as client:
        client.create("payments-raw")
        builder = BatchBuilder()
        builder.append(None, json.dumps(PAID).encode(), timestamp=1)
        damaged = bytearray(builder.build())
        damaged[-20] ^= 1
        message_set = bytes(8) + (14).to_bytes(4, "big") + bytes(4) + b"\0\0" + b"\xff" * 8
        for version, records, code in (
            (12, bytes(damaged), ErrorCode.CORRUPT_MESSAGE),
            (2, message_set, ErrorCode.INVALID_RECORD),
            (12, 2 * builder.build(), ErrorCode.INVALID_RECORD),
        ):
            part = ProduceRequest.TopicData.PartitionData(index=0, records=records)
            data = [ProduceRequest.TopicData(name="payments-raw", partition_data=[part])]
            request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=data)
            [answer] = client.ask(request, ProduceResponse, version).responses
            assert answer.partition_responses[0].error_code == code
    with Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "none"}) as consumer:
        for topic in ("payments-text", "payments-raw"):
            assert consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S) == (0, 0)
