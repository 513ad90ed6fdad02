"""
Checks the files of a log without changing any: a data folder, the folder of a partition, or one segment. The latter two
may be Kafka's.

It may run beside the gateway that uses the folder. What is small is read before the logs are, which only grow: so what
tells of a log can be behind it, and never ahead of it. The end of the segment that is written to may be half a batch.
"""

from collections.abc import Collection
from pathlib import Path

from kgateway.broker.log.checking_folder import CheckedFolder
from kgateway.broker.log.checking_partition import CheckedPartition
from kgateway.broker.log.checking_segment import CheckedSegment, Reached
from kgateway.broker.log.disk import Disk
from kgateway.broker.log.findings import Steps, Survey
from kgateway.broker.log.folder import CLEAN
from kgateway.broker.log.folder_meta import META, START
from kgateway.broker.log.going_on import base_of
from kgateway.broker.log.partition_folder import METADATA
from kgateway.broker.log.segment import LOG

_PART = "the folder of a partition or a .log file"
_NAME_ONE = f"name a data folder, {_PART}"


class NothingToCheck(Exception):
    """
    The path has nothing that can be checked; the message says why and what to do.
    """


def check(path: Path, disk: Disk, *, holder: str | None = None, only: Collection[str] = ()) -> tuple[Survey, Steps]:
    """
    What is known from the beginning, and the steps that find out the rest. `only` has the partitions to look at, such
    as `orders-0`; all of them if it is empty. An OSError where the path cannot be read.
    """
    if not path.is_dir():
        return _segment(path, disk)
    names = disk.names(path)
    if START in names or META in names:
        was_clean = holder is None and CLEAN in names
        survey = Survey(disk, is_ours=True, in_use=holder is not None, was_clean=was_clean)
        if START not in names:
            raise NothingToCheck(f"{path} is not the data folder of a kgateway; if it is Kafka's, name {_PART} in it")
        folder = CheckedFolder(survey, path, names)
        missing = sorted(set(only) - set(folder.partitions))
        if missing:
            raise NothingToCheck(f"there is no partition {missing[0]} in {path}; those that were used have a folder")
        return survey, folder.steps(only or folder.partitions)
    if METADATA in names or any(name.endswith(LOG) for name in names):
        survey = Survey(disk, is_ours=False, in_use=False, was_clean=False)
        survey.tally.bytes_in_all = sum(names.values())
        return survey, CheckedPartition(survey, path).steps()
    raise NothingToCheck(f"{path} has nothing to check; {_NAME_ONE}")


def _segment(path: Path, disk: Disk) -> tuple[Survey, Steps]:
    size = disk.names(path.parent)[path.name] if path.exists() else 0
    if path.exists() and LOG not in path.suffixes:
        raise NothingToCheck(f"{path} cannot be checked by itself; {_NAME_ONE}")
    survey = Survey(disk, is_ours=False, in_use=False, was_clean=False)
    survey.tally.bytes_in_all = size
    reached = Reached(base_of(path))
    segment = CheckedSegment(survey, path, reached, lambda header: None, is_last=True, may_have_gaps=True)
    return survey, segment.steps()
