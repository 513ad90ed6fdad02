"""
Batch queries of real Spark against a running gateway.
"""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kgateway.testing.kafka import Kafka
from tests.spark.gateway import Topics, numbered, numbers, refused

COUNT = 100


@pytest.fixture(scope="module")
def hundred(topics: Topics) -> str:
    """
    A topic of a hundred records in two partitions.
    """
    return topics.make(*numbered(COUNT))


@pytest.fixture
def data(topics: Topics) -> Path:
    return topics.kafka.folder / "kgateway-data"


def test_rows(topics: Topics) -> None:
    """
    A record is a row with the columns of Spark's own Kafka source, in UTC, with nulls where something is missing.
    """
    topic = topics.make(
        {
            "value": b"v",
            "key": b"k",
            "partition": 1,
            "timestamp": 1_700_000_000_123,
            "headers": [("a", b"1"), ("b", None)],
        },
        {"value": None, "key": None, "partition": 1, "timestamp": 1_700_000_000_124},
        {"value": b"", "key": b"", "partition": 1, "timestamp": 1},
    )
    rows = [row.asDict(recursive=True) for row in topics.read(topic, includeHeaders="true").orderBy("offset").collect()]
    same = {"topic": topic, "partition": 1, "timestampType": 0}
    times = [datetime(2023, 11, 14, 22, 13, 20, 123_000), datetime(2023, 11, 14, 22, 13, 20, 124_000)]  # noqa: DTZ001, as Spark gives them
    headers = [{"key": "a", "value": b"1"}, {"key": "b", "value": None}]
    assert [list(row) for row in rows[:1]] == [
        ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
    ]
    local = [row.pop("timestamp") for row in rows]
    assert rows == [
        same | {"key": b"k", "value": b"v", "offset": 0, "headers": headers},
        same | {"key": None, "value": None, "offset": 1, "headers": None},
        same | {"key": b"", "value": b"", "offset": 2, "headers": None},
    ]
    assert [time.astimezone(UTC).replace(tzinfo=None) for time in local[:2]] == times


def test_an_empty_topic_is_an_empty_table(topics: Topics) -> None:
    """
    The topic is read over the protocol.
    """
    assert topics.read(topics.make()).collect() == []


def test_files_have_the_same_rows(topics: Topics, hundred: str, data: Path) -> None:
    """
    The log's files have the rows that the protocol has, to the last record.
    """
    from_files = topics.read(hundred, **{"kgateway.log.folder": str(data)})
    assert from_files.exceptAll(topics.read(hundred)).count() == 0
    assert numbers(from_files.collect()) == list(range(COUNT))


def test_ranges(topics: Topics, hundred: str) -> None:
    """
    Offsets per partition limit what is read.
    """
    starting, ending = json.dumps({hundred: {"0": 10, "1": -2}}), json.dumps({hundred: {"0": 12, "1": 2}})
    assert numbers(topics.read(hundred, startingOffsets=starting, endingOffsets=ending).collect()) == [1, 3, 20, 22]
    assert numbers(topics.read(hundred, startingTimestamp="1090").collect()) == list(range(90, 100))
    by_time = topics.read(hundred, startingTimestamp="1010", endingTimestamp="1020")
    assert numbers(by_time.collect()) == list(range(10, 20))


def test_tasks(topics: Topics, hundred: str) -> None:
    """
    A query has one task per partition, or as many as requested.
    """
    assert topics.read(hundred).rdd.getNumPartitions() == 2
    many = topics.read(hundred, minPartitions="7")
    assert many.rdd.getNumPartitions() >= 7
    assert numbers(many.collect()) == list(range(COUNT))


def test_a_schema_chooses_columns(topics: Topics, hundred: str) -> None:
    """
    A schema with some of the columns, in any order, is a choice of what is read.
    """
    few = topics.read(hundred, schema="offset long, value binary")
    assert few.columns == ["offset", "value"]
    assert numbers(few.collect()) == list(range(COUNT))
    with refused("there is no column price; choose from key, value"):
        topics.read(hundred, schema="price long").collect()
    with refused("the column offset is of type int64, not string"):
        topics.read(hundred, schema="offset string").collect()


def test_patterns_and_partitions(topics: Topics, hundred: str) -> None:
    """
    Topics are named by a pattern, or partition by partition.
    """
    where = {"kafka.bootstrap.servers": topics.kafka.bootstrap}
    reader = topics.spark.read.format("kgateway").options(**where)
    assert numbers(reader.option("subscribePattern", f"{hundred[:-1]}[{hundred[-1]}]").load().collect()) == list(
        range(COUNT)
    )
    reader = topics.spark.read.format("kgateway").options(**where)
    assert numbers(reader.option("assign", json.dumps({hundred: [1]})).load().collect()) == list(range(1, COUNT, 2))


def test_filters_are_forgotten(topics: Topics, hundred: str) -> None:
    """
    A DataFrame gives each query its own rows, whatever filter another query had.
    """
    frame = topics.read(hundred)
    assert frame.where("partition = 1").count() == 50
    assert frame.count() == COUNT
    assert frame.where("partition = 0").union(frame.where("partition = 1")).count() == COUNT


def test_typed_columns(topics: Topics) -> None:
    """
    JSON with a schema is a column of columns.
    """
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    schema = StructType([StructField("id", LongType()), StructField("who", StringType())])
    topic = topics.make(
        *[{"value": json.dumps({"id": number, "who": "me"}).encode()} for number in range(5)], {"value": None}
    )
    given = {"value.format": "json", "value.schema": schema.json()}
    rows = topics.read(topic, **given).select("value.*").where("id is not null").orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(number, "me") for number in range(5)]
    bad = topics.make({"value": b'{"id": "x"}'})
    with refused("the value of a record cannot be decoded"):
        topics.read(bad, **given, mode="FAILFAST").collect()


def test_avro_columns(topics: Topics) -> None:
    """
    Avro with a schema is a column of columns.
    """
    fields = [{"name": "id", "type": "long"}, {"name": "who", "type": ["null", "string"]}]
    schema = {"type": "record", "name": "Order", "fields": fields}
    topic = topics.make({"value": b"\x0e\x02\x04me"}, {"value": b"\x10\x00"}, partitions=1)
    rows = (
        topics.read(topic, **{"value.format": "avro", "value.schema": json.dumps(schema)}).select("value.*").collect()
    )
    assert [tuple(row) for row in rows] == [(7, "me"), (8, None)]


WRONG = [
    ({"startingOffset": "earliest"}, "did you mean startingOffsets"),
    ({"startingOffsets": "latest"}, "startingOffsets of a batch query cannot be latest"),
    ({"subscribe": "nowhere"}, "there is no topic or partition nowhere in the cluster at"),
    (
        {"kafka.bootstrap.servers": "127.0.0.1:1", "kafkaConsumer.pollTimeoutMs": "100"},
        "nothing listens at 127.0.0.1:1",
    ),
    ({"kgateway.log.folder": "/nowhere"}, "/nowhere is not the data folder of a kgateway or of Kafka"),
]


@pytest.mark.parametrize(("given", "said"), WRONG, ids=[said for _, said in WRONG])
def test_mistakes_name_options(topics: Topics, hundred: str, given: dict[str, str], said: str) -> None:
    """
    Errors use the names of options.
    """
    with refused(said):
        topics.read(hundred, **given).collect()


def test_ends_before_starts(topics: Topics, hundred: str) -> None:
    """
    A range that ends before it starts is a mistake.
    """
    starting, ending = json.dumps({hundred: {"0": 10, "1": 0}}), json.dumps({hundred: {"0": 9, "1": 1}})
    with refused(f"startingOffsets of {hundred}-0 is 10, after endingOffsets, which is 9"):
        topics.read(hundred, startingOffsets=starting, endingOffsets=ending).collect()


def test_records_that_were_deleted(topics: Topics) -> None:
    """
    Named offsets that were deleted are lost; a query that accepts losses reads the rest; a query from the start reads
    all that exist.
    """
    topic = topics.make(*numbered(20))
    topics.delete_records(topic, 0, 4)
    starting = json.dumps({topic: {"0": 2, "1": 0}})
    with refused(f"{topic}-0 begins with offset 4 now, but offsets 2 to 3 were requested"):
        topics.read(topic, startingOffsets=starting).collect()
    left = sorted({*range(20)} - {0, 2, 4, 6})
    assert numbers(topics.read(topic, startingOffsets=starting, failOnDataLoss="false").collect()) == left
    assert numbers(topics.read(topic).collect()) == left


def test_a_topic_that_is_deleted_after_planning(topics: Topics) -> None:
    """
    A DataFrame is a snapshot of offsets; using it after its topic was deleted is an error.
    """
    topic = topics.make(*numbered(20))
    frame = topics.read(topic)
    assert frame.count() == 20
    topics.fill(topic, numbered(2, first=20))
    assert frame.count() == 20
    topics.delete(topic)
    with refused(f"there is no {topic}-"):
        frame.count()


def test_a_folder_without_its_gateway(spark: Any, tmp_path: Path) -> None:
    """
    The files of a stopped gateway, and copies of them, are read to their end; the folder of another cluster is refused.
    """
    with Kafka(folder=tmp_path) as kafka:
        topics = Topics(kafka, spark)
        topic = topics.make(*numbered(50))
    folder = str(tmp_path / "kgateway-data")
    reader = spark.read.format("kgateway").option("subscribe", topic)
    assert numbers(reader.option("kgateway.log.folder", folder).load().collect()) == list(range(50))
    shutil.copytree(folder, tmp_path / "copy")
    from_copy = spark.read.format("kgateway").options(
        subscribe=topic, **{"kgateway.log.folder": str(tmp_path / "copy")}
    )
    assert numbers(from_copy.load().collect()) == list(range(50))
    with Kafka() as another:
        there = Topics(another, spark)
        with refused("belongs to cluster"):
            there.read(there.make(*numbered(2)), **{"kgateway.log.folder": folder}).collect()
