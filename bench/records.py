"""
What record batches cost, in one run: `python -m bench.records`.

A batch on its way through is judged by its header and CRC alone, so the first table matters most: all of it should cost
little more than the CRC. The second opens batches, record by record.
"""

import random
from collections.abc import Callable
from functools import partial

from crc32c import crc32c

from bench.pairing import provenance, timed
from kgateway.records.batch import check_produced, placed, read_batch
from kgateway.records.builder import BatchBuilder
from kgateway.records.compression import Codec
from kgateway.records.record import records

BATCH_BYTES = 1 << 20


def _text(size: int) -> bytes:
    """
    Words that compress about as real records do.
    """
    rng = random.Random(1)
    words = [rng.randbytes(rng.randint(1, 6)).hex().encode() for _ in range(2_000)]
    return b" ".join(rng.choice(words) for _ in range(size // 4))[:size]


TEXT = _text(1 << 16)


def _built(codec: Codec, value_bytes: int) -> bytes:
    builder = BatchBuilder(codec=codec)
    while builder.size < BATCH_BYTES:
        at = builder.count * 97 % (len(TEXT) - value_bytes)
        builder.append(b"key-%08d" % builder.count, TEXT[at : at + value_bytes], timestamp=1_700_000_000_000)
    return builder.build()


def passing() -> dict[str, Callable[[], object]]:
    """
    What is done to a batch that is not opened.
    """
    data = memoryview(_built(Codec.NONE, 1_000))
    batch = read_batch(data)
    return {
        "CRC alone": lambda: crc32c(data),
        "header, CRC and claims": lambda: check_produced(read_batch(data)),
        "header": lambda: read_batch(data),
        "placed": lambda: placed(batch, 1_000, 5),
    }


def _opened(data: bytes) -> int:
    return sum(1 for _ in records(read_batch(data)))


def _row(codec: Codec, value_bytes: int) -> str:
    data = _built(codec, value_bytes)
    count = read_batch(data).header.records_count
    took = timed({"build": partial(_built, codec, value_bytes), "read": partial(_opened, data)})
    rates = "".join(f"{count / took[way]:12.3f} {BATCH_BYTES / took[way]:8.0f}" for way in ("build", "read"))
    return f"{codec.name.lower():8} {value_bytes:8} {BATCH_BYTES / len(data):8.1f} {rates}"


def main() -> None:
    print(provenance("crc32c", "python-snappy", "lz4", "zstandard"))
    print(f"\n{'one batch of 1 MiB':24} {'µs':>8} {'of the CRC':>12}")
    took = timed(passing())
    for name, micros in took.items():
        print(f"{name:24} {micros:8.2f} {micros / took['CRC alone']:12.3f}")
    print(f"\n{'codec':8} {'value':>8} {'ratio':>8} {'built M/s':>12} {'MB/s':>8}{'read M/s':>12} {'MB/s':>8}")
    for codec in Codec:
        for value_bytes in (100, 1_000):
            print(_row(codec, value_bytes))


if __name__ == "__main__":
    main()
