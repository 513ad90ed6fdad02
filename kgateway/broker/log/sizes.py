"""
How much room partitions take on disk, and how much the disk has.

It is asked for by administrators, now and then, so nothing is counted along while records are written: the folders are
looked into, in a thread.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path

from kgateway.broker.log.disk import Disk
from kgateway.broker.log.found_files import numbered
from kgateway.broker.log.partition_folder import folder_of
from kgateway.broker.log.segment import LOG
from kgateway.cluster.log_dir import UNKNOWN, Measured
from kgateway.cluster.view import Topic


def measure(path: Path, disk: Disk, places: Iterable[tuple[Topic, int]]) -> Measured:
    """
    The bytes of all segments of these partitions. One without a folder has had no records yet.
    """
    sizes = {(topic.id, index): _size(folder_of(path, topic, index), disk) for topic, index in places}
    return Measured(sizes, *_room(path))


def _size(folder: Path, disk: Disk) -> int:
    try:
        files = disk.names(folder)
    except FileNotFoundError:
        return 0
    return sum(size for name, size in files.items() if (found := numbered(name)) and found[1] == LOG)


def _room(path: Path) -> tuple[int, int]:
    """
    Of the file system, and what is left of it for us.
    """
    try:
        room = shutil.disk_usage(path)
    except OSError:
        return UNKNOWN, UNKNOWN
    return room.total, room.free
