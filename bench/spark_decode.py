"""
How fast record batches become columns, on one processor: `python -m bench.spark_decode`.

Batches of a hundred records, as producers with a linger of a few milliseconds make them, all columns of Spark's Kafka
source, beside the reader that goes record by record.
"""

from collections.abc import Callable

from bench.pairing import timed
from bench.recording import recorded, results_file
from bench.records import TEXT
from kgateway.records.batch import batches
from kgateway.records.builder import BatchBuilder
from kgateway.records.compression import Codec
from kgateway.records.record import records
from kgateway.spark.decoders.batch_bodies import record_bodies
from kgateway.spark.decoders.columns import kafka_columns
from kgateway.spark.decoders.records import columns_of

WINDOW_BYTES = 4 << 20  # as much as is read of a segment at once
BATCH_RECORDS = 100
_ALL = 1 << 62


def window(codec: Codec, value_bytes: int, with_headers: bool) -> tuple[bytes, int]:
    """
    Batches, and the number of their records.
    """
    parts, size, count = list[bytes](), 0, 0
    headers = [("trace", b"1234")] if with_headers else []
    while size < WINDOW_BYTES:
        builder = BatchBuilder(codec=codec, base_offset=count)
        for number in range(BATCH_RECORDS):
            at = (count + number) * 97 % (len(TEXT) - value_bytes)
            key = b"key-%08d" % (count + number)
            builder.append(key, TEXT[at : at + value_bytes], timestamp=1_700_000_000_000 + number // 4, headers=headers)
        parts.append(builder.build())
        size, count = size + builder.size, count + BATCH_RECORDS
    return b"".join(parts), count


def columns(data: bytes, with_headers: bool) -> int:
    """
    Decode everything into columns; returns the number of records.
    """
    names = kafka_columns(with_headers=with_headers)
    groups = record_bodies(batches(data), lambda header: not header.is_control)
    return sum(len(columns_of(group, names, 0, _ALL)["offset"]) for group in groups)


def one_by_one(data: bytes) -> int:
    return sum(1 for batch in batches(data) for _ in records(batch))


def _row(codec: Codec, value_bytes: int, with_headers: bool) -> str:
    data, count = window(codec, value_bytes, with_headers)
    assert columns(data, with_headers) == one_by_one(data) == count
    ways: dict[str, Callable[[], object]] = {
        "columns": lambda: columns(data, with_headers),
        "reader": lambda: one_by_one(data),
    }
    took = timed(ways)
    rate, slow = count / took["columns"], count / took["reader"]
    what = f"{codec.name.lower()} | {value_bytes:,} | {'1 header' if with_headers else 'none'}"
    return f"| {what} | {rate:.2f} | {rate * value_bytes:,.0f} | {slow:.2f} | {rate / slow:.1f} x |"


def measure() -> None:
    print("| codec | value bytes | headers | M records/s | MB/s of values | reader M records/s | columns / reader |")
    print("|---|---:|---|---:|---:|---:|---:|")
    for value_bytes in (100, 1_000):
        for codec in Codec:
            print(_row(codec, value_bytes, with_headers=False), flush=True)
        print(_row(Codec.NONE, value_bytes, with_headers=True), flush=True)


if __name__ == "__main__":
    packages = ("numpy", "pyarrow", "crc32c")
    with recorded(results_file("spark_decode"), *packages) as recording, recording.of("spark_decode"):
        measure()
