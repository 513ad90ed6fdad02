"""
Streams that real Spark writes in transactions, as a Kafka client reads them.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row
from pyspark.sql.pandas.types import to_arrow_schema

from kgateway.client.producer import partition_of
from kgateway.spark.errors import WrongOption
from kgateway.spark.options import ONCE, Options
from kgateway.spark.writers import transactional as sink_module
from kgateway.spark.writers.partition_rows import partitioned
from kgateway.spark.writers.writer import topic_writer_of
from pyspark_kgateway import exactly_once
from tests.spark.gateway import PARTITIONS, Topics, numbered, numbers

Batch = Callable[[Any, int], None]


def consumed(topics: Topics, topic: str, isolation: str = "read_committed") -> list[Any]:
    settings = {"group.id": "none", "isolation.level": isolation, "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": topics.kafka.bootstrap, **settings})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    found, ended = [], 0
    while ended < PARTITIONS:
        one = consumer.poll(10)
        assert one is not None, "nothing came, and the end of a partition neither"
        if one.error():
            ended += 1
        else:
            found.append(one)
    consumer.close()
    return found


def told(topics: Topics, topic: str, isolation: str = "read_committed") -> list[int]:
    return sorted(int(one.value()) for one in consumed(topics, topic, isolation))


class Stream:
    """
    A query that copies a topic into another, in batches of ten.
    """

    def __init__(self, topics: Topics, folder: Path, count: int = 30) -> None:
        self.topics, self.folder = topics, folder
        self.source, self.sink = topics.make(*numbered(count)), topics.make()

    def options(self, **more: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.topics.kafka.bootstrap, "topic": self.sink} | more

    def run(self, publish: Batch, checkpoint: str = "checkpoint", columns: str = "key, value") -> Any:
        """
        Run until everything is read; returns the query, or its failure.
        """
        frame = self.topics.stream(self.source, startingOffsets="earliest", maxOffsetsPerTrigger="10")
        writer = frame.selectExpr(*columns.split(", ")).writeStream.foreachBatch(publish)
        query = writer.option("checkpointLocation", str(self.folder / checkpoint)).trigger(availableNow=True).start()
        with suppress(StreamingQueryException):
            query.awaitTermination(120)
        assert not query.isActive
        return query

    def forget(self, number: int) -> None:
        """
        Make Spark forget that this batch is done, as if it had died.
        """
        for name in (str(number), f".{number}.crc"):
            (self.folder / "checkpoint" / "commits" / name).unlink()


@pytest.fixture
def stream(topics: Topics, tmp_path: Path) -> Stream:
    return Stream(topics, tmp_path)


def guard(topics: Topics, query: Any, topic: str) -> int:
    group = ConsumerGroupTopicPartitions(f"kgateway-spark-{query.id}", [TopicPartition(topic, 0)])
    [found] = topics.admin.list_consumer_group_offsets([group]).values()
    return int(found.result().topic_partitions[0].offset)


def test_records_are_there_once(topics: Topics, stream: Stream) -> None:
    """
    Rows become records in the partitions of their keys, and the group has the number of the next batch.
    """
    query = stream.run(exactly_once(**stream.options()))
    found = consumed(topics, stream.sink)
    assert sorted(int(one.value()) for one in found) == list(range(30))
    assert all(one.partition() == partition_of(one.key(), PARTITIONS) for one in found)
    assert guard(topics, query, stream.sink) == 3


def test_a_repeated_batch(topics: Topics, stream: Stream) -> None:
    """
    A batch that was committed before Spark died is not written again.
    """
    stream.run(exactly_once(**stream.options()))
    stream.forget(2)
    topics.fill(stream.source, numbered(5, first=30))
    stream.run(exactly_once(**stream.options()))
    assert told(topics, stream.sink) == told(topics, stream.sink, "read_uncommitted") == list(range(35))


class Failing:
    """
    Fails once, between writing a batch and committing it.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs = 0
        self._run = sink_module._run
        monkeypatch.setattr(sink_module, "_run", self.run)

    def run(self, *given: Any) -> Any:
        self.runs += 1
        found = self._run(*given)
        if self.runs == 2:
            raise RuntimeError("the driver stumbles")
        return found


def test_an_uncommitted_batch_is_written_again(topics: Topics, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Readers of committed records do not see the first attempt.
    """
    failing = Failing(monkeypatch)
    assert "the driver stumbles" in str(stream.run(exactly_once(**stream.options())).exception())
    assert told(topics, stream.sink) == list(range(10))
    stream.run(exactly_once(**stream.options()))
    assert failing.runs == 4
    assert told(topics, stream.sink) == list(range(30))
    assert len(told(topics, stream.sink, "read_uncommitted")) == 40


def test_an_earlier_driver_is_fenced(topics: Topics, stream: Stream) -> None:
    begun = list[Producer]()
    publish = exactly_once(**stream.options())

    def late(frame: Any, number: int) -> None:
        if not begun:
            name = f"kgateway-spark-{frame.sparkSession.sparkContext.getLocalProperty('sql.streaming.queryId')}"
            producer = Producer({"bootstrap.servers": topics.kafka.bootstrap, "transactional.id": name})
            producer.init_transactions(30)
            producer.begin_transaction()
            producer.produce(stream.sink, b"-1")
            producer.flush(30)
            begun.append(producer)
        publish(frame, number)

    query = stream.run(late)
    assert query.exception() is None
    with pytest.raises(Exception, match=r"_FENCED|fenced"):
        begun[0].commit_transaction(30)
    assert told(topics, stream.sink) == list(range(30))


def test_a_checkpoint_older_than_the_topic(topics: Topics, stream: Stream) -> None:
    """
    Batches before the last committed one are refused: nobody knows which records they have.
    """
    stream.run(exactly_once(**stream.options()))
    stream.forget(2)
    stream.forget(1)
    (stream.folder / "checkpoint" / "offsets" / "2").unlink()
    (stream.folder / "checkpoint" / "offsets" / ".2.crc").unlink()
    failure = str(stream.run(exactly_once(**stream.options())).exception())
    assert (
        "batch 1 is repeated after batch 2 was written: the checkpoint is older than the content of the topics"
        in failure
    )
    assert told(topics, stream.sink) == list(range(30))


def test_repeated_tasks(topics: Topics, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A repeated task makes the whole batch start over, a limited number of times.
    """
    tries = list[int]()
    run = sink_module._run

    def lossy(*given: Any) -> Any:
        if not tries:  # no task was the first, and nothing is open
            tries.append(0)
            return [Row(records=0, problem="begun before")]
        found = run(*given)
        tries.append(len(found))
        return [*found, type(found[0])(records=0, problem="begun before")] if len(tries) < 4 else found

    monkeypatch.setattr(sink_module, "_run", lossy)
    assert stream.run(exactly_once(**stream.options())).exception() is None
    assert len(tries) == 6
    assert told(topics, stream.sink) == list(range(30))
    tries[:] = []
    topics.fill(stream.source, numbered(5, first=30))
    monkeypatch.setattr(sink_module, "_TRIES", 2)
    failure = str(stream.run(exactly_once(**stream.options())).exception())
    assert "batch 3 could not be written: in each of 2 attempts Spark restarted a task" in failure
    assert told(topics, stream.sink) == list(range(30))


def test_rows_without_a_key(topics: Topics, stream: Stream) -> None:
    """
    Rows of a task without a key share a partition: the same in a repeated run, another in the next batch.
    """
    options = Options(stream.options(), ONCE)
    frame = topics.spark.range(20, numPartitions=2).selectExpr("cast(id as string) as value")
    writing = topic_writer_of(options, to_arrow_schema(frame.schema, timezone="UTC"))

    def placed(number: int) -> list[tuple[int, int]]:
        return sorted((int(row.value), row.partition) for row in partitioned(frame, number, writing, 2).collect())

    first = placed(0)
    assert [where for _, where in first] == [0] * 10 + [1] * 10
    assert placed(0) == first
    assert placed(1) == [(value, 1 - where) for value, where in first]


def test_rows_name_topics_and_partitions(topics: Topics, stream: Stream) -> None:
    """
    Rows may name topics and partitions; the batch number is kept in the guard topic.
    """
    other = topics.make()
    publish = exactly_once(**{"kafka.bootstrap.servers": topics.kafka.bootstrap, "guardTopic": other})
    to = f"if(number == 0, '{stream.sink}', '{other}') as topic"
    headers = "array(named_struct('key', 'h', 'value', cast('x' as binary))) as headers"

    def with_more(frame: Any, number: int) -> None:
        publish(frame.selectExpr("value", "partition", to.replace("number", str(number)), headers), number)

    query = stream.run(with_more, columns="value, partition")
    assert query.exception() is None
    found = [(topic, one) for topic in (stream.sink, other) for one in consumed(topics, topic)]
    assert sorted(int(one.value()) for _, one in found) == list(range(30))
    assert all(one.partition() == int(one.value()) % PARTITIONS for _, one in found)
    assert all(one.headers() == [("h", b"x")] for _, one in found)
    assert {topic for topic, one in found if int(one.value()) >= 10} == {other}
    assert guard(topics, query, other) == 3


WRONG = [
    ({"kafka.acks": "1"}, "kafka.acks is not an option of exactly_once, but of a writer"),
    ({"kafka.transactional.id": "x"}, "it is derived from the checkpoint of the query"),
    ({"topic": ""}, "name one for the number of the last batch with guardTopic"),
    ({"kafka.transaction.timeout.ms": "soon"}, "kafka.transaction.timeout.ms is 'soon'"),
]


@pytest.mark.parametrize(("given", "said"), WRONG, ids=[said for _, said in WRONG])
def test_invalid_options(given: dict[str, str], said: str) -> None:
    """
    Wrong options are refused before anything runs.
    """
    with pytest.raises(WrongOption, match=said):
        exactly_once(**{"kafka.bootstrap.servers": "localhost:9092", "topic": "t"} | given)


MISTAKES = [
    ({}, "value, 7 as partition", "has no partition 7: it has 2"),
    ({}, "value, 1 as price", "a record has no field for the column price"),
    ({"kafka.transaction.timeout.ms": "999999999"}, "value", "INVALID_TRANSACTION_TIMEOUT"),
]


@pytest.mark.parametrize(("given", "columns", "said"), MISTAKES, ids=[said for *_, said in MISTAKES])
def test_mistakes_fail_the_query(stream: Stream, given: dict[str, str], columns: str, said: str) -> None:
    """
    The query fails with the reason, and nothing is in the topic.
    """
    query = stream.run(exactly_once(**stream.options(**given)), columns=columns)
    assert said in str(query.exception())
    assert told(stream.topics, stream.sink) == []


def test_a_missing_topic_is_created_where_the_server_does_so(topics: Topics, stream: Stream) -> None:
    query = stream.run(exactly_once(**stream.options(topic="made-once")))
    assert query.exception() is None
    rows = topics.read("made-once", **{"kafka.isolation.level": "read_committed"}).collect()
    assert numbers(rows) == [*range(30)]


def test_outside_of_a_stream(topics: Topics) -> None:
    """
    Without a query there is no batch number.
    """
    publish = exactly_once(**{"kafka.bootstrap.servers": topics.kafka.bootstrap, "topic": topics.make()})
    with pytest.raises(WrongOption, match="it was called outside of a query"):
        publish(topics.spark.range(1).selectExpr("'x' as value"), 0)
