"""
How often a data folder was started, and on which boot of the machine: its file `kgateway.start`.
"""

import json
from pathlib import Path
from typing import NamedTuple

from kgateway.broker.log.disk import Disk
from kgateway.broker.log.folder_error import FolderError


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


def read_start(path: Path, disk: Disk) -> Start:
    """
    What the file says; a FolderError where it cannot be read.
    """
    try:
        found = json.loads(disk.read(path))
        start = Start(int(found["start_number"]), found.get("boot_id"))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise damaged_start(path, "cannot be read") from None
    if start.number < 1:
        raise damaged_start(path, f"tells of start {start.number}")
    return start


def damaged_start(path: Path, how: str) -> FolderError:
    """
    What the operator is told of it.
    """
    return FolderError(
        f"{path} {how}; bring it back from a copy, or write into it "
        '{"start_number": N} with an N above every leader epoch that clients may have seen'
    )
