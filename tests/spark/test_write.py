"""
What real Spark writes, and what a Kafka client reads of it.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from kgateway.client.producer import partition_of
from kgateway.testing.kafka import Kafka
from tests.spark.gateway import PARTITIONS, Topics, numbered, numbers, refused


def consumed(topics: Topics, topic: str, count: int) -> list[Any]:
    """
    The first records of a topic.
    """
    consumer = Consumer({"bootstrap.servers": topics.kafka.bootstrap, "group.id": "none", "check.crcs": True})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    found: list[Any] = []
    while len(found) < count:
        found += [one for one in consumer.consume(count, 10) if not one.error()]
    consumer.close()
    return found


def write(topics: Topics, frame: Any, to: str | None, **given: str) -> None:
    writer = frame.write.format("kgateway").mode("append").option("kafka.bootstrap.servers", topics.kafka.bootstrap)
    writer.options(**({"topic": to} if to else {}) | given).save()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_rows_become_records(topics: Topics, codec: str) -> None:
    """
    A Kafka client reads keys, values and headers, in every compression, and keys are in their partitions.
    """
    topic = topics.make()
    frame = topics.spark.range(40).selectExpr(
        "concat('k', id % 10) as key",
        "cast(id as string) as value",
        "array(named_struct('key', 'h', 'value', cast('x' as binary))) as headers",
    )
    write(topics, frame, topic, **{"kafka.compression.type": codec})
    found = consumed(topics, topic, 40)
    assert sorted(int(one.value()) for one in found) == list(range(40))
    assert {one.headers()[0] for one in found} == {("h", b"x")}
    assert all(one.partition() == partition_of(one.key(), PARTITIONS) for one in found)


def test_columns_name_topic_and_partition(topics: Topics) -> None:
    """
    A row may name its topic and its partition.
    """
    one, other = topics.make(), topics.make()
    rows = [(one, 1, None, b"a"), (other, 0, b"k", None), (other, 1, b"k", b"")]
    frame = topics.spark.createDataFrame(rows, "topic string, partition int, key binary, value binary")
    write(topics, frame, None)
    [first] = consumed(topics, one, 1)
    assert (first.partition(), first.key(), first.value()) == (1, None, b"a")
    found = {record.partition(): record.value() for record in consumed(topics, other, 2)}
    assert found == {0: None, 1: b""}


def test_a_topic_is_copied(topics: Topics) -> None:
    source, copy = topics.make(*numbered(30)), topics.make()
    write(topics, topics.read(source), copy)
    columns = "key", "value", "partition"
    assert topics.read(copy).select(*columns).exceptAll(topics.read(source).select(*columns)).count() == 0
    assert topics.read(copy).count() == 30


WRONG = [
    ({}, "1 as value", "the column value is of type int32: it must be a string or binary"),
    ({}, "'x' as value, 1 as price", "a record has no field for the column price"),
    ({"acks": "all"}, "'x' as value", "there is no option acks: did you mean kafka.acks"),
    ({}, "'x' as value, 7 as partition", "has no partition 7: it has 2"),
]


@pytest.mark.parametrize(("given", "columns", "said"), WRONG, ids=[said for _, _, said in WRONG])
def test_mistakes_name_columns_and_options(topics: Topics, given: dict[str, str], columns: str, said: str) -> None:
    topic = topics.make()
    with refused(said):
        write(topics, topics.spark.range(1).selectExpr(*columns.split(", ")), topic, **given)
    assert topics.read(topic).count() == 0


def test_a_missing_topic_is_created_where_the_server_does_so(topics: Topics) -> None:
    """
    The server decides, as with Spark's own sink.
    """
    row = topics.spark.range(1).selectExpr("'x' as value")
    write(topics, row, "made-by-a-sink")
    assert [record.value for record in topics.read("made-by-a-sink").collect()] == [b"x"]
    said = "there is no topic nowhere, and the server creates none"
    with Kafka("--auto-create-topics", "no") as kafka, refused(said):
        write(Topics(kafka, topics.spark), row, "nowhere")


def test_nothing_is_overwritten(topics: Topics) -> None:
    """
    A topic is only appended to.
    """
    topic = topics.make()
    writer = topics.spark.range(1).selectExpr("'x' as value").write.format("kgateway").mode("overwrite")
    with refused("records cannot be overwritten"):
        writer.options(topic=topic, **{"kafka.bootstrap.servers": topics.kafka.bootstrap}).save()


def test_a_stream_is_written_by_batches(topics: Topics, tmp_path: Path) -> None:
    """
    A stream ends in a topic, batch by batch.
    """
    source, sink = topics.make(*numbered(30)), topics.make()
    stream = topics.stream(source, startingOffsets="earliest", maxOffsetsPerTrigger="10").select("key", "value")
    writer = stream.writeStream.format("kgateway").option("kafka.bootstrap.servers", topics.kafka.bootstrap)
    query = writer.options(topic=sink, checkpointLocation=str(tmp_path)).trigger(availableNow=True).start()
    query.awaitTermination(60)
    assert query.exception() is None
    assert len(query.recentProgress) == 3
    assert numbers(topics.read(sink).collect()) == list(range(30))
    assert json.loads(query.recentProgress[-1].sources[0].endOffset) == {source: {"0": 15, "1": 15}}
