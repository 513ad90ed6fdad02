"""
Kafka's notation for versions.
"""

import pytest

from kgateway.wire.versions import parse_versions, show_versions


@pytest.mark.parametrize("text", ["none", "0+", "7+", "3", "0-13"])
def test_notation_comes_back(text: str) -> None:
    """
    What is read is shown the same.
    """
    assert show_versions(parse_versions(text)) == text


def test_membership() -> None:
    """
    Both ends belong to a range.
    """
    assert [version for version in range(12) if version in parse_versions("8-10")] == [8, 9, 10]
    assert 100 in parse_versions("9+")
