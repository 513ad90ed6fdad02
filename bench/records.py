"""
What record batches cost: their header and checksum, building them, and reading them.

    python -m bench.records

A batch that passes through is only judged by its header and CRC, so the first lines matter most: all of it should cost
little more than the CRC alone.
"""

import random
import timeit
from collections.abc import Callable, Iterator

from crc32c import crc32c

from kgateway.records.batch import check_produced, placed, read_batch
from kgateway.records.builder import BatchBuilder
from kgateway.records.compression import Codec
from kgateway.records.record import records

_TEXT = random.Random(1).randbytes(600) * 4  # compresses, as records do
_BATCH_BYTES = 1 << 20


def _seconds(work: Callable[[], object]) -> float:
    """
    The time of one call, at best.
    """
    timer = timeit.Timer(work)
    number, _ = timer.autorange()
    return min(timer.repeat(3, number)) / number


def _built(codec: Codec, value_bytes: int) -> bytes:
    builder = BatchBuilder(codec=codec)
    while builder.size < _BATCH_BYTES:
        at = builder.count % 600
        builder.append(b"key-%08d" % builder.count, _TEXT[at : at + value_bytes], timestamp=1_700_000_000_000)
    return builder.build()


def passing() -> Iterator[str]:
    """
    A batch of a megabyte, unopened.
    """
    data = memoryview(_built(Codec.NONE, 1_000))
    batch = read_batch(data)
    alone = _seconds(lambda: crc32c(data))
    rows: dict[str, Callable[[], object]] = {
        "CRC alone": lambda: crc32c(data),
        "read, CRC and claims": lambda: check_produced(read_batch(data)),
        "read": lambda: read_batch(data),
        "placed": lambda: placed(batch, 1_000, 5),
    }
    for name, work in rows.items():
        seconds = _seconds(work)
        yield f"{name:22} {seconds * 1e6:10.2f} {seconds / alone:10.3f}"


def opening() -> Iterator[str]:
    """
    Batches of a megabyte, built and read record by record.
    """
    for codec in Codec:
        for value_bytes in (100, 1_000):
            batch = read_batch(_built(codec, value_bytes))
            count = batch.header.records_count
            build = _seconds(lambda codec=codec, size=value_bytes: _built(codec, size))
            read = _seconds(lambda batch=batch: sum(1 for _ in records(batch)))
            megabyte = _BATCH_BYTES / 1e6
            yield (
                f"{codec.name.lower():8} {value_bytes:8} {count / build:12,.0f} {megabyte / build:8.0f}"
                f" {count / read:12,.0f} {megabyte / read:8.0f} {_BATCH_BYTES / len(batch.data):8.1f}"
            )


def main() -> None:
    print(f"{'one batch of 1 MiB':22} {'µs':>10} {'of the CRC':>10}")
    for line in passing():
        print(line)
    print()
    print(f"{'codec':8} {'bytes':>8} {'built/s':>12} {'MB/s':>8} {'read/s':>12} {'MB/s':>8} {'ratio':>8}")
    for line in opening():
        print(line)


if __name__ == "__main__":
    main()
