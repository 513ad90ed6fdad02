"""
Encodes record batches from whole columns: numpy writes the numbers of all records, and Arrow joins them with keys and
values. The result equals what `kgateway.records.builder` makes of the same rows.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgateway.records.batch import BatchHeader, written
from kgateway.records.compression import Codec, compress

_MOST_DIGITS = 10  # of a varint
_NUMBERS_BYTES = 24  # of a record beside key and value, rounded down


@dataclass(frozen=True, slots=True)
class Columns:
    keys: pa.Array
    values: pa.Array
    timestamps: np.ndarray

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> "Columns":
        wide = pa.large_binary()
        times = batch.column("timestamp").to_numpy(zero_copy_only=False).astype(np.int64)
        return cls(batch.column("key").cast(wide), batch.column("value").cast(wide), times)

    def __len__(self) -> int:
        return len(self.timestamps)

    def cut(self, start: int, end: int) -> "Columns":
        return Columns(
            self.keys.slice(start, end - start), self.values.slice(start, end - start), self.timestamps[start:end]
        )

    def fitting(self, most_bytes: int) -> int:
        """
        The number of first rows that fit into this many bytes; at least one.
        """
        sizes = _lengths(self.keys) + _lengths(self.values) + _NUMBERS_BYTES
        return max(int(np.searchsorted(np.cumsum(sizes), most_bytes, side="right")), 1)


@dataclass(frozen=True, slots=True)
class ProducerEpoch:
    producer_id: int
    epoch: int


def batch_of(rows: Columns, numbering: ProducerEpoch, sequence: int, codec: Codec) -> bytes:
    base = int(rows.timestamps[0])
    header = BatchHeader(
        base_offset=0,
        batch_length=0,
        partition_leader_epoch=-1,
        crc=0,
        attributes=int(codec),
        last_offset_delta=len(rows) - 1,
        base_timestamp=base,
        max_timestamp=int(rows.timestamps.max()),
        producer_id=numbering.producer_id,
        producer_epoch=numbering.epoch,
        base_sequence=sequence,
        records_count=len(rows),
    )
    return written(header, compress(codec, _records(rows, base))).data.tobytes()


def _records(rows: Columns, base_timestamp: int) -> bytes:
    count = len(rows)
    fields = (
        _constant(b"\0", count),  # attributes
        varints(rows.timestamps - base_timestamp),
        varints(np.arange(count)),
        varints(_sizes(rows.keys)),
        rows.keys.fill_null(b""),
        varints(_sizes(rows.values)),
        rows.values.fill_null(b""),
        _constant(b"\0", count),  # no headers
    )
    sizes = np.sum([_lengths(one) for one in fields], axis=0)
    return _bytes(pc.binary_join_element_wise(varints(sizes), *fields, pa.scalar(b"", pa.large_binary())))


def _lengths(column: pa.Array) -> np.ndarray:
    return pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)


def _sizes(column: pa.Array) -> np.ndarray:
    """
    Lengths as records encode them, with -1 for null.
    """
    return pc.fill_null(pc.binary_length(column), -1).to_numpy(zero_copy_only=False).astype(np.int64)


def varints(numbers: np.ndarray) -> pa.Array:
    """
    Numbers as Kafka's records have them: zigzag, seven bits a byte, the lowest first.
    """
    left = ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)
    digits = np.zeros((len(left), _MOST_DIGITS), np.uint8)
    counts = np.zeros(len(left), np.int64)
    for place in range(_MOST_DIGITS):
        more = left > 0x7F
        digits[:, place] = (left & np.uint64(0x7F)).astype(np.uint8) | (more.astype(np.uint8) << 7)
        counts += (left > 0) | (place == 0)
        left >>= np.uint64(7)
        if not more.any():
            break
    data = digits[np.arange(_MOST_DIGITS) < counts[:, None]]
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return pa.Array.from_buffers(pa.large_binary(), len(counts), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _constant(value: bytes, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.large_binary()), count)


def _bytes(column: pa.Array) -> bytes:
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    return data[int(bounds[0]) : int(bounds[-1])].to_pybytes() if len(column) else b""
