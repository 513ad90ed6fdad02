"""
What record batches cost, in one run: `python -m bench.records`.

A batch on its way through is judged by its header and CRC alone, so the first table matters most: all of it should cost
little more than the CRC. The second opens batches, record by record.
"""

import random
from collections.abc import Callable
from functools import partial

from crc32c import crc32c

from bench.pairing import timed
from bench.recording import recorded, results_file
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
    rates = " | ".join(f"{count / took[way]:.3f} | {BATCH_BYTES / took[way]:.0f}" for way in ("build", "read"))
    return f"| {codec.name.lower()} | {value_bytes:,} | {BATCH_BYTES / len(data):.1f} | {rates} |"


def measure() -> None:
    print("| one batch of 1 MiB | µs | of the CRC |\n|---|---:|---:|")
    took = timed(passing())
    for name, micros in took.items():
        print(f"| {name} | {micros:.2f} | {micros / took['CRC alone']:.3f} |")
    print("\n| codec | value bytes | ratio | built M/s | MB/s | read M/s | MB/s |\n|---|---:|---:|---:|---:|---:|---:|")
    for codec in Codec:
        for value_bytes in (100, 1_000):
            print(_row(codec, value_bytes))


if __name__ == "__main__":
    packages = ("crc32c", "python-snappy", "lz4", "zstandard")
    with recorded(results_file("records"), *packages) as recording, recording.of("records"):
        measure()
