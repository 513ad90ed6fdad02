"""
A range of offsets as Arrow batches: the work of a Spark task.

A missing offset can mean several things. Where compaction has removed its record, a transaction was aborted, or it is a
control record, the log continues behind it and all is well. Where the log begins behind it, or ends before it, the
query has lost records, and reports that.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from kgateway.records.batch import BatchHeader
from kgateway.records.record_columns import RecordBodies
from kgateway.spark.decoders.arrays import repeated
from kgateway.spark.decoders.batch_bodies import record_bodies
from kgateway.spark.decoders.columns import TYPES
from kgateway.spark.decoders.parse_mode import ColumnDecoder, Columns
from kgateway.spark.decoders.records import columns_of
from kgateway.spark.errors import DataLost, TopicGone, Unreadable
from kgateway.spark.logs.interface import OffsetGone, Window
from kgateway.spark.logs.offset_range import OffsetRange
from kgateway.wire.errors import Malformed

Windows = Callable[[OffsetRange], Iterator[Window]]  # of a log

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """
    Which columns to read, in which order; how keys and values are decoded; and whether lost records fail the query.
    """

    names: tuple[str, ...]
    fail_on_data_loss: bool = True
    decoders: Mapping[str, ColumnDecoder] = field(default_factory=dict)  # by the name of the column

    @property
    def schema(self) -> pa.Schema:
        types = TYPES | {name: decoder.type for name, decoder in self.decoders.items()}
        return pa.schema([pa.field(name, types[name]) for name in self.names])


def read_range(windows: Windows, of: OffsetRange, wanted: ReadSpec) -> Iterator[pa.RecordBatch]:
    """
    The records that have these offsets.
    """
    position = of.start
    while position < of.end:
        left = OffsetRange(of.partition, position, of.end)
        try:
            for window in windows(left):
                # A batch may have earlier records: brokers may batch the same records in several ways.
                yield from _decoded(window, OffsetRange(of.partition, position, of.end), wanted)
                position = window.next_offset
            if position < of.end:
                raise DataLost(f"{of.partition} ends at offset {position}, but {of} were requested")
            return
        except OffsetGone as gone:
            position = _after(gone, left, wanted)
        except (DataLost, TopicGone) as lost:
            if wanted.fail_on_data_loss:
                raise
            _log.warning("%s", lost)
            return
        except Malformed as damage:
            raise Unreadable(f"{of.partition} has a damaged batch: {damage}") from damage


def _after(gone: OffsetGone, left: OffsetRange, wanted: ReadSpec) -> int:
    start, end = gone.extent
    if gone.offset >= end:
        lost, following = f"{left.partition} ends at offset {end} now", left.end
    else:
        lost, following = f"{left.partition} begins with offset {start} now", start
    last = min(following, left.end) - 1
    lost = f"{lost}, but offsets {gone.offset} to {last} were requested: they were deleted meanwhile"
    if wanted.fail_on_data_loss:
        raise DataLost(lost)
    _log.warning("%s", lost)
    return following


def _decoded(window: Window, of: OffsetRange, wanted: ReadSpec) -> Iterator[pa.RecordBatch]:
    def is_wanted(header: BatchHeader) -> bool:
        is_aborted = window.aborted.has(header)  # `has` must see every batch
        return not is_aborted and not header.is_control

    for group in record_bodies(window.batches, is_wanted):
        batch = _rows(group, of, wanted)
        if batch.num_rows:
            yield batch


def _rows(group: RecordBodies, of: OffsetRange, wanted: ReadSpec) -> pa.RecordBatch:
    dropping = [name for name, decoder in wanted.decoders.items() if decoder.drops]
    columns = columns_of(group, {*wanted.names, *dropping, "offset"}, of.start, of.end)
    for name, decoder in wanted.decoders.items():
        if name in columns:
            columns = _typed(name, decoder, columns, of)
    count = len(columns["offset"])
    if "topic" in wanted.names:
        columns["topic"] = repeated(of.partition.topic, count)
    if "partition" in wanted.names:
        columns["partition"] = pa.array(np.full(count, of.partition.index, np.int32))
    return pa.RecordBatch.from_arrays([columns[name] for name in wanted.names], schema=wanted.schema)


def _typed(name: str, decoder: ColumnDecoder, columns: Columns, of: OffsetRange) -> Columns:
    try:
        return decoder.decode(columns, name)
    except ValueError as error:
        first, last = columns["offset"][0], columns["offset"][-1]
        where = f"{of.partition}, offsets {first} to {last}"
        raise Unreadable(f"the {name} of a record cannot be decoded ({where}): {error}") from error
