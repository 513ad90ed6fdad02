"""
Folders of logs for tests, written by hand in the form that brokers write.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kgateway.broker.log.checkpoints import SYNCED, written
from kgateway.broker.log.folder import CLEAN
from kgateway.broker.log.index import OFFSETS, TIMES
from kgateway.broker.log.segment import LOG, file_name
from kgateway.broker.log.segment_indexes import INDEX, TIME_INDEX
from kgateway.client.offsets import Partition
from kgateway.records.batch import read_batch
from kgateway.records.builder import BatchBuilder
from kgateway.spark.files import LocalFiles
from kgateway.spark.folder import FolderLogs
from kgateway.spark.logs import Logs
from kgateway.spark.ranges import OffsetRange
from kgateway.spark.reading import Wanted, read

ORDERS = Partition("orders", 0)


def batch(base_offset: int, count: int = 1, size: int = 5, **options: Any) -> bytes:
    """
    Records whose values tell their offsets, and whose timestamps are ten times these.
    """
    builder = BatchBuilder(base_offset=base_offset, **options)
    for offset in range(base_offset, base_offset + count):
        builder.append(b"k", b"%d" % offset + bytes(size), timestamp=offset * 10)
    return builder.build()


def marker(base_offset: int, producer_id: int) -> bytes:
    """
    What ends a transaction.
    """
    return batch(base_offset, producer_id=producer_id, producer_epoch=0, is_control=True, is_transactional=True)


def segment(folder: Path, base_offset: int, found: Sequence[bytes], *, indexed: bool = True, room: int = 0) -> Path:
    """
    A segment of these batches, with an entry for each in its indexes, and as much room behind them.
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
    The logs in a folder whose gateway was stopped.
    """
    (folder / CLEAN).write_text("{}")
    return logs(folder)


def synced(folder: Path, offset: int) -> Logs:
    """
    The logs in a folder whose gateway runs, or was killed, as far as they are known to be good.
    """
    (folder / SYNCED).write_bytes(written({(ORDERS.topic, ORDERS.index): offset}))
    return logs(folder)


def logs(folder: Path, *, committed_only: bool = False) -> Logs:
    """
    The logs in a folder.
    """
    return FolderLogs(folder, LocalFiles(), committed_only=committed_only)


def offsets_in(found: Logs, start: int, end: int, *, fail: bool = True) -> list[int]:
    """
    The offsets that a task reads; each value has to tell the same.
    """
    wanted = Wanted(("offset", "value"), fail_on_data_loss=fail)
    rows = [row for rows in read(found, OffsetRange(ORDERS, start, end), wanted) for row in rows.to_pylist()]
    assert all(row["value"].startswith(b"%d\0" % row["offset"]) for row in rows)
    return [row["offset"] for row in rows]
