"""
Kafka's notation for version ranges.
"""

import pytest

from kgateway.wire.schema import parse_versions, show_versions


@pytest.mark.parametrize("text", ["none", "0+", "7+", "3", "0-13"])
def test_notation_round_trips(text: str) -> None:
    assert show_versions(parse_versions(text)) == text


def test_ranges_include_both_ends() -> None:
    assert [version for version in range(12) if version in parse_versions("8-10")] == [8, 9, 10]
    assert 100 in parse_versions("9+")
