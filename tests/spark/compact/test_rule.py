"""
Which records compaction keeps: Spark decides many small histories at once, and is compared with the rule in Python.
"""

import random
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from kgateway.spark.archive.latest_rule import has_newer, latest, older, removed_by_key

HISTORIES = 300
SCHEMA = "partition int, offset long, key binary, value binary, timestamp timestamp"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Record(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: datetime | None


def history(partition: int, chance: random.Random) -> list[Record]:
    """
    A partition of up to thirty records of few keys, with gaps between offsets, in any order of time.
    """
    offsets = sorted(chance.sample(range(60), chance.randrange(30)))
    return [
        Record(
            partition,
            offset,
            chance.choice([b"", b"a", b"b", b"c", None]),
            chance.choice([b"", b"v", None]),
            chance.choice([None, *(EPOCH + timedelta(milliseconds=ms) for ms in range(10))]),
        )
        for offset in offsets
    ]


def is_replaced(records: list[Record], one: Record) -> bool:
    """
    Whether a later record has the same key.
    """
    return one.key is not None and any(other.key == one.key and other.offset > one.offset for other in records)


def is_tombstone(one: Record) -> bool:
    return one.key is not None and one.value is None


def is_older(one: Record, before_ms: int | None) -> bool:
    if before_ms is None or one.timestamp is None:
        return False
    return one.timestamp < EPOCH + timedelta(milliseconds=before_ms)


@pytest.fixture(scope="module")
def histories() -> list[list[Record]]:
    """
    Histories, each in a partition of its own.
    """
    chance = random.Random(1)
    return [history(number, chance) for number in range(HISTORIES)]


@pytest.fixture
def frame(spark: Any, histories: list[list[Record]]) -> Any:
    """
    All records, in random order.
    """
    rows = [one for records in histories for one in records]
    random.Random(2).shuffle(rows)
    return spark.createDataFrame(rows, SCHEMA).repartition(4)


def places(frame: Any) -> list[tuple[int, int]]:
    return sorted((row.partition, row.offset) for row in frame.collect())


@pytest.mark.parametrize("keep_tombstones", [False, True])
def test_latest(frame: Any, histories: list[list[Record]], keep_tombstones: bool) -> None:
    """
    Obsolete records are removed, and tombstones unless they are wanted.
    """
    wanted = [
        (one.partition, one.offset)
        for records in histories
        for one in records
        if not is_replaced(records, one) and (keep_tombstones or not is_tombstone(one))
    ]
    assert places(latest(frame, keep_tombstones=keep_tombstones)) == wanted


@pytest.mark.parametrize("before_ms", [None, 0, 5, 100])
def test_removed_by_key(frame: Any, histories: list[list[Record]], before_ms: int | None) -> None:
    """
    Obsolete records and old tombstones are removed.
    """
    wanted = [
        (one.partition, one.offset)
        for records in histories
        for one in records
        if is_replaced(records, one) or (is_tombstone(one) and is_older(one, before_ms))
    ]
    assert places(removed_by_key(frame, before_ms)) == wanted


@pytest.mark.parametrize("before_ms", [None, 100])
def test_removal_changes_no_latest_value(frame: Any, histories: list[list[Record]], before_ms: int | None) -> None:
    """
    Wherever the tail begins, the latest values do not change.
    """
    gone = {*places(removed_by_key(frame, before_ms))}
    for records in histories:
        for end in range(0, 61, 7):
            left = [one for one in records if one.offset >= end or (one.partition, one.offset) not in gone]
            assert values(left) == values(records)


def values(records: list[Record]) -> dict[bytes, bytes]:
    found = {one.key: one.value for one in records if one.key is not None}
    return {key: value for key, value in found.items() if value is not None}


def test_has_newer_and_older(frame: Any, histories: list[list[Record]]) -> None:
    """
    An unknown time is not old.
    """
    every = [(records, one) for records in histories for one in records]
    replaced = [(one.partition, one.offset) for records, one in every if is_replaced(records, one)]
    assert places(frame.withColumn("newer", has_newer()).where("newer")) == replaced
    assert places(frame.where(older(3))) == [(one.partition, one.offset) for _, one in every if is_older(one, 3)]
    assert places(frame.where(older(None))) == []
