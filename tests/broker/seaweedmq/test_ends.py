"""
Where partitions end that others have made anew: in files of a real filer, while brokers say what they have counted.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweed.protos.messaging_pb2 import BrokerPartitionAssignment
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.ends import SettledEnds
from kgateway.broker.seaweedmq.folders import folders_of
from kgateway.broker.seaweedmq.kept_topic import FORMAT, KeptTopic
from kgateway.broker.seaweedmq.layout import SECOND_NS, Range, log_name, partition_folder, ring_ranges
from kgateway.broker.seaweedmq.log_entries import Entry
from kgateway.wire.uuids import ZERO
from tests.broker.seaweed.running import until, wait
from tests.broker.seaweedmq.drawn import NOW_NS, framed

WHOLE = Range(0, 2520)
KEPT = KeptTopic(ZERO, (), {FORMAT: "plain"}).grown(5 * SECOND_NS, [WHOLE], [])

Write = Callable[[int, int], None]


class Counting:
    """
    A broker that has counted so far.
    """

    def __init__(self, next_offset: int) -> None:
        self._next_offset = next_offset
        self.asked: list[tuple[Range, int]] = []

    async def assignments(self, name: str) -> Sequence[BrokerPartitionAssignment]:
        return [BrokerPartitionAssignment(leader_broker="host:1")]

    async def next_offset(self, name: str, assignment: BrokerPartitionAssignment) -> int:
        asked = assignment.partition
        self.asked.append((Range(asked.range_start, asked.range_stop), asked.unix_time_ns))
        return self._next_offset


@pytest.fixture
def write(filer: Filer, namespace: str) -> Write:
    """
    Write a file of the partition that is kept, of the messages from one on, before another.
    """

    def written(start: int, stop: int) -> None:
        path = partition_folder("t", 5 * SECOND_NS, WHOLE, namespace)
        data = framed([Entry(offset, NOW_NS + offset, b"k", b"v") for offset in range(start, stop)])
        wait(filer.files.put(f"{path}/{log_name(NOW_NS + start * SECOND_NS)}", data))

    return written


def ends(seaweed: Seaweed, namespace: str, broker: Counting, later: Sequence[Range]) -> Deferred[Sequence[int]]:
    found = SettledEnds(seaweed, namespace, cast(Any, broker))
    return Deferred.fromCoroutine(found.ends("t", KEPT, later))


def test_files_are_waited_for(seaweed: Seaweed, namespace: str, write: Write) -> None:
    """
    Until they have all that the broker has counted.
    """
    write(0, 2)
    broker = Counting(3)
    asked = ends(seaweed, namespace, broker, ring_ranges(2))
    until(lambda: broker.asked)
    write(2, 3)
    assert wait(asked) == [3]
    assert broker.asked == [(WHOLE, 5 * SECOND_NS)]


def test_brokers_are_not_asked_about_a_range_that_was_made_again(
    seaweed: Seaweed, namespace: str, write: Write
) -> None:
    """
    They would count on for its new partition from what is asked about.
    """
    write(0, 2)
    broker = Counting(9)
    assert wait(ends(seaweed, namespace, broker, [WHOLE])) == [2]
    assert broker.asked == []


def test_a_folder_of_two_generations_is_that_of_the_later() -> None:
    """
    It comes last, and once.
    """
    kept = KEPT.grown(6 * SECOND_NS, ring_ranges(2), [3]).grown(6 * SECOND_NS + 1, [WHOLE], [4], [4])
    again = kept.grown(6 * SECOND_NS + 2, ring_ranges(2), [6], [2])
    names = [(folder.path.rpartition("/v")[2], folder.shift) for folder in folders_of(again, "t", 0, "kafka")]
    assert names == [
        ("1970-01-01-00-00-05/0000-2520", 0),
        ("1970-01-01-00-00-06/0000-2520", 0),
        ("1970-01-01-00-00-06/0000-1260", 4),
    ]
