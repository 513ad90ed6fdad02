"""
What was set for groups and other resources: a file `kgateway.configs`, which each change writes anew.

    CRC         CRC-32C of all that is behind this line, 8 hexadecimal digits
    {"kind": "GROUP", "name": "billing", "config": {"consumer.session.timeout.ms": "60000"}}
                a line of JSON in ASCII for each resource

Where there is no such file nothing is set.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Self

from crc32c import crc32c

from kgateway.broker.log.disk import Disk
from kgateway.broker.log.folder_error import FolderError, refusing
from kgateway.cluster.config_resource import AllOverrides, ConfigKind, ConfigResource, Overrides
from kgateway.cluster.group_config import read_group_config
from kgateway.wire.errors import KafkaError

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
            self._disk.write(self._path, _content(overrides), sync=True)
        except OSError:
            with suppress(OSError):  # it may be in its place already, and only not be sure
                self._disk.write(self._path, _content(self.overrides), sync=True)
            raise
        self.overrides = overrides


def _content(overrides: AllOverrides) -> bytes:
    rows = [_row(resource, config) for resource, config in overrides.items()]
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    return b"%08x\n%s" % (crc32c(lines), lines)


def _row(resource: ConfigResource, config: Overrides) -> Mapping[str, object]:
    return {"kind": resource.kind.name, "name": resource.name, "config": dict(config)}


def _read(path: Path, data: bytes) -> AllOverrides:
    crc, _, lines = data.partition(b"\n")
    if crc != b"%08x" % crc32c(lines):
        raise FolderError(
            f"{path} is damaged; bring it back from a copy, or remove it: nothing is set for any group then, "
            "and the gateway's settings hold for all"
        )
    return dict(_resource(path, text) for text in lines.splitlines())


def _resource(path: Path, text: bytes) -> tuple[ConfigResource, Overrides]:
    try:
        row = json.loads(text)
        kind, name, config = ConfigKind[row["kind"]], row["name"], row["config"]
        if not all(isinstance(shown, str) for shown in (name, *config.values())):
            raise TypeError
        _CHECKS[kind](config)
    except (ValueError, KeyError, TypeError, AttributeError, KafkaError):
        line = text[:200].decode("ascii", "replace")
        raise FolderError(f"{path} has {line}, which this kgateway does not know; start a newer one") from None
    return ConfigResource(kind, name), MappingProxyType(config)


_CHECKS = {ConfigKind.GROUP: read_group_config}
