"""
What was set for groups and other resources: a file `kgateway.configs`, which each change writes anew. Where there is no
such file nothing is set.
"""

from contextlib import suppress
from pathlib import Path
from typing import Self

from kgateway.broker import config_lines
from kgateway.broker.log.disk import Disk
from kgateway.broker.log.folder_error import FolderError, refusing
from kgateway.cluster.config_resource import AllOverrides

CONFIGS = "kgateway.configs"


class ConfigFile:
    """
    The overrides of all resources, and their file. One thread at a time may change them.
    """

    def __init__(self, path: Path, disk: Disk, overrides: AllOverrides) -> None:
        self.overrides = overrides  # never changed: others take their place
        self._path = path
        self._disk = disk

    @classmethod
    def open(cls, path: Path, disk: Disk) -> Self:
        """
        What the file says; a FolderError where it cannot be read.
        """
        with refusing(path):
            try:
                return cls(path, disk, _read(path, disk.read(path)))
            except FileNotFoundError:
                return cls(path, disk, {})

    def write(self, overrides: AllOverrides) -> None:
        """
        Let these take the place of the others. Returns when that is sure; an OSError where it cannot be, and then the
        others are there as before.
        """
        try:
            self._disk.write(self._path, config_lines.written(overrides), sync=True)
        except OSError:
            with suppress(OSError):  # it may be in its place already, and only not be sure
                self._disk.write(self._path, config_lines.written(self.overrides), sync=True)
            raise
        self.overrides = overrides


def _read(path: Path, data: bytes) -> AllOverrides:
    try:
        return config_lines.read(data)
    except config_lines.Damaged:
        raise FolderError(
            f"{path} is damaged; bring it back from a copy, or remove it: nothing is set for any group or broker then, "
            "and the gateway's settings hold for all"
        ) from None
    except config_lines.Unknown as line:
        raise FolderError(f"{path} has {line}, which this kgateway does not know; start a newer one") from None
