"""
Damaged batches, with flipped bits or missing ends: Kafka's classes and we notice the same.
"""

import random

import pytest
from crc32c import crc32c

from kgateway.records.batch import CRC_START, HEADER_SIZE, Incomplete, crc_holds, read_batch
from kgateway.records.compression import Codec
from kgateway.wire.errors import Malformed
from tests.kafka.batches import Kafka, heard, opened
from tests.records.crc_batches import sealed, three
from tests.records.values import SAMPLE, built

pytestmark = pytest.mark.kafka


def flipped(data: bytes | memoryview, bit: int) -> bytes:
    damaged = bytearray(data)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def is_valid(data: bytes) -> bool | None:
    """
    Whether the first batch in these bytes can be valid, or `None` if it is cut off.
    """
    try:
        return crc_holds(read_batch(data))
    except Incomplete:
        return None
    except Malformed:
        return False


@pytest.mark.parametrize("codec", Codec)
def test_damage_is_noticed_as_by_kafka(codec: Codec, kafka: Kafka) -> None:
    """
    With any bit of the header or some bit of the records flipped, or cut anywhere, a batch is valid to both or
    neither.
    """
    data = built(SAMPLE, codec=codec)
    bits = [*range(HEADER_SIZE * 8), *random.Random(4).sample(range(HEADER_SIZE * 8, len(data) * 8), 100)]
    verdicts = {}
    for damaged in [data, *(flipped(data, bit) for bit in bits), *(data[:end] for end in range(len(data)))]:
        verdicts[damaged] = is_valid(damaged)
        assert kafka.is_valid(damaged) is verdicts[damaged], damaged.hex()
    assert set(verdicts.values()) == {True, False, None}


@pytest.mark.parametrize("size", range(CRC_START, HEADER_SIZE))
def test_batch_shorter_than_its_header_is_valid_to_none(size: int, kafka: Kafka) -> None:
    """
    No batch that ends within its header is valid, even if its CRC is right.
    """
    data = built(SAMPLE)
    length, crc = (size - 12).to_bytes(4, "big"), crc32c(data[CRC_START:size]).to_bytes(4, "big")
    short = data[:8] + length + data[12:17] + crc + data[CRC_START:]
    assert (is_valid(short), kafka.is_valid(short)) == (False, False)


@pytest.mark.parametrize("codec", Codec)
def test_damage_with_a_valid_crc_is_read_as_by_kafka(codec: Codec, kafka: Kafka) -> None:
    """
    Whichever bit of the records is flipped before the CRC is computed, both read the same records, or neither does.
    """
    whole = three(codec)
    end = len(whole.data) * 8
    differing = set()
    for bit in range(HEADER_SIZE * 8, end):
        batch = sealed(read_batch(flipped(whole.data, bit)))
        if heard(opened(batch)) != kafka.opened(batch):
            differing.add(bit)
    # Java accepts two things that the formats forbid: gzip's reserved flags, and a sign before the end mark of lz4.
    flags = (HEADER_SIZE + 3) * 8
    assert differing <= {Codec.GZIP: {flags + 5, flags + 6, flags + 7}, Codec.LZ4: {end - 1}}.get(codec, set())
