"""
The configs of groups and other resources: a file `kgateway.configs`, which each change rewrites. Without the file
nothing is set.
"""

from contextlib import suppress
from pathlib import Path
from typing import Self

from kgateway.broker.log.data_folder.folder_error import FolderError, refusing
from kgateway.broker.log.files.disk import Disk
from kgateway.broker.overrides_file import ConfigsDamaged, UnknownConfigLine, decode_overrides, encode_overrides
from kgateway.cluster.config_resource import AllOverrides

CONFIGS = "kgateway.configs"


class ConfigFile:
    """
    The overrides of all resources, and their file. One thread at a time may change them.
    """

    def __init__(self, path: Path, disk: Disk, overrides: AllOverrides) -> None:
        self.overrides = overrides  # never changed, only replaced
        self._path = path
        self._disk = disk

    @classmethod
    def open(cls, path: Path, disk: Disk) -> Self:
        """
        Read the file; raises FolderError if it cannot be read.
        """
        with refusing(path):
            try:
                return cls(path, disk, _read(path, disk.read(path)))
            except FileNotFoundError:
                return cls(path, disk, {})

    def write(self, overrides: AllOverrides) -> None:
        """
        Replace the overrides. Returns once that is synced. After an OSError the earlier ones are still there.
        """
        try:
            self._disk.write(self._path, encode_overrides(overrides), sync=True)
        except OSError:
            with suppress(OSError):  # it may be in its place already, and not synced
                self._disk.write(self._path, encode_overrides(self.overrides), sync=True)
            raise
        self.overrides = overrides


def _read(path: Path, data: bytes) -> AllOverrides:
    try:
        return decode_overrides(data)
    except ConfigsDamaged:
        raise FolderError(
            f"{path} is damaged; restore it from a copy, or remove it: groups and brokers then have no configs of "
            "their own and use the gateway's settings"
        ) from None
    except UnknownConfigLine as line:
        raise FolderError(
            f"{path} has {line}, which this version of kgateway does not know; start a newer one"
        ) from None
