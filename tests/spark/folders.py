"""
Folders of logs, written by hand in the format of brokers.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kgateway.broker.log.data_folder.checkpoints import SYNCED, encode_offsets
from kgateway.broker.log.data_folder.session import CLEAN
from kgateway.broker.log.segments.file_names import LOG, file_name
from kgateway.broker.log.segments.index import INDEX, OFFSETS, TIME_INDEX, TIMES
from kgateway.records.batch import read_batch
from kgateway.records.builder import BatchBuilder
from kgateway.spark.logs.files import LocalFiles
from kgateway.spark.logs.folder import FolderLogs
from kgateway.spark.logs.interface import Logs
from kgateway.spark.logs.offset_range import OffsetRange
from kgateway.spark.readers.range_reader import ReadSpec, read_range
from kgateway.topic_partition import TopicPartition

ORDERS = TopicPartition("orders", 0)


def batch(base_offset: int, count: int = 1, size: int = 5, **options: Any) -> bytes:
    """
    A batch whose values are its offsets, and whose timestamps are ten times those.
    """
    builder = BatchBuilder(base_offset=base_offset, **options)
    for offset in range(base_offset, base_offset + count):
        builder.append(b"k", b"%d" % offset + bytes(size), timestamp=offset * 10)
    return builder.build()


def marker(base_offset: int, producer_id: int) -> bytes:
    """
    A control batch that aborts a transaction.
    """
    return batch(base_offset, producer_id=producer_id, producer_epoch=0, is_control=True, is_transactional=True)


def segment(folder: Path, base_offset: int, found: Sequence[bytes], *, indexed: bool = True, room: int = 0) -> Path:
    """
    A segment of these batches with an index entry for each, and unused room at the end of its indexes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name(base_offset, LOG)
    path.write_bytes(b"".join(found))
    if indexed:
        offsets, times, position = b"", b"", 0
        for data in found:
            header = read_batch(data).header
            offsets += OFFSETS.pack(header.last_offset - base_offset, position)
            times += TIMES.pack(header.max_timestamp, header.last_offset - base_offset)
            position += len(data)
        (folder / file_name(base_offset, INDEX)).write_bytes(offsets[OFFSETS.size :] + bytes(room * OFFSETS.size))
        (folder / file_name(base_offset, TIME_INDEX)).write_bytes(times + bytes(room * TIMES.size))
    return path


def clean(folder: Path) -> Logs:
    """
    The logs in a folder after a clean stop.
    """
    (folder / CLEAN).write_text("{}")
    return logs(folder)


def synced(folder: Path, offset: int) -> Logs:
    """
    The logs in the folder of a running or killed gateway, synced up to an offset.
    """
    (folder / SYNCED).write_bytes(encode_offsets({TopicPartition(ORDERS.topic, ORDERS.index): offset}))
    return logs(folder)


def logs(folder: Path, *, committed_only: bool = False) -> Logs:
    return FolderLogs(folder, LocalFiles(), committed_only=committed_only)


def offsets_in(found: Logs, start: int, end: int, *, fail: bool = True) -> list[int]:
    """
    The offsets that a task reads; each value has to equal its offset.
    """
    wanted = ReadSpec(("offset", "value"), fail_on_data_loss=fail)
    rows = [
        row for rows in read_range(found.windows, OffsetRange(ORDERS, start, end), wanted) for row in rows.to_pylist()
    ]
    assert all(row["value"].startswith(b"%d\0" % row["offset"]) for row in rows)
    return [row["offset"] for row in rows]
