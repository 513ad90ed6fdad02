"""
Files of a partition are deleted, on a real cluster.
"""

import json
from contextlib import suppress

import pytest
from twisted.internet.defer import gatherResults

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.filer.content import FileNotFound
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.partitions.partition import SeaweedMQPartition
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import NewTopic
from kgateway.interfaces import IPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import START_MS, appended, batch, fetched, offsets, refusal, result
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.real_reactor import pause, until, wait
from tests.broker.seaweedmq.foreign_topic import ForeignTopic
from tests.broker.seaweedmq.gateways import Start, ledger_end, running
from tests.broker.seaweedmq.test_external_changes import is_open

_FLUSHED_S = 1.1  # longer than a broker of the tests waits with its files


def made(broker: SeaweedMQBroker, form: str = "batch", **configs: str) -> SeaweedMQPartition:
    """
    A partition of a new topic, whose records are committed when they are in files.
    """
    texts = {"seaweedmq.format": form, "seaweedmq.acks": "flushed", **configs}
    topic = result(broker.create_topic(NewTopic("t", 1, TopicConfig.of(texts))))
    return opened(broker.partition(topic.id, 0))


def opened(partition: IPartition) -> SeaweedMQPartition:
    assert isinstance(partition, SeaweedMQPartition)
    return partition


def reopened(broker: SeaweedMQBroker) -> SeaweedMQPartition:
    """
    The partition of the earlier gateway. It may open some time after the start, if its files had to be read again.
    """
    topic = broker.view().topics["t"]
    until(lambda: is_open(broker, topic.id, 0))
    return opened(broker.partition(topic.id, 0))


def written(partition: SeaweedMQPartition, count: int) -> list[int | None]:
    """
    Append batches of three records, each of which gets a file of its own. Returns the first offsets of the files.
    """
    for _ in range(count):
        appended(partition, batch(3))
        pause(_FLUSHED_S)
    return begins(partition)


def begins(partition: SeaweedMQPartition) -> list[int | None]:
    """
    The first offsets of the files that the filer has.
    """
    history = partition._context.files
    done(history.refresh())
    return [done(history.first(file)) for file in history.listed]


def until_begins(partition: SeaweedMQPartition, expected: list[int | None]) -> None:
    """
    Wait until the files have these first offsets. One may be deleted while its beginning is read.
    """

    def is_so() -> bool:
        with suppress(FileNotFound):
            return begins(partition) == expected
        return False

    until(is_so)


def test_files_before_the_log_start_go(start: Start) -> None:
    """
    Files that end before it are deleted; the next gateway begins there, too, and appends after the end.
    """
    with running(start) as broker:
        partition = made(broker)
        files = written(partition, 3)
        assert files == [0, 3, 6]
        assert result(partition.delete_before(4)) == 4
        until_begins(partition, [3, 6])
        assert offsets(fetched(partition, 4)) == [3, 6]
    with running(start) as broker:
        partition = reopened(broker)
        assert (partition.log_start, partition.log_end) == (4, 9)
        assert refusal(lambda: fetched(partition, 3)).code is ErrorCode.OFFSET_OUT_OF_RANGE
        assert offsets(fetched(partition, 4)) == [3]  # out of its file
        assert appended(partition, batch()).base_offset == 9


def test_the_newest_file_stays(start: Start) -> None:
    """
    It remains when all records are deleted, so that brokers continue to count; the next gateway begins after it.
    """
    with running(start) as broker:
        partition = made(broker)
        written(partition, 2)
        assert result(partition.delete_before(6)) == 6
        until_begins(partition, [3])
    with running(start) as broker:
        partition = reopened(broker)
        assert (partition.log_start, partition.log_end) == (6, 6)
        assert appended(partition, batch()).base_offset == 6


def test_the_file_of_the_last_batch_stays(start: Start, cluster: DevCluster, namespace: str) -> None:
    """
    Newer files may only have messages of others, which do not say where Kafka's offsets continue.
    """
    with running(start) as broker:
        partition = made(broker)
        written(partition, 2)
        for _ in range(2):
            ForeignTopic(cluster, name="t", namespace=namespace).publish([Message(b"k", b"theirs")])
            pause(_FLUSHED_S)
        assert begins(partition) == [0, 3, None, None]
        assert result(partition.delete_before(6)) == 6
        until_begins(partition, [3, None, None])
        result(partition.expire())
        assert begins(partition) == [3, None, None]
        assert appended(partition, batch()).base_offset == 6
    with running(start) as broker:
        partition = reopened(broker)
        assert (partition.log_start, partition.log_end) == (6, 7)


def test_files_of_others_go_with_those_around_them(start: Start, cluster: DevCluster, namespace: str) -> None:
    """
    They have no timestamps of Kafka's, and are as old as the files around them.
    """
    with running(start) as broker:
        partition = made(broker, **{"retention.ms": "1000"})
        written(partition, 1)
        ForeignTopic(cluster, name="t", namespace=namespace).publish([Message(b"k", b"theirs")])
        pause(_FLUSHED_S)
        written(partition, 1)
        appended(partition, batch(3, timestamp=START_MS + 1_000))
        until(lambda: ledger_end(partition) == 9)
        assert begins(partition) == [0, 3, 3, 6]
        partition._now_ms = lambda: START_MS + 1_500  # long after others have written
        result(partition.expire())
        assert partition.log_start == 6
        until_begins(partition, [6])


def test_old_files_go_one_by_one(start: Start) -> None:
    """
    If a topic is too large, its first files are deleted, as long as enough is left.
    """
    with running(start) as broker:
        partition = made(broker, **{"retention.bytes": "1"})
        written(partition, 3)
        until(lambda: ledger_end(partition) == 9)
        result(partition.expire())
        assert partition.log_start == 6
        until_begins(partition, [6])


def test_what_was_not_removed_is_removed_by_the_next_round(start: Start, filer: Filer) -> None:
    """
    The log start is stored, and a gateway that is killed then leaves files over.
    """
    with running(start) as broker:
        partition = made(broker, **{"retention.ms": "-1"})
        written(partition, 2)
        wait(filer.write(f"{partition._context.side_files._folder}/log-start-offset", b"3\n"))
    with running(start) as broker:
        partition = reopened(broker)
        assert (partition.log_start, begins(partition)) == (3, [0, 3])
        result(partition.expire())
        assert begins(partition) == [3]


def test_log_starts_that_are_asked_for_at_once(start: Start) -> None:
    """
    The latest is stored, in whatever order they reach the filer.
    """
    with running(start) as broker:
        partition = made(broker)
        appended(partition, batch(9))
        asked = [partition.delete_before(offset) for offset in (7, 2, 8, 5)]
        assert result(gatherResults(asked)) == [7, 7, 8, 8]
    with running(start) as broker:
        assert broker.partition(broker.view().topics["t"].id, 0).log_start == 8


def test_a_damaged_log_start_is_named(start: Start, filer: Filer) -> None:
    """
    The partition is not opened, because deleted records might be shown again; the log and clients get the path of the
    file.
    """
    with running(start) as broker:
        partition = made(broker)
        appended(partition, batch())
        path = f"{partition._context.side_files._folder}/log-start-offset"
        wait(filer.write(path, b"half\n"))
    with running(start) as broker:
        topic = broker.view().topics["t"]
        error = refusal(lambda: broker.partition(topic.id, 0))
        assert error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert path in str(error)
        assert "write the offset with which the log begins" in str(error)
        wait(filer.delete(path))
        until(lambda: _is_open(broker))


def _is_open(broker: SeaweedMQBroker) -> bool:
    try:
        return broker.partition(broker.view().topics["t"].id, 0).log_end == 1
    except KafkaError:
        return False


@pytest.mark.parametrize(("configs", "start_offset"), [({}, 0), ({"retention.ms": "1000"}, 2)])
def test_topics_of_others_keep_all_unless_somebody_says_otherwise(
    configs: dict[str, str], start_offset: int, start: Start, cluster: DevCluster, filer: Filer, namespace: str
) -> None:
    """
    Kafka's defaults do not apply to messages from before Kafka's clients used the topic.
    """
    published = ForeignTopic(cluster, name="t", namespace=namespace)
    published.publish([Message(b"k", b"one"), Message(b"k", b"two")])
    with running(start):
        pass
    path = f"/topics/{namespace}/t/kgateway.json"
    entry = wait(filer.entry(path))
    assert entry
    kept = json.loads(entry.content)
    assert kept["found"] is True
    kept["configs"].update(configs)
    wait(filer.write(path, json.dumps(kept).encode()))
    with running(start) as broker:  # whose clock is years ahead
        partition = broker.partition(broker.view().topics["t"].id, 0)
        assert partition.log_end == 2
        result(partition.expire())
        assert partition.log_start == start_offset


@pytest.mark.parametrize(("form", "goes_on_at"), [("batch", 9), ("record", 9), ("plain", 3)])
def test_offsets_that_were_deleted_are_not_given_again(form: str, goes_on_at: int, start: Start, filer: Filer) -> None:
    """
    If deleted records never got into files, the log continues at its start. Messages of the format plain cannot say so,
    and the log starts where the files end.
    """
    configs = {"message.timestamp.type": "LogAppendTime"} if form == "plain" else {}
    with running(start) as broker:
        partition = made(broker, form, **configs)
        appended(partition, batch(3))
        wait(filer.write(f"{partition._context.side_files._folder}/log-start-offset", b"9\n"))
    for number in range(2):
        with running(start) as broker:
            partition = reopened(broker)
            assert (partition.log_start, partition.log_end) == (goes_on_at, goes_on_at + number)
            assert appended(partition, batch()).base_offset == goes_on_at + number
            assert offsets(fetched(partition, goes_on_at))[0] == goes_on_at


def test_young_records_in_the_file_of_the_log_start_stay(start: Start) -> None:
    """
    Their age is that of their own timestamps, not of their file.
    """
    with running(start) as broker:
        partition = made(broker, **{"retention.ms": "1000"})
        written(partition, 2)
        until(lambda: ledger_end(partition) == 6)
        assert result(partition.delete_before(1)) == 1
        result(partition.expire())  # by a clock that shows their timestamps
        assert partition.log_start == 1
