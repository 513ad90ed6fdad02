"""
Topics of the form `record` as SeaweedFS's SQL sees them. WEED_SQL is its program `weed-sql`, which no package has: it
is built from SeaweedFS's source, as docs/testing.md says.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import run
from time import monotonic, sleep
from typing import Any

import pytest

from kgateway.broker.seaweed.dev_cluster import DevCluster
from kgateway.records.record import Record
from kgateway.testing.kafka import Kafka
from tests.broker.seaweedmq.test_interop_record import ROWS, compacted, shared
from tests.clients.client import Sending
from tests.clients.confluent_client import Confluent

__all__ = ["shared"]  # the fixture

_PROGRAM = os.environ.get("WEED_SQL", "")
_SECONDS = 60
_COLUMNS = "key, value, _kafka_offset, _kafka_partition, _kafka_timestamp"

pytestmark = pytest.mark.skipif(not _PROGRAM, reason="WEED_SQL says where the program is")

Row = dict[str, Any]
Query = Callable[[str], list[Row]]


@pytest.fixture(scope="module")
def query(shared: DevCluster) -> Iterator[Query]:
    """
    What SQL answers, where `columns` is a topic with these records.
    """

    def rows(sql: str) -> list[Row]:
        options = [f"-master={shared.masters[0]}", "-database", "kafka", "-output", "json", "-query", sql]
        told = run([_PROGRAM, *options], capture_output=True, timeout=_SECONDS, check=True, text=True)
        found: list[Row] = json.loads(told.stdout[told.stdout.index("{") :])["rows"]
        return found

    with Kafka("--broker", f"seaweedmq:{','.join(shared.masters)}") as kafka:
        client = Confluent(kafka.bootstrap)
        client.create_topic("columns", 1, {"seaweedmq.format": "record"})
        client.send("columns", ROWS, 0, Sending(idempotent=True))
        deadline = monotonic() + _SECONDS
        while not rows("SELECT key FROM columns"):  # it reads files alone
            assert monotonic() < deadline
            sleep(0.5)
        yield rows


def _seen(record: Record) -> Row:
    """
    In its JSON all are texts, of which bytes that are none are made, and null is empty.
    """
    texts = ((data or b"").decode(errors="replace") for data in (record.key, record.value))
    names = (name.strip() for name in _COLUMNS.split(","))
    return dict(zip(names, (*texts, str(record.offset), "0", str(record.timestamp)), strict=True))


def test_tables(query: Query) -> None:
    """
    A topic is a table, and its columns have the types that they are to have.
    """
    assert {"Tables_in_kafka": "columns"} in query("SHOW TABLES")
    types = {row["Field"]: row["Type"] for row in query("DESCRIBE columns")}
    assert {types["key"], types["value"]} == {"VARBINARY"}
    assert {types["_kafka_offset"], types["_kafka_timestamp"]} == {"BIGINT"}


def test_rows(query: Query) -> None:
    """
    All records are there, those without a key or without a value, too.
    """
    assert query(f"SELECT {_COLUMNS} FROM columns") == [_seen(record) for record in ROWS]
    assert query("SELECT COUNT(*) FROM columns") == [{"COUNT(*)": str(len(ROWS))}]


def test_conditions(query: Query) -> None:
    """
    Numbers can be asked for.
    """
    assert query(f"SELECT {_COLUMNS} FROM columns WHERE _kafka_offset = 3") == [_seen(ROWS[3])]
    assert query("SELECT MIN(_kafka_timestamp), MAX(_kafka_offset) FROM columns") == [
        {
            "MIN(_kafka_timestamp)": str(min(record.timestamp for record in ROWS)),
            "MAX(_kafka_offset)": str(ROWS[-1].offset),
        }
    ]


def test_headers(query: Query) -> None:
    """
    A text.
    """
    assert query("SELECT _kafka_headers FROM columns WHERE _kafka_offset = 0") == [
        {"_kafka_headers": '[["h", "1"], ["none", null]]'}
    ]


def test_parquet(query: Query, shared: DevCluster, tmp_path: Path) -> None:
    """
    The same where SeaweedFS has made Parquet files of the topic, from which it counts.
    """
    compacted(shared, "columns", tmp_path)
    assert query(f"SELECT {_COLUMNS} FROM columns") == [_seen(record) for record in ROWS]
    assert query("SELECT COUNT(*) FROM columns") == [{"COUNT(*)": str(len(ROWS))}]
