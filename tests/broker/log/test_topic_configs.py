"""
Topic configs change while the embedded log runs: durably, before anybody sees them, and one after the other for each
topic.
"""

from collections.abc import Callable
from errno import EIO, ENOSPC
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.log.data_folder.topic_journal import TOPICS
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import Change
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import NewTopic
from kgateway.wire.errors import ErrorCode
from tests.broker.behaviour import appended, batch, fetched, offsets, refusal, result
from tests.broker.config_behaviour import T, setting, without
from tests.broker.log.log_world import LogWorld

EITHER = pytest.mark.parametrize("again", [LogWorld.restart, LogWorld.killed], ids=["stopped", "killed"])


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


def alter(world: LogWorld, change: Change) -> Deferred[None]:
    return world.broker.change_config(T, change)


def config(world: LogWorld) -> TopicConfig:
    return world.broker.view().topics["t"].config


def work(world: LogWorld) -> None:
    """
    Let the threads finish all their jobs.
    """
    while len(world.threads):
        world.threads.work()


@EITHER
def test_they_outlive_the_process(again: Callable[[LogWorld], None], world: LogWorld) -> None:
    """
    The topic has the last configs, and is otherwise unchanged, whether the process was stopped or killed.
    """
    given = TopicConfig.of({"max.message.bytes": "77777", "segment.ms": "5"})
    before = result(world.broker.create_topic(NewTopic("t", 2, given)))
    appended(world.again(), batch(3))
    result(alter(world, setting(retention_ms=77, segment_ms=6)))
    result(alter(world, without("max.message.bytes")))
    for _ in range(2):
        again(world)
        after = world.broker.view().topics["t"]
        assert (after.id, len(after.partitions)) == (before.id, 2)
        assert after.config == TopicConfig.of({"segment.ms": "6", "retention.ms": "77"})
        assert world.again().topic == after
        assert offsets(fetched(world.again(), 0)) == [0]


def test_defaults_may_change_between_processes(world: LogWorld) -> None:
    """
    Configs that are not set have the value of the current gateway.
    """
    world.topic()
    world.restart(topic_defaults={"retention.ms": "77"})
    result(alter(world, setting(retention_ms=88)))
    result(alter(world, without("retention.ms")))
    assert config(world).retention_ms == 77
    world.restart(topic_defaults={"retention.ms": "99"})
    assert config(world).retention_ms == 99


def test_nothing_is_written_for_nothing(world: LogWorld) -> None:
    """
    A change is one line of the journal, and synced; a change without effect is none.
    """
    world.topic()
    size, synced = (world.path / TOPICS).stat().st_size, world.disk.count("sync", TOPICS)
    result(alter(world, lambda before: {**before}))
    assert (world.path / TOPICS).stat().st_size == size
    for _ in range(2):
        result(alter(world, setting(retention_ms=77)))
        assert world.disk.count("sync", TOPICS) == synced + 1
        assert (world.path / TOPICS).read_bytes()[size:].count(b"\n") == 1


@pytest.mark.parametrize(("operation", "code"), [("append", ENOSPC), ("sync", EIO)])
def test_what_the_disk_refuses(operation: str, code: int, world: LogWorld) -> None:
    """
    The topic is unchanged, for everybody and after a restart.
    """
    partition = world.log_partition()
    before = world.broker.view()
    world.disk.failing[f"{operation} {TOPICS}"] = code
    error = refusal(lambda: alter(world, setting(max_message_bytes=10)))
    assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert str(error.message).startswith("topic t cannot be changed: ")
    assert world.broker.view() is before
    assert appended(partition, batch()).base_offset == 0
    world.disk.failing.clear()
    world.killed()
    assert config(world).max_message_bytes == before.topics["t"].config.max_message_bytes
    result(alter(world, setting(max_message_bytes=10)))
    assert config(world).max_message_bytes == 10


def test_they_hold_when_they_are_sure(world: LogWorld) -> None:
    """
    Until then neither the topic nor the answer changes.
    """
    partition = world.log_partition()
    world.threads.slow = True
    made = alter(world, setting(max_message_bytes=10))
    assert not made.called
    assert (config(world).max_message_bytes, partition.topic) == (1048588, world.broker.view().topics["t"])
    assert appended(partition, batch()).base_offset == 0
    world.threads.work()
    assert result(made) is None
    assert (config(world).max_message_bytes, partition.topic) == (10, world.broker.view().topics["t"])
    assert refusal(lambda: partition.append(batch(), Origin.CLIENT)).code is ErrorCode.MESSAGE_TOO_LARGE


def test_the_next_change_waits(world: LogWorld) -> None:
    """
    It sees the result of the one before, refused or not, and the disk has one of them at a time.
    """
    world.topic()
    world.threads.slow = True
    made = [alter(world, lambda before: setting(retention_ms=before.get("retention.ms", "") + "7")(before))]
    made += [alter(world, setting(retention_ms="x"))]
    made += [alter(world, lambda before: setting(retention_ms=before.get("retention.ms", "") + "8")(before))]
    for waiting in (1, 1, 0):
        assert len(world.threads) == waiting
        if waiting:
            world.threads.work()
    assert refusal(lambda: made[1]).code is ErrorCode.INVALID_CONFIG
    assert [result(made[number]) for number in (0, 2)] == [None, None]
    assert config(world).retention_ms == 78


def test_many_that_change_nothing(world: LogWorld) -> None:
    """
    However many wait, they are made one after the other.
    """
    world.topic()
    world.threads.slow = True
    made = [alter(world, setting(retention_ms=77)) for _ in range(2_000)]
    world.threads.work()
    assert all(result(each) is None for each in made)


OTHERS: dict[str, Callable[[LogWorld], Deferred[Any]]] = {
    "grow": lambda world: world.broker.add_partitions(world.broker.view().topics["t"].id, 3),
    "delete": lambda world: world.broker.delete_topic(world.broker.view().topics["t"].id),
}


@pytest.mark.parametrize("other", OTHERS)
def test_while_the_topic_is_changed(other: str, world: LogWorld) -> None:
    """
    It cannot grow or be deleted while its config changes; afterwards it can.
    """
    world.topic()
    world.threads.slow = True
    made = alter(world, setting(retention_ms=77))
    error = refusal(lambda: OTHERS[other](world))
    assert str(error) == "REQUEST_TIMED_OUT: topic t is being changed by another request; try again"
    work(world)
    result(made)
    assert config(world).retention_ms == 77
    world.threads.slow = False
    result(OTHERS[other](world))
    world.killed()
    assert [(topic.config.retention_ms, len(topic.partitions)) for topic in world.broker.view().topics.values()] == (
        [(77, 3)] if other == "grow" else []
    )


@pytest.mark.parametrize("other", OTHERS)
def test_while_the_topic_grows_or_goes(other: str, world: LogWorld) -> None:
    """
    A change at such a moment is refused, and the topic ends in one state.
    """
    before = world.topic()
    world.threads.slow = True
    done = OTHERS[other](world)
    while not done.called:
        error = refusal(lambda: alter(world, setting(retention_ms=77)))
        assert error.code in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        world.threads.work()
    result(done)
    work(world)
    world.threads.slow = False
    for _ in range(2):
        found = world.broker.view().topics
        assert [(topic.config, len(topic.partitions)) for topic in found.values()] == (
            [(before.config, 3)] if other == "grow" else []
        )
        world.killed()


def test_a_partition_that_is_opened_meanwhile(world: LogWorld) -> None:
    """
    It has the topic's current config.
    """
    world.log_partition()
    world.restart()
    world.threads.slow = True
    made = alter(world, setting(max_message_bytes=10))
    partition = world.again()
    work(world)
    result(made)
    assert partition.topic.config.max_message_bytes == 10


def test_a_stop_waits(world: LogWorld) -> None:
    """
    Accepted changes are made; later ones are refused.
    """
    world.topic()
    world.threads.slow = True
    made = [alter(world, setting(retention_ms=value)) for value in (77, 78)]
    stopped = world.broker.stop()
    error = refusal(lambda: alter(world, setting(retention_ms=79)))
    assert str(error) == "KAFKA_STORAGE_ERROR: the gateway is stopping"
    while not stopped.called:
        world.threads.work()
    assert [result(each) for each in made] == [None, None]
    world.threads.slow = False
    world.start()
    assert config(world).retention_ms == 78


def test_the_next_segment(world: LogWorld) -> None:
    """
    The current config decides when a segment begins.
    """
    partition = world.log_partition()
    appended(partition, batch())
    world.now_ms += 10
    appended(partition, batch(timestamp=world.now_ms))
    assert len(list(partition.folder.glob("*.log"))) == 1
    result(alter(world, setting(segment_ms=9)))
    appended(partition, batch(timestamp=world.now_ms))
    assert len(list(partition.folder.glob("*.log"))) == 2


def test_records_must_outlast_the_machine(world: LogWorld) -> None:
    """
    Later records are visible once they are synced, and what was visible before still is.
    """
    partition = world.log_partition()
    appended(partition, batch())
    result(alter(world, setting(kgateway_acks_fsync="true")))
    world.threads.slow = True
    answer = partition.append(batch(), Origin.CLIENT)
    assert answer.committed
    assert not answer.committed.called
    assert (partition.high_watermark, offsets(fetched(partition, 0))) == (1, [0])
    work(world)
    result(answer.committed)
    assert (partition.high_watermark, offsets(fetched(partition, 0))) == (2, [0, 1])


def test_records_need_not_outlast_the_machine(world: LogWorld) -> None:
    """
    Everything is visible at once, and later appends do not wait; earlier ones still wait for their sync.
    """
    partition, woken = world.log_partition(), list[int]()
    result(alter(world, setting(kgateway_acks_fsync="true")))
    world.threads.slow = True
    first = partition.append(batch(), Origin.CLIENT)
    partition.watch(lambda: woken.append(partition.high_watermark))
    made = alter(world, without("kgateway.acks.fsync"))
    world.threads.work(1)  # the journal, not the log
    result(made)
    assert (woken, offsets(fetched(partition, 0))) == ([1], [0])
    assert partition.append(batch(), Origin.CLIENT).committed is None
    assert offsets(fetched(partition, 0)) == [0, 1]
    assert first.committed
    assert not first.committed.called
    work(world)
    result(first.committed)
    assert partition.high_watermark == 2
