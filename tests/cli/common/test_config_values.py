"""
Values of configs with units.
"""

from argparse import ArgumentTypeError

import pytest

from kgateway.cli.common.config_values import config_value


@pytest.mark.parametrize(
    ("text", "value", "is_converted"),
    [
        ("retention.ms=1h", "3600000", True),
        ("retention.ms=7d", "604800000", True),
        ("segment.ms=90s", "90000", True),
        ("segment.bytes=64MiB", "67108864", True),
        ("max.message.bytes=1KiB", "1024", True),
        ("retention.ms=3600000", "3600000", False),
        ("retention.ms=-1", "-1", False),
        ("retention.ms=1.5h", "1.5h", False),
        ("retention.ms=", "", False),
        ("cleanup.policy=compact", "compact", False),
        ("min.insync.replicas=1h", "1h", False),
    ],
)
def test_sizes_and_durations_become_numbers(text: str, value: str, is_converted: bool) -> None:
    """
    Everything else is left for the server to judge.
    """
    assert config_value(text) == (text.partition("=")[0], value, is_converted)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("retention.ms=1hour", "ms, s, min, m, h, d"),
        ("retention.ms=1MiB", "ms, s, min, m, h, d"),
        ("segment.bytes=1MB", "KiB, MiB, GiB, TiB"),
    ],
)
def test_an_unknown_unit_is_refused(text: str, units: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"there is no unit .*; choose from {units}$"):
        config_value(text)
