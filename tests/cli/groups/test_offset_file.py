"""
Offsets in a file.
"""

import json
from pathlib import Path

import pytest

from kgateway.cli.common.errors import CommandError
from kgateway.cli.groups.offset_targets import offsets_in
from kgateway.topic_partition import TopicPartition

DESCRIBED = {
    "groups": [
        {"group": "audit", "partitions": [{"topic": "orders", "partition": 0, "committed": 99}]},
        {
            "group": "billing",
            "partitions": [
                {"topic": "orders", "partition": 0, "committed": 5, "lag": 3},
                {"topic": "orders", "partition": 1, "committed": None},
            ],
        },
    ]
}

TWICE = [DESCRIBED["groups"][1], DESCRIBED["groups"][1]]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("offsets")


@pytest.mark.parametrize(
    "text",
    [
        "orders,0,5\npayments,12,0\n",
        '"orders",0,5\r\n\r\n"payments", 12, 0\r\n',
        "billing,orders,0,5\naudit,orders,0,99\nbilling,payments,12,0",
    ],
)
def test_a_table(file: Path, text: str) -> None:
    """
    The table has the format that Kafka's tool exports, for one group or for several.
    """
    file.write_text(text)
    assert offsets_in(file, "billing") == {TopicPartition("orders", 0): 5, TopicPartition("payments", 12): 0}


def test_output_of_describe(file: Path) -> None:
    """
    Partitions without a commit are left out.
    """
    file.write_text(json.dumps(DESCRIBED, indent=2))
    assert offsets_in(file, "billing") == {TopicPartition("orders", 0): 5}


def test_the_largest_offset_is_accepted(file: Path) -> None:
    file.write_text(f"orders,0,{(1 << 63) - 1}")
    assert offsets_in(file, "billing") == {TopicPartition("orders", 0): (1 << 63) - 1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"orders,0,{'9' * 5000}", f"offsets, line 1: 'orders,0,{'9' * 91}' is not TOPIC,PARTITION,OFFSET"),
        (f"orders,{'0' * 5000},5", f"offsets, line 1: 'orders,{'0' * 93}' is not TOPIC,PARTITION,OFFSET"),
        (f"{'x' * 200_000},0,5", "offsets, line 1: field larger than field limit (131072)"),
        ("", "offsets has no offsets of group billing"),
        ("audit,orders,0,5", "offsets has no offsets of group billing"),
        (json.dumps({"groups": []}), "offsets has no offsets of group billing"),
        ("orders,0,5\norders,1\n", "offsets, line 2: 'orders,1' is not TOPIC,PARTITION,OFFSET"),
        ("orders,0,-5", "offsets, line 1: 'orders,0,-5' is not TOPIC,PARTITION,OFFSET"),
        ("orders,x,5", "offsets, line 1: 'orders,x,5' is not TOPIC,PARTITION,OFFSET"),
        (f"orders,0,{1 << 63}", f"offsets, line 1: 'orders,0,{1 << 63}' is not TOPIC,PARTITION,OFFSET"),
        ("orders,0,5\npayments,0,5\norders,0,6", "offsets, line 3: partition orders-0 appears twice"),
        ("orders,0,5\n\norders,00,5", "offsets, line 3: partition orders-0 appears twice"),
        ("orders,0,5\nbilling,orders,0,5", "offsets, line 2: partition orders-0 appears twice"),
        (json.dumps({"groups": TWICE}), "offsets: partition orders-0 appears twice"),
        ("{", "offsets is not what `kgateway groups describe --json` prints"),
        ('{"groups": [{}]}', "offsets is not what `kgateway groups describe --json` prints"),
        ('{"groups": 3}', "offsets is not what `kgateway groups describe --json` prints"),
    ],
    ids=lambda text: text[:50],
)
def test_a_malformed_file(file: Path, text: str, reason: str) -> None:
    """
    The reason names the line, or the format.
    """
    file.write_text(text)
    with pytest.raises(CommandError) as refused:
        offsets_in(file, "billing")
    assert str(refused.value) == reason


def test_an_unreadable_file_is_named(file: Path) -> None:
    with pytest.raises(CommandError, match="offsets cannot be read: No such file or directory"):
        offsets_in(file, "billing")
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(CommandError, match="offsets cannot be read: 'utf-8' codec"):
        offsets_in(file, "billing")
