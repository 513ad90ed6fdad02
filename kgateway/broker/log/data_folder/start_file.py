"""
The file `kgateway.start`, which counts the starts and names the boot of the machine (session.py).
"""

import json
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple

from kgateway.broker.log.data_folder.folder_error import FolderError
from kgateway.broker.log.files.disk import Disk

START = "kgateway.start"
_START_MAX = (1 << 31) - 1  # leader epochs are counted from it


class LastEnd(Enum):
    """
    How the last process that had the folder ended.
    """

    CLEAN_STOP = auto()
    PROCESS_CRASHED = auto()  # and the machine has run since
    MACHINE_CRASHED = auto()  # or nobody can tell


class Start(NamedTuple):
    number: int
    boot_id: str | None

    def encoded(self) -> bytes:
        return json.dumps({"start_number": self.number, "boot_id": self.boot_id}).encode() + b"\n"

    def is_of(self, boot_id: str | None) -> bool:
        """
        Whether the machine has not been restarted since, given its boot id now.
        """
        return boot_id is not None and boot_id == self.boot_id


def read_start(path: Path, disk: Disk) -> Start:
    """
    Read the file; raises FolderError if it cannot be read.
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
    return FolderError(
        f"{path} {how}; restore it from a copy, or write "
        '{"start_number": N} into it, with an N above every leader epoch that clients may have seen'
    )
