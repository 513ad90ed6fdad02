"""
Compacted topics accept only records with a key, on every broker.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kgateway.broker.memory import MemoryBroker
from kgateway.broker.partition import admission
from kgateway.broker.partition.admission import check_batch
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import Origin
from kgateway.records.batch import Batch
from kgateway.records.compression import Codec
from kgateway.records.record import Record
from kgateway.wire.errors import BadRecord, ErrorCode, KafkaError, RecordsRefused
from tests.broker.behaviour import START_MS, World, appended, refusal
from tests.broker.log.log_world import LogWorld
from tests.records.crc_batches import sealed
from tests.records.handmade_batches import holding
from tests.records.values import batch_of

PARTITION = "orders-3"
COMPACTED: dict[str, Any] = {"cleanup_policy": ("compact",)}


def keys(*given: bytes | None, **options: Any) -> Batch:
    return batch_of([Record(n, START_MS, key, None) for n, key in enumerate(given)], **options)


def in_memory(path: Path) -> World:
    return World(lambda now_ms, expiry_ms: MemoryBroker(now_ms=now_ms, producer_expiry_ms=expiry_ms))


def on_disk(path: Path) -> World:
    return LogWorld(path)


def refused(sent: Batch, **config: Any) -> KafkaError:
    with pytest.raises(KafkaError) as error:
        check_batch(sent, TopicConfig(**config), START_MS, PARTITION)
    return error.value


@pytest.mark.parametrize("make", [in_memory, on_disk])
def test_batches_with_a_keyless_record_are_refused(make: Callable[[Path], World], tmp_path: Path) -> None:
    """
    The whole batch is refused. Tombstones and empty keys are accepted, and coordinators may write anything.
    """
    partition = make(tmp_path).partition(**COMPACTED)
    error = refusal(partial(partition.append, keys(b"a", None), Origin.CLIENT))
    assert error.code is ErrorCode.INVALID_RECORD
    assert partition.log_end == 0
    assert appended(partition, keys(b"a", b"")).base_offset == 0
    assert appended(partition, keys(None), Origin.COORDINATOR).base_offset == 2


@pytest.mark.parametrize("codec", Codec)
def test_keyless_records_are_named(codec: Codec) -> None:
    """
    The message is Kafka's, for compressed batches too.
    """
    error = refused(keys(b"a", None, b"b", None, codec=codec), **COMPACTED)
    assert isinstance(error, RecordsRefused)
    text = "Compacted topic cannot accept message without key in topic partition orders-3"
    assert error.records == tuple(BadRecord(ErrorCode.INVALID_RECORD, index, text) for index in (1, 3))
    first = f"RecordError(batchIndex=1, message='{text}'), RecordError(batchIndex=3, message='{text}')"
    count = "2 record errors in total, and only showing the first three errors at most"
    assert error.message == f"One or more records have been rejected due to {count}: [{first}]"
    check_batch(keys(b"a", b"b", codec=codec), TopicConfig(**COMPACTED), START_MS, PARTITION)


@pytest.mark.parametrize("policy", [("delete",), ()])
def test_other_topics_accept_keyless_records(policy: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Their batches are not opened.
    """
    monkeypatch.setattr(admission, "payload_of", None)
    check_batch(keys(b"a", None), TopicConfig(cleanup_policy=policy), START_MS, PARTITION)


def test_topics_with_both_policies_need_keys() -> None:
    assert refused(keys(None), cleanup_policy=("compact", "delete")).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("payload", [b"these are no records", b"\x0e\0\0\0\2a\1\0" + bytes(20)])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_unreadable_records_are_refused(codec: Codec, payload: bytes) -> None:
    """
    Only a topic that has to know the keys refuses them.
    """
    sent = sealed(holding(payload, 2, codec), last_offset_delta=1)
    error = refused(sent, **COMPACTED)
    assert error.code is ErrorCode.INVALID_RECORD
    assert str(error.message).startswith("the topic accepts only records that can be read: RecordBatch v2: records")
    check_batch(sent, TopicConfig(), START_MS, PARTITION)


def test_the_header_is_checked_first() -> None:
    """
    A bad header is refused before the batch is opened.
    """
    sent = keys(None)
    assert refused(sent, **COMPACTED, max_message_bytes=10).code is ErrorCode.MESSAGE_TOO_LARGE
    damaged = replace(sent, data=memoryview(bytes(len(sent.data))))
    assert refused(damaged, **COMPACTED).code is ErrorCode.CORRUPT_MESSAGE
