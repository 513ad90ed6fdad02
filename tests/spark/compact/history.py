"""
Records of few keys, and the rule of compaction in plain Python.
"""

import random
from typing import Any

import pytest

from tests.spark.archive.archives import Archives
from tests.spark.gateway import PARTITIONS, Row


def some(count: int, seed: int, keys: int = 40) -> list[Row]:
    """
    Records of some keys, a fifth of which are tombstones; each key is in both partitions.
    """
    chance = random.Random(seed)
    return [
        {
            "key": b"k%d" % chance.randrange(keys),
            "value": None if chance.random() < 0.2 else b"%d-%d" % (seed, number),
            "partition": chance.randrange(PARTITIONS),
            "headers": [("h", b"%d" % number)] if number % 3 else [],
            "timestamp": 1 + chance.randrange(1_000),
        }
        for number in range(count)
    ]


def without_replaced(rows: list[Row]) -> list[Row]:
    """
    The rows, in order of offsets, that no later row of the same key replaces.
    """
    latest: dict[Any, Row] = {}
    for number, row in enumerate(rows):
        latest[row["partition"], row["key"], None if row["key"] is not None else number] = row
    return sorted(latest.values(), key=lambda row: (row["partition"], row["offset"]))


def without_tombstones(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["key"] is None or row["value"] is not None]


def values(rows: list[Row]) -> dict[tuple[int, bytes], bytes]:
    """
    The latest value of each key in each partition; the rows are in order.
    """
    found = {(row["partition"], row["key"]): row["value"] for row in rows}
    return {place: value for place, value in found.items() if value is not None}


def merged(archives: Archives, topic: str) -> None:
    """
    Merge the small files of the archive.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("kgateway.spark.archive.task.MANY", 2)
        archives.job(topic).merge()
