"""
The ledger of one partition is brought in step with its files.
"""

from collections.abc import Callable

import pytest

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweedmq.files.partition_files import FilesEnd, PartitionFiles
from kgateway.broker.seaweedmq.ledger.ledger import Ledger
from kgateway.broker.seaweedmq.partitions.partition_ledger import PartitionLedger, StoredLedger
from kgateway.broker.seaweedmq.publishing.in_flight import SentBatch
from kgateway.cluster.partition import EARLIEST_OFFSET
from tests.broker import behaviour
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.real_reactor import pause, reactor, wait
from tests.broker.seaweedmq.ledger_world import World, filled, rows, topic

RIGHT = [(0, 0, 2), (2, 1, 2), (4, 2, 2)]


@pytest.fixture
def world(cluster: DevCluster, seaweed: SeaweedCluster, monkeypatch: pytest.MonkeyPatch) -> World:
    """
    A world whose topic has three batches, in files.
    """
    monkeypatch.setattr(behaviour, "patience", wait)
    world = World(cluster, seaweed)
    with world.running() as broker:
        filled(broker, topic(broker, "batch"), 3)
    return world


class Opened:
    """
    A stored ledger, and what became of it.
    """

    def __init__(self, world: World, change: Callable[[Ledger], Ledger]) -> None:
        outside = world.outside()
        (stored,) = done(outside.topics(["t"]))
        self.history: PartitionFiles = outside.partition_files(stored, 0)
        kept = outside.replayed(stored, 0)
        assert kept
        self.known = StoredLedger(change(kept.ledger), 3)
        self.changes = 0
        form = stored.file.format
        self.ledger = PartitionLedger(self.known, "t-0", self.history, form, reactor, self._changed)

    def _changed(self) -> None:
        self.changes += 1

    def open(self) -> None:
        """
        Open the ledger at the end of the files.
        """
        done(self.history.refresh())
        end: FilesEnd = done(self.history.end(EARLIEST_OFFSET))
        self.ledger.open(0, end)
        pause(0.3)


def longer(ledger: Ledger) -> Ledger:
    ledger.append(6, 3, 0, 2)
    return ledger


def shorter(ledger: Ledger) -> Ledger:
    ledger.cut(1)
    return ledger


def moved(ledger: Ledger) -> Ledger:
    ledger.rows.messages[2] = 1
    return ledger


def shorter_and_moved(ledger: Ledger) -> Ledger:
    ledger.rows.messages[0] = 5
    return shorter(ledger)


def without_front(ledger: Ledger) -> Ledger:
    ledger.drop_before(2)
    return ledger


def empty(ledger: Ledger) -> Ledger:
    ledger.cut(0)
    return ledger


def of_records(ledger: Ledger) -> Ledger:
    ledger.batched = False
    return ledger


def of_another_topic(ledger: Ledger) -> Ledger:
    ledger.sections[0] = ledger.sections[0]._replace(unix_time_ns=1)
    return ledger


@pytest.mark.parametrize(
    "change", [longer, shorter, moved, shorter_and_moved, without_front, empty, of_records, of_another_topic]
)
def test_what_is_not_as_the_files_is_made_so(change: Callable[[Ledger], Ledger], world: World) -> None:
    """
    The ledger is stored again from its first row on, unless the files only continue a right ledger.
    """
    opened = Opened(world, change)
    opened.open()
    assert rows(opened.ledger.ledger) == RIGHT
    assert opened.known.first_unstored == (3 if change is shorter else 0)
    assert opened.changes


def test_a_right_ledger_stays(world: World) -> None:
    """
    No file is read for that.
    """
    opened = Opened(world, lambda ledger: ledger)
    before = opened.ledger.ledger
    opened.open()
    assert opened.ledger.ledger is before
    assert opened.changes == 0


def test_batches_become_rows_when_they_are_in_files(world: World) -> None:
    """
    Times never decrease, and rows are not added twice.
    """
    opened = Opened(world, lambda ledger: ledger)
    opened.open()
    last = opened.ledger.ledger.rows.times[-1]
    later = last // 1_000_000 + 5_000
    for sent in (
        SentBatch(4, 6, 2, 1, later, 1),
        SentBatch(6, 9, 3, 1, later, 7),
        SentBatch(9, 10, 4, 1, later - 90, 8),
    ):
        opened.ledger.add_flushed(sent)
    opened.ledger.grown()
    pause(0.1)
    ledger = opened.ledger.ledger
    assert rows(ledger) == [*RIGHT, (6, 3, 3), (9, 4, 1)]
    assert list(ledger.rows.times[-2:]) == [later * 1_000_000] * 2
    assert list(ledger.rows.maxima[-2:]) == [7, 8]
    assert opened.changes == 1


def test_what_does_not_go_on_waits_for_the_files(world: World) -> None:
    """
    The files are read to their end; what they do not have is a gap.
    """
    opened = Opened(world, shorter)
    done(opened.history.refresh())
    opened.ledger.add_flushed(SentBatch(8, 9, 7, 1, 0, 1))
    opened.ledger.grown()
    pause(0.3)
    assert rows(opened.ledger.ledger) == [*RIGHT, (8, 7, 1)]


def test_a_closed_ledger_reads_nothing(world: World) -> None:
    opened = Opened(world, empty)
    opened.ledger.catch_up()
    opened.ledger.close()
    opened.ledger.add_flushed(SentBatch(0, 1, 0, 1, 0, 1))
    opened.ledger.grown()
    pause(0.2)
    assert rows(opened.ledger.ledger) == []
