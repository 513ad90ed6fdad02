"""
Spark's own Kafka source and ours answer the same queries of the same topics with the same rows, or both refuse.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.spark_own.kafka import CODECS, PARTITIONS, START_MS, Row, Topics, numbered, odd
from tests.spark_own.queries import Said

Ask = Callable[[Said], Said]
COUNT = 90


class Both:
    def __init__(self, topics: Topics, own: Ask, ours: Ask) -> None:
        self.topics, self.own, self.ours = topics, own, ours

    def ask(self, kind: str = "read", **asked: Any) -> Any:
        """
        The common answer of both sources.
        """
        own, ours = self._asked(kind, asked)
        assert "answer" in own, own
        assert ours == own
        return own["answer"]

    def read(self, topic: str, **options: str) -> Any:
        return self.ask(options={"subscribe": topic} | options)

    def refused(self, kind: str = "read", **asked: Any) -> None:
        own, ours = self._asked(kind, asked)
        assert "refused" in own, own
        assert "refused" in ours, ours

    def _asked(self, kind: str, asked: Any) -> tuple[Said, Said]:
        options = {"kafka.bootstrap.servers": self.topics.bootstrap} | asked["options"]
        question = asked | {"kind": kind, "options": options}
        return self.own(question), self.ours(question)


@pytest.fixture(scope="session")
def both(topics: Topics, own: Ask, ours: Ask) -> Both:
    return Both(topics, own, ours)


@pytest.fixture(scope="session")
def plain(topics: Topics) -> str:
    return topics.make(*numbered(COUNT))


def by_partition(topic: str, *values: int) -> str:
    return json.dumps({topic: {str(index): value for index, value in enumerate(values)}})


def numbers(rows: list[Row]) -> list[int]:
    return sorted(int(bytes.fromhex(row["value"])) for row in rows)


@pytest.mark.parametrize("codec", CODECS)
def test_all_kinds_of_records(both: Both, codec: str) -> None:
    """
    Nulls, empty values, bytes that are no text, and headers are equal in each compression.
    """
    topic = both.topics.make()
    both.topics.fill(topic, odd(), **{"compression.type": codec})
    rows = both.read(topic, includeHeaders="true")
    assert len(rows) == len(odd())
    assert {row["value"] for row in rows} >= {None, "", b"value".hex()}
    assert any(row["headers"] and row["headers"][0]["value"] is None for row in rows)
    assert any(row["headers"] is None for row in rows)


@pytest.mark.parametrize("headers", ["true", "false"])
def test_columns(both: Both, plain: str, headers: str) -> None:
    """
    Columns have the same names, types and order.
    """
    columns = both.ask("types", options={"subscribe": plain, "includeHeaders": headers})
    assert [name for name, _ in columns][:3] == ["key", "value", "topic"]
    assert len(columns) == 7 + (headers == "true")


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Auckland", "America/St_Johns", "Asia/Kolkata"])
@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_times(both: Both, zone: str, kind: str) -> None:
    """
    Each session has its own time zone; the timestamp type distinguishes the broker's times.
    """
    topic = both.topics.make(*numbered(6), **{"message.timestamp.type": kind})
    rows = both.ask(options={"subscribe": topic}, time_zone=zone)
    assert {row["timestampType"] for row in rows} == {int(kind == "LogAppendTime")}
    if kind == "CreateTime" and zone == "Asia/Kolkata":
        assert rows[0]["shown"] == "2023-11-15 03:43:20"


def test_a_topic_without_records(both: Both) -> None:
    assert both.read(both.topics.make()) == []


def test_partitions_without_records(both: Both) -> None:
    topic = both.topics.make(*[row for row in numbered(9) if row["partition"] == 1])
    assert numbers(both.read(topic)) == [1, 4, 7]


def test_several_topics(both: Both) -> None:
    """
    Topics are named by name, by pattern, and by partition.
    """
    one, other = both.topics.make(*numbered(6), name="some-a"), both.topics.make(*numbered(6, 6), name="some-b")
    assert numbers(both.read(f"{one},{other}")) == list(range(12))
    assert numbers(both.ask(options={"subscribePattern": "some-.*"})) == list(range(12))
    assigned = json.dumps({one: [0, 2], other: [1]})
    assert numbers(both.ask(options={"assign": assigned})) == [0, 2, 3, 5, 7, 10]


def test_a_pattern_that_fits_nothing(both: Both) -> None:
    assert both.ask(options={"subscribePattern": "there-is-none-.*"}) == []


@pytest.mark.parametrize(
    ("starting", "ending", "count"),
    [
        ((0, 0, 0), (10, 0, 30), 40),
        ((5, 6, 7), (5, 7, 9), 3),
        ((-2, -2, 20), (-1, 3, -1), 43),
        ((30, 30, 30), (-1, -1, -1), 0),
    ],
)
def test_from_offset_to_offset(
    both: Both, plain: str, starting: tuple[int, ...], ending: tuple[int, ...], count: int
) -> None:
    options = {"startingOffsets": by_partition(plain, *starting), "endingOffsets": by_partition(plain, *ending)}
    assert len(both.read(plain, **options)) == count


def test_from_the_earliest_to_the_latest(both: Both, plain: str) -> None:
    assert len(both.read(plain, startingOffsets="earliest", endingOffsets="latest")) == COUNT


@pytest.mark.parametrize(("starting_s", "ending_s"), [(0, 90), (10, 20), (10.5, 20.5), (40, 40), (-5, 3)])
def test_from_time_to_time(both: Both, plain: str, starting_s: float, ending_s: float) -> None:
    """
    Timestamps are for all partitions or for each. A partition without a late enough record is read to its end.
    """
    starting_ms, ending_ms = START_MS + int(starting_s * 1_000), START_MS + int(ending_s * 1_000)
    alike = both.read(plain, startingTimestamp=str(starting_ms), endingTimestamp=str(ending_ms))
    each = both.read(
        plain,
        startingOffsetsByTimestamp=by_partition(plain, *[starting_ms] * PARTITIONS),
        endingOffsetsByTimestamp=by_partition(plain, *[ending_ms] * PARTITIONS),
    )
    assert alike == each
    assert numbers(alike) == [number for number in range(COUNT) if starting_s <= number < ending_s]


def test_from_a_time_that_no_record_has(both: Both, plain: str) -> None:
    """
    The missing record is an error, unless an option allows it.
    """
    late = str(START_MS + 1_000_000)
    both.refused(options={"subscribe": plain, "startingTimestamp": late})
    latest = {"startingTimestamp": late, "startingOffsetsByTimestampStrategy": "latest"}
    assert both.read(plain, **latest) == []


@pytest.mark.parametrize("option", ["minPartitions", "maxRecordsPerPartition"])
@pytest.mark.parametrize("number", ["1", "7", "1000"])
def test_however_many_tasks(both: Both, plain: str, option: str, number: str) -> None:
    assert len(both.read(plain, **{option: number})) == COUNT


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_transactions(both: Both, level: str) -> None:
    """
    Readers see a committed transaction between two aborted ones, and no control records.
    """
    topic = both.topics.make(*numbered(3))
    for first, commits in ((3, False), (9, True), (15, False)):
        both.topics.transact(topic, numbered(6, first), commits=commits)
    rows = both.read(topic, **{"kafka.isolation.level": level})
    committed = [0, 1, 2, *range(9, 15)]
    assert numbers(rows) == (committed if level == "read_committed" else list(range(21)))


def test_records_that_were_deleted(both: Both) -> None:
    """
    Deleted offsets are an error, unless an option allows them.
    """
    topic = both.topics.make(*numbered(30))
    both.topics.delete_records(topic, 0, 4)
    assert len(both.read(topic)) == 26
    gone = {"startingOffsets": by_partition(topic, 0, 0, 0)}
    both.refused(options={"subscribe": topic} | gone)
    assert len(both.read(topic, failOnDataLoss="false", **gone)) == 26


@pytest.mark.parametrize("limit", ["7", "1000"])
def test_streams(both: Both, plain: str, limit: str) -> None:
    """
    Batches are limited, and everything is read in the end.
    """
    asked = {"subscribe": plain, "startingOffsets": "earliest", "maxOffsetsPerTrigger": limit}
    rows = both.ask("stream", options=asked)
    assert numbers(rows) == list(range(COUNT))
    batches = len({row["batch"] for row in rows})
    assert batches >= COUNT / 7 if limit == "7" else batches == 1


def test_a_stream_from_some_offsets_on(both: Both, plain: str) -> None:
    starting = by_partition(plain, 20, 30, -2)
    assert len(both.ask("stream", options={"subscribe": plain, "startingOffsets": starting})) == 40


ROWS = (
    "select if(id % 5 = 0, null, concat('key-', id)) as key, if(id % 7 = 0, null, cast(id as string)) as value, "
    "if(id % 3 = 0, null, array(named_struct('key', 'h', 'value', encode(string(id), 'utf-8')))) as headers "
    "from range(100)"
)


def test_written_rows(both: Both) -> None:
    """
    Keyed records are in the partitions of Kafka's own producer.
    """
    keyed = f"select * from ({ROWS}) where key is not null"
    own, ours = both.topics.make(), both.topics.make()
    for topic, ask in ((own, both.own), (ours, both.ours)):
        options = {"kafka.bootstrap.servers": both.topics.bootstrap, "topic": topic}
        assert ask({"kind": "write", "query": keyed, "options": options}) == {"answer": None}

    def told(topic: str) -> list[Any]:
        columns = "partition", "key", "value", "headers"
        rows = both.read(topic, includeHeaders="true")
        return sorted(([row[name] for name in columns] for row in rows), key=str)

    assert len(told(own)) == 80
    assert told(ours) == told(own)


def test_rows_without_keys_are_written(both: Both) -> None:
    """
    Rows without keys are in any partition, or in the one that they name.
    """
    topic = both.topics.make()
    options = {"kafka.bootstrap.servers": both.topics.bootstrap}
    query = f"select '{topic}' as topic, cast(id % 3 as int) as partition, cast(id as string) as value from range(30)"
    for ask in (both.own, both.ours):
        assert ask({"kind": "write", "query": query, "options": options}) == {"answer": None}
    rows = both.read(topic)
    assert all(int(bytes.fromhex(row["value"])) % 3 == row["partition"] for row in rows)
    assert numbers(rows) == sorted([*range(30), *range(30)])


WRONG: list[dict[str, str]] = [
    {},
    {"subscribe": "plain", "subscribePattern": "p.*"},
    {"subscribe": "there-is-no-such-topic-1"},
    {"assign": "[]"},
    {"subscribe": "plain", "startingOffsets": "latest"},
    {"subscribe": "plain", "endingOffsets": "earliest"},
    {"subscribe": "plain", "startingOffsets": '{"plain": {"0": 0}}'},
    {"subscribe": "plain", "startingOffsets": '{"plain": {"0": -1, "1": 0, "2": 0}}'},
    {"subscribe": "plain", "endingOffsets": '{"plain": {"0": -2, "1": 0, "2": 0}}'},
    {"subscribe": "plain", "startingOffsets": "sometime"},
    {"subscribe": "plain", "startingTimestamp": "yesterday"},
    {"subscribe": "plain", "minPartitions": "0"},
    {"subscribe": "plain", "maxRecordsPerPartition": "-1"},
]


@pytest.mark.parametrize("wrong", WRONG, ids=map(str, WRONG))
def test_what_both_refuse(both: Both, plain: str, wrong: dict[str, str]) -> None:
    options = {name: value.replace("plain", plain) for name, value in wrong.items()}
    both.refused(options=options)
