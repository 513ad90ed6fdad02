"""
Partitions that others have recreated have ends: files are in a real filer, brokers report simulated counts.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.protos.messaging_pb2 import BrokerPartitionAssignment
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.formats.registry import FORMAT
from kgateway.broker.seaweedmq.layout.topic_file import TopicFile, folders_of
from kgateway.broker.seaweedmq.layout.topic_paths import SECOND_NS, RingRange, log_name, partition_folder, ring_ranges
from kgateway.broker.seaweedmq.topics.generation_ends import FlushedGenerationEnds, Newest
from kgateway.wire.uuids import ZERO
from tests.broker.seaweed.real_reactor import until, wait
from tests.broker.seaweedmq.log_messages import NOW_NS, framed

WHOLE = RingRange(0, 2520)
KEPT = TopicFile(ZERO, (), {FORMAT: "plain"}).grown(5 * SECOND_NS, [WHOLE], [])

Write = Callable[[int, int], None]


class Counting:
    """
    A broker with this message count.
    """

    def __init__(self, next_offset: int) -> None:
        self._next_offset = next_offset
        self.asked: list[tuple[RingRange, int]] = []

    async def assignments(self, name: str) -> Sequence[BrokerPartitionAssignment]:
        return [BrokerPartitionAssignment(leader_broker="host:1")]

    async def next_offset(self, name: str, assignment: BrokerPartitionAssignment) -> int:
        asked = assignment.partition
        self.asked.append((RingRange(asked.range_start, asked.range_stop), asked.unix_time_ns))
        return self._next_offset


@pytest.fixture
def write(filer: Filer, namespace: str) -> Write:
    """
    Write a file of the partition, with the messages from one on, before another.
    """

    def written(start: int, stop: int) -> None:
        path = partition_folder("t", 5 * SECOND_NS, WHOLE, namespace)
        data = framed([LoggedMessage(offset, NOW_NS + offset, b"k", b"v") for offset in range(start, stop)])
        wait(filer.files.put(f"{path}/{log_name(NOW_NS + start * SECOND_NS)}", data))

    return written


def ends(
    seaweed: SeaweedCluster, namespace: str, broker: Counting, parts: Sequence[RingRange]
) -> Deferred[Sequence[int]]:
    found = FlushedGenerationEnds(seaweed, namespace, cast(Any, broker))
    return Deferred.fromCoroutine(found.ends("t", KEPT, Newest(6 * SECOND_NS, parts)))


def test_files_are_waited_for(seaweed: SeaweedCluster, namespace: str, write: Write) -> None:
    """
    They must have all messages that the broker has counted.
    """
    write(0, 2)
    broker = Counting(3)
    asked = ends(seaweed, namespace, broker, ring_ranges(2))
    until(lambda: broker.asked)
    write(2, 3)
    assert wait(asked) == [3]
    assert broker.asked == [(WHOLE, 5 * SECOND_NS)]


def test_brokers_are_not_asked_about_a_range_that_was_made_again(
    seaweed: SeaweedCluster, namespace: str, write: Write
) -> None:
    """
    They would continue the count in the new partition of the range.
    """
    write(0, 2)
    broker = Counting(9)
    assert wait(ends(seaweed, namespace, broker, [WHOLE])) == [2]
    assert broker.asked == []


def test_a_folder_of_two_generations_is_that_of_the_later() -> None:
    """
    It is the last one, and appears once.
    """
    kept = KEPT.grown(6 * SECOND_NS, ring_ranges(2), [3]).grown(6 * SECOND_NS + 1, [WHOLE], [4], [4])
    again = kept.grown(6 * SECOND_NS + 2, ring_ranges(2), [6], [2])
    names = [(folder.path.rpartition("/v")[2], folder.shift) for folder in folders_of(again, "t", 0, "kafka")]
    assert names == [
        ("1970-01-01-00-00-05/0000-2520", 0),
        ("1970-01-01-00-00-06/0000-2520", 0),
        ("1970-01-01-00-00-06/0000-1260", 4),
    ]
