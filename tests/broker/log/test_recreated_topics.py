"""
A topic that is deleted and made again has files of its own, whatever the old one was busy with.
"""

from pathlib import Path

import pytest

from kgateway.broker.log.data_folder.checkpoints import SETTLED, SYNCED
from kgateway.broker.log.data_folder.session import CLEAN
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import NewTopic, Topic
from tests.broker.behaviour import appended, batch, offsets, result
from tests.broker.behaviour import fetched as read
from tests.broker.log.log_world import LogWorld
from tests.broker.log.test_registry import slow as slow
from tests.broker.log.test_registry import world as world


def synced_topic(world: LogWorld) -> Topic:
    config = TopicConfig.of({"kgateway.acks.fsync": "true"})
    return result(world.broker.create_topic(NewTopic("t", 1, config)))


def test_a_topic_that_is_deleted_amid_a_sync(world: LogWorld) -> None:
    """
    The sync that was to follow touches no file of the next topic of that name: what that one acknowledges is there
    after a restart.
    """
    partition = world.broker.partition(synced_topic(world).id, 0)
    world.threads.slow = True
    refused = [
        partition.append(batch(), Origin.CLIENT).committed for _ in range(2)
    ]  # the second waits for the next sync
    deleting = world.broker.delete_topic(partition.topic.id)
    while world.threads:
        world.threads.work()
    result(deleting)
    for waiting in refused:
        assert waiting is not None
        waiting.addErrback(lambda _: None)
    world.threads.slow = False
    again = world.broker.partition(synced_topic(world).id, 0)
    for _ in range(3):
        again.append(batch(), Origin.CLIENT)
    assert (world.path / "t-0" / f"{0:020d}.log").stat().st_size > 0
    world.restart()
    assert offsets(read(world.again(), 0)) == [0, 1, 2]


def test_a_topic_that_is_deleted_while_it_is_opened(slow: LogWorld) -> None:
    """
    What was still looked through is not found in the next topic of that name.
    """
    world = slow
    topic = world.broker.view().topics["t"]
    turns = world._options["in_turns"]
    turns.step()
    result(world.broker.delete_topic(topic.id))
    world.topic("t")
    partition = world.again()
    assert partition.log_end == 0
    partition.append(batch(), Origin.CLIENT)
    for _ in range(20):
        if turns.waiting:
            turns.step()
    assert offsets(read(world.again(), 0)) == [0]


def test_a_stop_ends_what_is_being_opened(slow: LogWorld) -> None:
    """
    Nothing is opened in a folder that was given back.
    """
    turns = slow._options["in_turns"]
    turns.step()
    turns.until(slow.broker.stop())
    slow.disk.done.clear()
    for _ in range(20):
        if turns.waiting:
            turns.step()
    assert slow.disk.done == []


def test_long_names_are_put_away_with_the_number_of_the_partition(tmp_path: Path) -> None:
    """
    Each of them gets a name of its own, as long as names may be.
    """
    world = LogWorld(tmp_path)
    name = "x" * 240
    topic = world.topic(name, 3)
    for index in range(3):
        world.broker.partition(topic.id, index).append(batch(), Origin.CLIENT)
    result(world.broker.delete_topic(topic.id))
    world.topic(name, 3)
    for index in range(3):
        assert world.again(name, index).log_end == 0
    result(world.broker.stop())
    assert (tmp_path / CLEAN).exists()


@pytest.mark.parametrize("restarted", [True, False])
def test_what_checkpoints_tell_of_an_earlier_topic(restarted: bool, tmp_path: Path) -> None:
    """
    Before there is a new topic of the name they tell nothing, and that outlasts the machine.
    """
    world = LogWorld(tmp_path)
    partition = world.log_partition()
    for _ in range(3):
        appended(partition, batch())
    result(partition.sync())
    world.tick()
    assert world.told() == ({("t", 0): 3}, {("t", 0): 3})
    result(world.broker.delete_topic(partition.topic.id))
    if restarted:
        world.killed()
    world.disk.done.clear()
    world.topic("t")
    assert world.told() == ({}, {})
    assert (world.disk.count("sync", SYNCED), world.disk.count("sync", SETTLED)) == (1, 1)
    result(world.broker.delete_topic(world.broker.view().topics["t"].id))
    world.disk.done.clear()
    world.topic("other")
    assert world.disk.count("sync", SYNCED) == 0
