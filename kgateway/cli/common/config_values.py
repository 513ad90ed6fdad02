"""
Values of Kafka's configs as people write them. Servers take plain numbers, so a size or a duration with a unit, such as
`segment.bytes=64MiB` or `retention.ms=7d`, is converted here.
"""

import re
from argparse import ArgumentTypeError
from typing import NamedTuple

from kgateway.cli.common.values import pair
from kgateway.config.kinds import BYTES, MILLISECONDS

_UNITS = {".ms": MILLISECONDS, ".bytes": BYTES}
_WITH_UNIT = re.compile("([0-9]+)([A-Za-z]+)")


class ConfigValue(NamedTuple):
    name: str
    value: str
    is_converted: bool = False


def config_value(text: str) -> ConfigValue:
    """
    Parse NAME=VALUE.
    """
    name, value = pair(text)
    units = next((units for ending, units in _UNITS.items() if name.endswith(ending)), {})
    match = _WITH_UNIT.fullmatch(value)
    if not match or not units:
        return ConfigValue(name, value)
    if match[2] not in units:
        raise ArgumentTypeError(f"{text}: there is no unit {match[2]}; choose from {', '.join(filter(None, units))}")
    return ConfigValue(name, str(int(match[1]) * units[match[2]]), is_converted=True)
