"""
How often a data folder was started, and on which boot of the machine: its file `kgateway.start`.
"""

import json
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple

from kgateway.broker.log.disk import Disk
from kgateway.broker.log.folder_error import FolderError

_START_MAX = (1 << 31) - 1  # leader epochs are counted from it


class LastEnd(Enum):
    """
    How the process ended that had the folder last.
    """

    IN_ORDER = auto()
    BY_ITSELF = auto()  # it died, and the machine has run since
    WITH_THE_MACHINE = auto()  # or nobody can tell


class Start(NamedTuple):
    """
    What `kgateway.start` says.
    """

    number: int
    boot_id: str | None

    @property
    def written(self) -> bytes:
        """
        The file.
        """
        return json.dumps({"start_number": self.number, "boot_id": self.boot_id}).encode() + b"\n"

    def is_of(self, boot_id: str | None) -> bool:
        """
        Whether the machine has run since, if this is its boot now.
        """
        return boot_id is not None and boot_id == self.boot_id


def read_start(path: Path, disk: Disk) -> Start:
    """
    What the file says; a FolderError where it cannot be read.
    """
    try:
        found = json.loads(disk.read(path))
        number, boot_id = found["start_number"], found.get("boot_id")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise damaged_start(path, "cannot be read") from None
    if type(number) is not int or not 1 <= number < _START_MAX:
        raise damaged_start(path, f"has no start number from 1 to {_START_MAX - 1}")
    return Start(number, boot_id)


def damaged_start(path: Path, how: str) -> FolderError:
    """
    What the operator is told of it.
    """
    return FolderError(
        f"{path} {how}; bring it back from a copy, or write into it "
        '{"start_number": N} with an N above every leader epoch that clients may have seen'
    )
