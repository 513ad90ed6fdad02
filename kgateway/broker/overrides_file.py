"""
The file of the configs that are set for brokers and groups, wherever a broker keeps it:

    CRC         CRC-32C of all bytes after this line, 8 hexadecimal digits
    {"kind": "GROUP", "name": "billing", "config": {"consumer.session.timeout.ms": "60000"}}
                a line of JSON in ASCII for each resource
"""

import json
from collections.abc import Mapping
from types import MappingProxyType

from crc32c import crc32c

from kgateway.cluster.broker_config import check_broker_config
from kgateway.cluster.config_resource import AllOverrides, ConfigResource, Overrides, ResourceType
from kgateway.cluster.group_config import read_group_config
from kgateway.wire.errors import KafkaError


class ConfigsDamaged(Exception):
    pass


class UnknownConfigLine(Exception):
    pass


def encode_overrides(overrides: AllOverrides) -> bytes:
    rows = [_row(resource, config) for resource, config in overrides.items()]
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    return b"%08x\n%s" % (crc32c(lines), lines)


def decode_overrides(data: bytes) -> AllOverrides:
    """
    Decode the file. Raises ConfigsDamaged or UnknownConfigLine.
    """
    crc, _, lines = data.partition(b"\n")
    if crc != b"%08x" % crc32c(lines):
        raise ConfigsDamaged
    return dict(_resource(text) for text in lines.splitlines())


def _row(resource: ConfigResource, config: Overrides) -> Mapping[str, object]:
    return {"kind": resource.kind.name, "name": resource.name, "config": dict(config)}


def _resource(text: bytes) -> tuple[ConfigResource, Overrides]:
    try:
        row = json.loads(text)
        kind, name, config = ResourceType[row["kind"]], row["name"], row["config"]
        if not all(isinstance(shown, str) for shown in (name, *config.values())):
            raise TypeError
        _CHECKS[kind](config)
    except (ValueError, KeyError, TypeError, AttributeError, KafkaError):
        raise UnknownConfigLine(text[:200].decode("ascii", "replace")) from None
    return ConfigResource(kind, name), MappingProxyType(config)


_CHECKS = {ResourceType.BROKER: check_broker_config, ResourceType.GROUP: read_group_config}
