"""
The conversion of produced batches into appended ones.
"""

from typing import Any

import pytest

from kgateway.cluster.config import TopicConfig
from kgateway.produce.delayed_produce import converted_batch
from kgateway.records.batch import Batch
from kgateway.records.compression import Codec
from kgateway.records.record import Record, records
from kgateway.records.slices import at_once
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.records.crc_batches import sealed
from tests.records.old_message_sets import handmade_set
from tests.records.values import batch_of, built

ROWS = [Record(n, 1_000 + n, b"key", b"value %d" % n) for n in range(5)]


def made(data: bytes | None, version: int, **config: str) -> Batch | None:
    return at_once(
        converted_batch(data, version, TopicConfig.of({name.replace("_", "."): v for name, v in config.items()}))
    )


def refused(data: bytes | None, version: int, **config: str) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        made(data, version, **config)
    return caught.value.code


@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("codec", Codec)
def test_compression_type(codec: Codec, wanted: str) -> None:
    """
    A batch in another codec than the topic's is recompressed; one in the topic's is unchanged.
    """
    data = built(ROWS, codec=codec)
    batch = made(data, 9, compression_type=wanted)
    assert batch
    assert batch.header.codec.name.lower() == ("none" if wanted == "uncompressed" else wanted)
    assert list(records(batch)) == ROWS
    assert (bytes(batch.data) == data) == (batch.header.codec is codec)


@pytest.mark.parametrize("codec", Codec)
def test_producer(codec: Codec) -> None:
    """
    If the topic has no codec of its own, a batch is unchanged.
    """
    data = built(ROWS, codec=codec)
    batch = made(data, 9)
    assert batch
    assert bytes(batch.data) == data


def test_the_same_codec_is_kept() -> None:
    """
    A batch in the topic's codec is unchanged, whatever its level was.
    """
    data = built([Record(n, n, None, b"value %d" % n) for n in range(500)], codec=Codec.GZIP, level=1)
    batch = made(data, 9, compression_type="gzip", compression_gzip_level="9")
    assert batch
    assert bytes(batch.data) == data


def test_levels() -> None:
    """
    The level of the topic's codec is that of its config.
    """
    data = built([Record(n, n, b"%d" % (n * n), b"value %d" % n) for n in range(2_000)])

    def size(**config: str) -> int:
        batch = made(data, 9, **config)
        assert batch
        return len(batch.data)

    for codec, low, high in (("gzip", "1", "9"), ("lz4", "1", "17"), ("zstd", "-5", "22")):
        sizes = [size(**{"compression_type": codec, f"compression_{codec}_level": level}) for level in (low, high)]
        assert sizes[0] > sizes[1], codec


def test_damage_is_found_before_conversion() -> None:
    """
    Invalid, damaged and oversized batches are refused as they arrive.
    """
    gzip = {"compression_type": "gzip"}
    batch = batch_of(ROWS)
    assert refused(built(ROWS)[:-1] + b"x", 9, **gzip) == ErrorCode.CORRUPT_MESSAGE
    assert refused(bytes(sealed(batch, records_count=4).data), 9, **gzip) == ErrorCode.INVALID_RECORD
    large = built([Record(0, 1, None, bytes(5_000))])
    assert refused(large, 9, **gzip, max_message_bytes="4000") == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("version", [0, 1, 2])
def test_message_sets(version: int) -> None:
    """
    A message set becomes a batch in the topic's codec, or in its own; an empty set remains empty.
    """
    for magic in (0, 1):
        data = handmade_set(ROWS, magic, Codec.SNAPPY)
        for config, codec in (({}, Codec.SNAPPY), ({"compression_type": "zstd"}, Codec.ZSTD)):
            batch = made(data, version, **config)
            assert batch
            assert batch.header.codec is codec
            assert [record.value for record in records(batch)] == [row.value for row in ROWS]
    assert made(b"", version) is made(None, version) is None
    assert refused(handmade_set(ROWS, 0, Codec.NONE), version, max_message_bytes="50") == ErrorCode.MESSAGE_TOO_LARGE


def test_batches_of_old_clients() -> None:
    """
    Like Kafka, the gateway accepts a batch from an old client if it is the only one.
    """
    data = built(ROWS)
    batch = made(data, 2)
    assert batch
    assert bytes(batch.data) == data
    assert refused(data + data, 2) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("version", [3, 13])
def test_message_sets_of_new_clients(version: int) -> None:
    """
    From v3 on, a message set is INVALID_RECORD.
    """
    options: list[dict[str, Any]] = [{}, {"compression_type": "gzip"}]
    for config in options:
        assert refused(handmade_set(ROWS * 9, 1, Codec.NONE), version, **config) == ErrorCode.INVALID_RECORD
