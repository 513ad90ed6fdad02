"""
Topics of the format `record` as SeaweedFS's SQL sees them. WEED_SQL is its program `weed-sql`, which no package has:
the environment `seaweedmq-sql` builds it.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import run
from time import monotonic, sleep
from typing import Any

import pytest

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweedmq.formats.record import headers_text
from kgateway.records.record import Record
from kgateway.testing.kafka import Kafka
from tests.broker.seaweedmq.test_interop_record import ROWS, compacted, shared
from tests.clients.client import Sending
from tests.clients.confluent_client import Confluent

__all__ = ["shared"]  # the fixture

_PROGRAM = os.environ.get("WEED_SQL", "")
_SECONDS = 60
_KEYED = [Record(0, 5, b"anna", b"3 apples"), Record(1, 5, b"carl", b"5 pears")]
_COLUMNS = "key, value, _kafka_offset, _kafka_partition, _kafka_timestamp"
_MANY = [Record(offset, 1_700_000_000_000 + offset, b"k%d" % offset, bytes(offset)) for offset in range(1_000)]

pytestmark = pytest.mark.skipif(not _PROGRAM, reason="WEED_SQL says where the program is")

Row = dict[str, Any]
Query = Callable[[str], list[Row]]


@pytest.fixture(scope="module")
def query(shared: DevCluster) -> Query:
    def rows(sql: str) -> list[Row]:
        options = [f"-master={shared.masters[0]}", "-database", "kafka", "-output", "json", "-query", sql]
        told = run([_PROGRAM, *options], capture_output=True, timeout=_SECONDS, check=True, text=True)
        found: list[Row] = json.loads(told.stdout[told.stdout.index("{") :])["rows"]
        return found

    return rows


@pytest.fixture(scope="module", autouse=True)
def _topics(shared: DevCluster, query: Query) -> Iterator[None]:
    """
    `columns` has these records; `many` has two partitions, each in more than one file.
    """
    with Kafka("--broker", f"seaweedmq:{','.join(shared.masters)}") as kafka:
        client, config = Confluent(kafka.bootstrap), {"seaweedmq.format": "record", "seaweedmq.acks": "flushed"}
        client.create_topic("columns", 1, config)
        client.create_topic("many", 2, config)
        client.send("columns", ROWS, 0, Sending(idempotent=True))
        for records in (_MANY[:500], _MANY[500:]):
            for partition in (0, 1):
                client.send("many", records, partition)
        for form in ("plain", "batch"):
            client.create_topic(form, 1, {"seaweedmq.format": form, "seaweedmq.acks": "flushed"})
            client.send(form, [*_KEYED, Record(2, 5, None, b"without a key")], 0)
        client.create_topic("grown", 1, config)
        client.send("grown", _MANY[:2], 0)
        client.add_partitions("grown", 2)
        client.send("grown", _MANY[:2], 0)
        for partition in (0, 1):
            _until_there(query, f"many WHERE _kafka_partition = {partition}", _MANY)
        _until_there(query, "columns", ROWS)
        yield


def _until_there(query: Query, rest: str, records: list[Record]) -> None:
    """
    Wait until all records are in files. SQL reads the broker's memory, too, and for a moment after a flush it misses
    the first flushed record, or has all of them twice.
    """
    deadline = monotonic() + _SECONDS
    while (found := _offsets(query, rest)) != [record.offset for record in records]:
        assert monotonic() < deadline, found
        sleep(0.5)


def _count(query: Query, topic: str, where: str = "") -> int:
    ((count,),) = (row.values() for row in query(f"SELECT COUNT(*) FROM {topic} {where}"))
    return int(count)


def _offsets(query: Query, rest: str) -> list[int]:
    return [int(row["_kafka_offset"]) for row in query(f"SELECT _kafka_offset FROM {rest}")]


def _seen(record: Record) -> Row:
    """
    The records as SQL returns them: its JSON makes texts of all values, also of bytes that are none, and null is empty.
    """
    texts = ((data or b"").decode(errors="replace") for data in (record.key, record.value))
    names = (name.strip() for name in _COLUMNS.split(","))
    return dict(zip(names, (*texts, str(record.offset), "0", str(record.timestamp)), strict=True))


def test_tables(query: Query) -> None:
    """
    A topic is a table, and its columns have the intended types.
    """
    assert {"Tables_in_kafka": "columns"} in query("SHOW TABLES")
    types = {row["Field"]: row["Type"] for row in query("DESCRIBE columns")}
    assert {types["key"], types["value"]} == {"VARBINARY"}
    assert {types["_kafka_offset"], types["_kafka_timestamp"]} == {"BIGINT"}


def test_rows(query: Query) -> None:
    """
    All records are there, also those without a key or a value.
    """
    assert query(f"SELECT {_COLUMNS} FROM columns") == [_seen(record) for record in ROWS]
    assert _count(query, "columns") == len(ROWS)


def test_nulls(query: Query) -> None:
    """
    Null differs from empty.
    """
    assert _offsets(query, "columns WHERE key IS NULL") == [r.offset for r in ROWS if r.key is None]
    assert _offsets(query, "columns WHERE value IS NULL") == [r.offset for r in ROWS if r.value is None]
    assert _offsets(query, "columns WHERE value IS NOT NULL") == [r.offset for r in ROWS if r.value is not None]


def test_bytes(query: Query) -> None:
    """
    Bytes that are no text keep their length, though the JSON of the answer cannot contain them.
    """
    lengths = [row["LENGTH(value)"] for row in query("SELECT LENGTH(value) FROM columns")]
    assert lengths == ["" if record.value is None else str(len(record.value)) for record in ROWS]


def test_conditions(query: Query) -> None:
    """
    Numbers can be compared.
    """
    assert query(f"SELECT {_COLUMNS} FROM columns WHERE _kafka_offset = 3") == [_seen(ROWS[3])]
    late = [record.offset for record in ROWS if record.offset >= 1 and record.timestamp > ROWS[1].timestamp]
    where = f"_kafka_offset >= 1 AND _kafka_timestamp > {ROWS[1].timestamp}"
    assert _offsets(query, f"columns WHERE {where}") == late
    assert query("SELECT MIN(_kafka_timestamp), MAX(_kafka_offset) FROM columns") == [
        {
            "MIN(_kafka_timestamp)": str(min(record.timestamp for record in ROWS)),
            "MAX(_kafka_offset)": str(ROWS[-1].offset),
        }
    ]


def test_limits(query: Query) -> None:
    """
    A limit returns the first rows, in order.
    """
    assert _offsets(query, "columns LIMIT 2") == [0, 1]
    assert _offsets(query, "columns LIMIT 2 OFFSET 3") == [3, 4]


def test_headers(query: Query) -> None:
    """
    Headers are a text, which is absent if a record has none.
    """
    found = [row["_kafka_headers"] for row in query("SELECT _kafka_headers FROM columns")]
    assert found[0] == '[["h", "1"], ["none", null]]'
    assert found == [headers_text(record.headers) if record.headers else "" for record in ROWS]
    assert _offsets(query, "columns WHERE _kafka_headers IS NULL") == [r.offset for r in ROWS if not r.headers]


def test_many(query: Query) -> None:
    """
    Each record of each partition and file is there once, with its own key, value and time.
    """
    assert _count(query, "many") == 2 * len(_MANY)
    for partition in (0, 1):
        where = f"WHERE _kafka_partition = {partition}"
        assert _count(query, "many", where) == len(_MANY)
        found = query(f"SELECT key, LENGTH(value), _kafka_offset, _kafka_timestamp FROM many {where}")
        assert [tuple(row[name] for name in ("key", "_kafka_offset", "_kafka_timestamp")) for row in found] == [
            ((record.key or b"").decode(), str(record.offset), str(record.timestamp)) for record in _MANY
        ]
        assert [row["LENGTH(value)"] for row in found] == [str(len(record.value or b"")) for record in _MANY]


def test_topics_of_other_formats(query: Query) -> None:
    """
    The messages of `plain` have SeaweedFS's own columns. Those without a key are left out, and rows of others can be
    missing, but they are counted. The messages of `batch` have no key.
    """
    columns = {row["Field"] for row in query("DESCRIBE plain")}
    assert {"_key", "_value"} <= columns
    rows = [{"_key": (record.key or b"").decode(), "_value": (record.value or b"").decode()} for record in _KEYED]
    assert [row for row in query("SELECT _key, _value FROM plain") if row not in rows] == []
    assert _count(query, "plain") == len(_KEYED)
    assert query("SELECT _value FROM batch") == []
    assert _count(query, "batch") == 0


def test_rows_after_a_change_of_the_number_of_partitions(query: Query) -> None:
    """
    SQL finds the records of earlier partitions, too.
    """
    assert sorted(_offsets(query, "grown")) == [0, 1, 2, 3]


def test_parquet(query: Query, shared: DevCluster, tmp_path: Path) -> None:
    """
    The results are the same from Parquet files of the topic, from which SeaweedFS counts.
    """
    compacted(shared, "columns", tmp_path)
    assert query(f"SELECT {_COLUMNS} FROM columns") == [_seen(record) for record in ROWS]
    assert _count(query, "columns") == len(ROWS)
