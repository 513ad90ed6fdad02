"""
Paths that `kgateway log` is given: data folders, folders of partitions, and others.
"""

from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from kgateway.broker.log.data_folder.partition_folder import METADATA
from kgateway.broker.log.data_folder.start_file import START
from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.segments.file_names import LOG, offsets_of

PARTITION_OR_SEGMENT = "the folder of a partition, or a segment such as 00000000000000000000.log"
_SUGGESTIONS_MAX = 3


class NoLog(Exception):
    """
    The path has no part of a log; the message says why, and which path may be meant.
    """


def is_data_folder(names: Container[str]) -> bool:
    return START in names


def is_partition_folder(names: Iterable[str]) -> bool:
    """
    Whether the names in a folder are those of a partition, which Kafka may have written. A file such as `twistd.log` is
    no segment.
    """
    return METADATA in names or bool(offsets_of(names, LOG))


def no_log_in(folder: Path, disk: Disk) -> NoLog:
    """
    The refusal of a folder that is neither, with the data folders in it.
    """
    near = [str(path) for path in _data_folders_in(folder, disk)][:_SUGGESTIONS_MAX]
    if near:
        return NoLog(f"{folder} is not a data folder; did you mean {' or '.join(near)}?")
    return NoLog(f"{folder} is neither a data folder nor the folder of a partition")


def _data_folders_in(folder: Path, disk: Disk) -> Iterator[Path]:
    for name in sorted(disk.names(folder)):
        with suppress(OSError):  # a file, or a folder of somebody else
            if is_data_folder(disk.names(folder / name)):
                yield folder / name
