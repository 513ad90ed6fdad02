"""
Streaming queries of real Spark against a running gateway.
"""

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.spark.gateway import Topics, numbered, numbers, refused


@pytest.fixture
def drained(topics: Topics, tmp_path: Path) -> Any:
    """
    Runs a query until it has read what existed at its start; returns the rows of each batch, and the progress.
    """

    def run(topic: str, checkpoint: str = "checkpoint", **given: str) -> tuple[list[list[int]], list[Any]]:
        batches: list[list[int]] = []

        def take(frame: Any, number: int) -> None:
            batches.append(numbers(frame.collect()))

        stream = topics.stream(topic, **{"startingOffsets": "earliest"} | given).writeStream.foreachBatch(take)
        query = stream.option("checkpointLocation", str(tmp_path / checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination(60)
        assert not query.isActive
        if query.exception():
            raise query.exception()
        return batches, query.recentProgress

    return run


def test_each_record_is_read_once(topics: Topics, drained: Any) -> None:
    """
    A restarted query continues behind what it has read.
    """
    topic = topics.make(*numbered(40))
    batches, _ = drained(topic)
    assert batches == [list(range(40))]
    topics.fill(topic, numbered(10, first=40))
    batches, _ = drained(topic)
    assert batches == [list(range(40, 50))]


def test_batches_are_limited(topics: Topics, drained: Any) -> None:
    """
    Batches are limited; progress has the offsets and the topic's end.
    """
    topic = topics.make(*numbered(40))
    batches, progress = drained(topic, maxOffsetsPerTrigger="16")
    assert [len(batch) for batch in batches] == [16, 16, 8]
    assert sorted(chain(*batches)) == list(range(40))
    [source] = progress[0].sources
    assert json.loads(source.endOffset) == {topic: {"0": 8, "1": 8}}
    assert json.loads(source.latestOffset) == {topic: {"0": 20, "1": 20}}


def test_a_failed_batch_is_repeated(topics: Topics, tmp_path: Path) -> None:
    """
    A repeated batch has the same records, even if there are more by then.
    """
    topic = topics.make(*numbered(10))
    seen: list[list[int]] = []

    def take(frame: Any, number: int) -> None:
        seen.append(numbers(frame.collect()))
        if len(seen) == 1:
            raise RuntimeError("the first try fails")

    def run() -> Any:
        writer = topics.stream(topic, startingOffsets="earliest").writeStream.foreachBatch(take)
        query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        try:
            query.awaitTermination(60)
        except Exception as error:
            return error
        return None

    assert "the first try fails" in str(run())
    topics.fill(topic, numbered(5, first=10))
    assert run() is None
    assert seen == [list(range(10)), list(range(10)), list(range(10, 15))]


def test_new_partitions_are_read_from_their_start(topics: Topics, drained: Any) -> None:
    """
    New partitions lose no records.
    """
    from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]  # its stubs do not pass it on

    topic = topics.make(*numbered(4))
    drained(topic)
    topics.admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
    topics.fill(topic, [{"value": b"7", "partition": 2}])
    batches, _ = drained(topic)
    assert batches == [[7]]


def test_files_are_followed(topics: Topics, drained: Any) -> None:
    """
    A stream may read files, as far as the gateway says.
    """
    topic = topics.make(*numbered(10))
    folder = {"kgateway.log.folder": str(topics.kafka.folder / "kgateway-data")}
    assert drained(topic, **folder)[0] == [list(range(10))]
    topics.fill(topic, numbered(3, first=10))
    assert drained(topic, **folder)[0] == [[10, 11, 12]]


def test_checkpoints_of_other_topics(topics: Topics, drained: Any) -> None:
    """
    A checkpoint of other topics is refused.
    """
    one, other = topics.make(*numbered(4)), topics.make(*numbered(4))
    drained(one)
    with refused(f"the checkpoint belongs to a query that reads {one}, but this one reads {other}"):
        drained(other)


def test_records_deleted_before_they_were_read(topics: Topics, drained: Any) -> None:
    """
    Records deleted while the query was down are lost to it; a query that accepts losses reads the rest.
    """
    topic = topics.make(*numbered(10))
    drained(topic)
    topics.fill(topic, numbered(10, first=10))
    topics.delete_records(topic, 0, 8)
    with refused(f"{topic}-0 begins with offset 8 now, but offsets 5 to 7 were requested"):
        drained(topic)
    batches, _ = drained(topic, failOnDataLoss="false")
    assert sorted(chain(*batches)) == [11, 13, 15, 16, 17, 18, 19]


def test_a_recreated_topic(topics: Topics, drained: Any) -> None:
    """
    A topic that was replaced by a shorter one is noticed.
    """
    topic = topics.make(*numbered(10))
    drained(topic)
    topics.delete(topic)
    with refused(f"there is no topic or partition {topic}"):
        drained(topic)
    topics.make(*numbered(4), name=topic)
    with refused(f"{topic}-0 ends at offset 2, but this query has read up to 4"):
        drained(topic)
