"""
Ids for producers, each given once for as long as the folder is there: a file `kgateway.producer-ids`.

    {"reserved": 3000}      only ids below this one may have been given

Ids are reserved a thousand at once, and given from memory. What was reserved and not given when the process ended is
never given.
"""

import json
from pathlib import Path
from typing import Self

from kgateway.broker.log.disk import Disk
from kgateway.broker.log.folder_error import FolderError, refusing

PRODUCER_IDS = "kgateway.producer-ids"
BLOCK = 1000
_END = 1 << 63  # of all ids


class ProducerIds:
    """
    The ids that are still to be given.
    """

    def __init__(self, path: Path, disk: Disk, reserved: int) -> None:
        self._path = path
        self._disk = disk
        self._next = self._reserved = reserved

    @classmethod
    def open(cls, path: Path, disk: Disk) -> Self:
        """
        The ids behind those that this file knows of, from 0 on where it is missing; a FolderError where it cannot be
        read.
        """
        with refusing(path):
            try:
                return cls(path, disk, _read(path, disk.read(path)))
            except FileNotFoundError:
                return cls(path, disk, 0)

    @property
    def needs_block(self) -> bool:
        """
        Whether all that is reserved was given, so that the next id waits for the disk.
        """
        return self._next >= self._reserved

    def reserve(self) -> None:
        """
        Reserve a thousand more; an OSError where that cannot be. By one thread at a time, while another gives ids.
        """
        reserved = self._reserved + BLOCK
        self._disk.write(self._path, json.dumps({"reserved": reserved}).encode() + b"\n", sync=True)
        self._reserved = reserved

    def next(self) -> int:
        """
        An id that was never given; reserves more where there is none.
        """
        if self.needs_block:
            self.reserve()
        given = self._next
        self._next += 1
        return given


def _read(path: Path, data: bytes) -> int:
    try:
        reserved = json.loads(data)["reserved"]
    except (ValueError, KeyError, TypeError, RecursionError):
        reserved = None
    if type(reserved) is not int or not 0 <= reserved <= _END - BLOCK:
        raise FolderError(
            f"{path} is damaged; bring it back from a copy, or write into it "
            '{"reserved": N} with an N above every producer id that was ever given'
        )
    return reserved
