"""
Compacted topics take only records with a key, whatever the broker.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kgateway.broker import admission
from kgateway.broker.admission import check_admission
from kgateway.broker.memory import MemoryBroker
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import Origin
from kgateway.records.batch import Batch
from kgateway.records.compression import Codec
from kgateway.records.record import Record
from kgateway.wire.errors import BadRecord, ErrorCode, KafkaError, RecordsRefused
from tests.broker.behaviour import START_MS, World, appended, refusal
from tests.broker.log.log_world import LogWorld
from tests.records.handmade import holding
from tests.records.sealed import sealed
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
        check_admission(sent, TopicConfig(**config), START_MS, PARTITION)
    return error.value


@pytest.mark.parametrize("make", [in_memory, on_disk])
def test_every_broker(make: Callable[[Path], World], tmp_path: Path) -> None:
    """
    A batch with a record without a key is refused as a whole, and leaves nothing; one with keys is taken, deletions and
    empty keys too. Coordinators write what they like.
    """
    partition = make(tmp_path).partition(**COMPACTED)
    error = refusal(partial(partition.append, keys(b"a", None), Origin.CLIENT))
    assert error.code is ErrorCode.INVALID_RECORD
    assert partition.log_end == 0
    assert appended(partition, keys(b"a", b"")).base_offset == 0
    assert appended(partition, keys(None), Origin.COORDINATOR).base_offset == 2


@pytest.mark.parametrize("codec", Codec)
def test_the_records_are_told(codec: Codec) -> None:
    """
    Which records it was is said, in Kafka's words, be they compressed or not.
    """
    error = refused(keys(b"a", None, b"b", None, codec=codec), **COMPACTED)
    assert isinstance(error, RecordsRefused)
    text = "Compacted topic cannot accept message without key in topic partition orders-3"
    assert error.records == tuple(BadRecord(ErrorCode.INVALID_RECORD, index, text) for index in (1, 3))
    first = f"RecordError(batchIndex=1, message='{text}'), RecordError(batchIndex=3, message='{text}')"
    count = "2 record errors in total, and only showing the first three errors at most"
    assert error.message == f"One or more records have been rejected due to {count}: [{first}]"
    check_admission(keys(b"a", b"b", codec=codec), TopicConfig(**COMPACTED), START_MS, PARTITION)


@pytest.mark.parametrize("policy", [("delete",), ()])
def test_other_topics(policy: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """
    They take records without keys, and no batch of theirs is opened.
    """
    monkeypatch.setattr(admission, "payload_of", None)
    check_admission(keys(b"a", None), TopicConfig(cleanup_policy=policy), START_MS, PARTITION)


def test_both_policies() -> None:
    """
    A topic whose old records go as well is a compacted one.
    """
    assert refused(keys(None), cleanup_policy=("compact", "delete")).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("payload", [b"these are no records", b"\x0e\0\0\0\2a\1\0" + bytes(20)])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_records_that_cannot_be_read(codec: Codec, payload: bytes) -> None:
    """
    They are refused where somebody would have to know their keys.
    """
    sent = sealed(holding(payload, 2, codec), last_offset_delta=1)
    error = refused(sent, **COMPACTED)
    assert error.code is ErrorCode.INVALID_RECORD
    assert str(error.message).startswith("the topic takes only records that can be read: RecordBatch v2: records")
    check_admission(sent, TopicConfig(), START_MS, PARTITION)


def test_header_comes_first() -> None:
    """
    What the header tells is judged before a batch is opened.
    """
    sent = keys(None)
    assert refused(sent, **COMPACTED, max_message_bytes=10).code is ErrorCode.MESSAGE_TOO_LARGE
    damaged = sent._replace(data=memoryview(bytes(len(sent.data))))
    assert refused(damaged, **COMPACTED).code is ErrorCode.CORRUPT_MESSAGE
