"""
Our bytes compared with those of Kafka's own classes, for messages and versions that no other codec here knows.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from kgateway.wire.codec import decode, encode
from tests.kafka.oracle import matches
from tests.wire.cases import EVERY_MESSAGE
from tests.wire.judges import UNJUDGED

_LINES = [line.split(" ", 3) for line in (Path(__file__).parent / "golden.txt").read_text().splitlines()]
_IDS = [f"{name}-v{version}-{index % 2}" for index, (name, version, *_) in enumerate(_LINES)]
_BY_NAME = {message.__name__: message for message in EVERY_MESSAGE}


@pytest.mark.parametrize(("name", "version", "data", "shown"), _LINES, ids=_IDS)
def test_bytes_are_those_of_kafka(name: str, version: Any, data: str, shown: str) -> None:
    """
    They are read as the fields that Kafka shows, and written back unchanged.
    """
    value = decode(_BY_NAME[name], int(version), bytes.fromhex(data))
    assert matches(value, json.loads(shown), int(version))
    assert encode(value, int(version)).hex() == data


def test_every_version_has_a_judge() -> None:
    """
    The stored bytes cover what neither kio nor kafka-python knows.
    """
    kept = {(name, int(version)) for name, version, _, _ in _LINES}
    assert {(message.__name__, version) for message, version in UNJUDGED} == kept
