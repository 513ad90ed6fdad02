"""
Batches in another codec.
"""

from typing import Any

import pytest
from hypothesis import given

from kgateway.records.batch import LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT, read_batch
from kgateway.records.compression import Codec
from kgateway.records.recompressed import recompressed
from kgateway.records.record import Record, records
from kgateway.records.steps import at_once
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.records.sealed import sealed, three
from tests.records.values import batch_of, record_lists

PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 3, "base_sequence": 11, "is_transactional": True}


@pytest.mark.parametrize("target", Codec)
@pytest.mark.parametrize("source", Codec)
def test_all_else_stays(source: Codec, target: Codec) -> None:
    """
    Records and all that the header says of them are as they were; the CRC holds.
    """

    @given(record_lists(min_size=1))
    def check(rows: list[Record]) -> None:
        batch = batch_of(rows, codec=source, **PRODUCER)
        made = at_once(recompressed(batch, target))
        assert list(records(made)) == rows
        assert bytes(made.data) == bytes(batch_of(rows, codec=target, **PRODUCER).data)
        assert read_batch(made.data).header.attributes == target | TRANSACTIONAL_BIT

    check()


def test_levels() -> None:
    """
    A level is how hard the codec tries.
    """
    batch = batch_of([Record(n, n, b"%d" % (n * n), b"value %d" % n) for n in range(2_000)])
    for codec, low, high in ((Codec.GZIP, 1, 9), (Codec.LZ4, 1, 17), (Codec.ZSTD, 1, 22)):
        weak, strong = (len(at_once(recompressed(batch, codec, level)).data) for level in (low, high))
        assert strong < weak, codec


def test_damage() -> None:
    """
    What cannot be decompressed is INVALID_RECORD.
    """
    batch = three(Codec.GZIP)
    damaged = batch._replace(data=memoryview(bytes(batch.data[:-1]) + b"\xff"))
    broken = sealed(damaged)
    with pytest.raises(KafkaError) as caught:
        at_once(recompressed(broken, Codec.NONE))
    assert caught.value.code == ErrorCode.INVALID_RECORD


def test_other_marks_stay() -> None:
    """
    Only the codec among the attributes changes.
    """
    batch = batch_of([Record(0, 5, b"k", b"v")], codec=Codec.GZIP, log_append_time_ms=9)
    made = at_once(recompressed(batch, Codec.NONE))
    assert made.header.attributes == LOG_APPEND_TIME_BIT
    assert made.header.max_timestamp == 9
