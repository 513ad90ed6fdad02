"""
Streaming queries of real Spark, of a gateway that runs.
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
    Runs a query until all is read that was there when it began; the rows of each of its batches, and its progress.
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


def test_each_record_comes_once(topics: Topics, drained: Any) -> None:
    """
    A query that is started again goes on behind what it has read.
    """
    topic = topics.make(*numbered(40))
    batches, _ = drained(topic)
    assert batches == [list(range(40))]
    topics.fill(topic, numbered(10, first=40))
    batches, _ = drained(topic)
    assert batches == [list(range(40, 50))]


def test_batches_are_limited(topics: Topics, drained: Any) -> None:
    """
    No batch has more records than it may have; progress tells the offsets, and how far the topic goes.
    """
    topic = topics.make(*numbered(40))
    batches, progress = drained(topic, maxOffsetsPerTrigger="16")
    assert [len(batch) for batch in batches] == [16, 16, 8]
    assert sorted(chain(*batches)) == list(range(40))
    [source] = progress[0].sources
    assert json.loads(source.endOffset) == {topic: {"0": 8, "1": 8}}
    assert json.loads(source.latestOffset) == {topic: {"0": 20, "1": 20}}


def test_a_batch_that_failed_is_read_again(topics: Topics, tmp_path: Path) -> None:
    """
    A batch whose work failed has the same records when it is tried again, though there are more by then.
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
    A topic that has more partitions than before loses nothing of them.
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
    A stream may read from files, as far as the gateway says.
    """
    topic = topics.make(*numbered(10))
    folder = {"kgateway.log.folder": str(topics.kafka.folder / "kgateway-data")}
    assert drained(topic, **folder)[0] == [list(range(10))]
    topics.fill(topic, numbered(3, first=10))
    assert drained(topic, **folder)[0] == [[10, 11, 12]]


def test_checkpoints_of_other_topics(topics: Topics, drained: Any) -> None:
    """
    A checkpoint is of the topics that its query reads.
    """
    one, other = topics.make(*numbered(4)), topics.make(*numbered(4))
    drained(one)
    with refused(f"the checkpoint is of a query that reads {one}, and this one reads {other}"):
        drained(other)


def test_records_that_went_before_they_were_read(topics: Topics, drained: Any) -> None:
    """
    What was deleted while the query was down is lost to it; one that goes on reads what is there.
    """
    topic = topics.make(*numbered(10))
    drained(topic)
    topics.fill(topic, numbered(10, first=10))
    topics.delete_records(topic, 0, 8)
    with refused(f"{topic}-0 begins with offset 8 now, and offsets 5 to 7 were to be read"):
        drained(topic)
    batches, _ = drained(topic, failOnDataLoss="false")
    assert sorted(chain(*batches)) == [11, 13, 15, 16, 17, 18, 19]


def test_a_topic_that_was_made_anew(topics: Topics, drained: Any) -> None:
    """
    A topic of the same name that has less than was read already is told from one that has grown.
    """
    topic = topics.make(*numbered(10))
    drained(topic)
    topics.delete(topic)
    with refused(f"there is no topic or partition {topic}"):
        drained(topic)
    topics.make(*numbered(4), name=topic)
    with refused(f"{topic}-0 ends at offset 2, and this query has read up to 4"):
        drained(topic)
