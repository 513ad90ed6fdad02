"""
A range of offsets as Arrow batches: what a task of Spark does.

That an offset is missing may mean several things. Compaction has removed its record, a transaction was aborted, or it
is a marker that is no record: then all is well, and the log goes on behind it. But where the log begins only behind it,
or ends before it, records are lost to the query, and that is said.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from kgateway.records.batch import BatchHeader
from kgateway.spark.bodies import Bodies, bodies
from kgateway.spark.columns import TYPES
from kgateway.spark.decoding import decoded
from kgateway.spark.failures import DataLost, TopicGone, Unreadable
from kgateway.spark.logs import Gone, Logs, Window
from kgateway.spark.ranges import OffsetRange
from kgateway.spark.spans import repeated
from kgateway.spark.values import ValueDecoder
from kgateway.wire.malformed import Malformed

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wanted:
    """
    Which columns, in which order; what makes other types of keys and values; and what to do where records are lost.
    """

    names: tuple[str, ...]
    fail_on_data_loss: bool = True
    decoders: Mapping[str, ValueDecoder] = field(default_factory=dict)  # by the name of the column

    @property
    def schema(self) -> pa.Schema:
        """
        Of the batches that come out.
        """
        types = TYPES | {name: decoder.type for name, decoder in self.decoders.items()}
        return pa.schema([pa.field(name, types[name]) for name in self.names])


def read(logs: Logs, of: OffsetRange, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """
    The records that have these offsets.
    """
    position = of.start
    while position < of.end:
        left = OffsetRange(of.partition, position, of.end)
        try:
            for window in logs.windows(left):
                # A batch may hold what came before: brokers may cut the same records into batches in more than one way.
                yield from _decoded(window, OffsetRange(of.partition, position, of.end), wanted)
                position = window.next_offset
            if position < of.end:
                raise DataLost(f"{of.partition} ends at offset {position}, and {of} were to be read")
            return
        except Gone as gone:
            position = _after(gone, left, wanted)
        except (DataLost, TopicGone) as lost:
            if wanted.fail_on_data_loss:
                raise
            _log.warning("%s", lost)
            return
        except Malformed as damage:
            raise Unreadable(f"{of.partition} has a damaged batch: {damage}") from damage


def _after(gone: Gone, left: OffsetRange, wanted: Wanted) -> int:
    """
    Where to go on.
    """
    start, end = gone.extent
    if gone.offset >= end:
        lost, following = f"{left.partition} ends at offset {end} now", left.end
    else:
        lost, following = f"{left.partition} begins with offset {start} now", start
    last = min(following, left.end) - 1
    lost = f"{lost}, and offsets {gone.offset} to {last} were to be read: they were removed meanwhile"
    if wanted.fail_on_data_loss:
        raise DataLost(lost)
    _log.warning("%s", lost)
    return following


def _decoded(window: Window, of: OffsetRange, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    def is_wanted(header: BatchHeader) -> bool:
        is_aborted = window.aborted.has(header)  # which has to see all of them
        return not is_aborted and not header.is_control

    for group in bodies(window.batches, is_wanted):
        batch = _rows(group, of, wanted)
        if batch.num_rows:
            yield batch


def _rows(group: Bodies, of: OffsetRange, wanted: Wanted) -> pa.RecordBatch:
    columns = decoded(group, {*wanted.names, "offset"}, of.start, of.end)
    count = len(columns["offset"])
    for name, decoder in wanted.decoders.items():
        if name in columns:
            columns[name] = _typed(name, decoder, columns, of)
    if "topic" in wanted.names:
        columns["topic"] = repeated(of.partition.topic, count)
    if "partition" in wanted.names:
        columns["partition"] = pa.array(np.full(count, of.partition.index, np.int32))
    return pa.RecordBatch.from_arrays([columns[name] for name in wanted.names], schema=wanted.schema)


def _typed(name: str, decoder: ValueDecoder, columns: dict[str, pa.Array], of: OffsetRange) -> pa.Array:
    try:
        return decoder.decode(columns[name])
    except ValueError as error:
        first, last = columns["offset"][0], columns["offset"][-1]
        where = f"{of.partition}, offsets {first} to {last}"
        raise Unreadable(f"the {name} of a record cannot be decoded ({where}): {error}") from error
