"""
The ledger of one partition is kept in step with its files, and saved.
"""

import pytest
from twisted.internet.task import Clock

from kgateway.broker.partition.leader_epochs import LeaderEpochs
from kgateway.broker.seaweed.calls.retries import FilerRefused
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweedmq.files.partition_files import FilesEnd, PartitionFiles
from kgateway.broker.seaweedmq.ledger.ledger import Ledger
from kgateway.broker.seaweedmq.ledger.snapshot import Snapshot
from kgateway.broker.seaweedmq.partitions.partition_ledger import PartitionLedger
from kgateway.broker.seaweedmq.publishing.in_flight import SentBatch
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.topic_partition import PartitionId
from tests.broker import behaviour
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.real_reactor import pause, wait
from tests.broker.seaweedmq.ledger_world import World, filled, rows, topic
from tests.broker.seaweedmq.ledgers import shortened

RIGHT = [(0, 0, 2), (2, 1, 2), (4, 2, 2)]
INTERVAL_S = 7.0


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


class SideFiles:
    """
    Side files in memory, which may refuse to be written.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.saved: list[list[tuple[int, int, int]]] = []
        self.refuses = False
        self._ledger = ledger

    async def ledger(self, owner: PartitionId) -> Snapshot:
        return Snapshot(self._ledger, 0)

    async def store_ledger(self, snapshot: Snapshot, owner: PartitionId) -> None:
        if self.refuses:
            raise FilerRefused("/", "no")
        self.saved.append(rows(snapshot.ledger))


class Opened:
    """
    A ledger, open at the end of the files. Its timers go by a clock that stands still.
    """

    def __init__(self, world: World, batches: int = 3) -> None:
        outside = world.outside()
        (stored,) = done(outside.topics(["t"]))
        self.files: PartitionFiles = outside.partition_files(stored, 0)
        kept = world.kept()
        assert kept
        self.side_files, self.clock = SideFiles(shortened(kept, batches)), Clock()
        owner, form = PartitionId(stored.file.id, 0), stored.file.format
        side_files, clock = self.side_files, self.clock
        self.ledger = PartitionLedger(owner, "t-0", 0, self.files, form, side_files, clock, INTERVAL_S)  # type: ignore[arg-type]
        done(self.files.refresh())
        self.end: FilesEnd = done(self.files.end(EARLIEST_OFFSET))
        done(self.ledger.load())

    def open(self) -> None:
        self.ledger.open(0, self.end, LeaderEpochs())
        pause(0.3)

    def take(self, *batches: SentBatch) -> None:
        """
        Note these batches as flushed.
        """
        for sent in batches:
            self.ledger.add_flushed(sent)
        self.ledger.grown()
        self.clock.advance(0)

    @property
    def rows(self) -> list[tuple[int, int, int]]:
        return rows(self.ledger.ledger)


def later(number: int) -> SentBatch:
    """
    A batch of two records after the three that are in files.
    """
    return SentBatch(6 + 2 * number, 8 + 2 * number, 3 + number, 1, 0, 1)


def test_batches_become_rows_when_they_are_in_files(world: World) -> None:
    """
    Times never decrease, and rows are not added twice.
    """
    opened = Opened(world)
    opened.open()
    late = opened.ledger.ledger.rows.times[-1] // 1_000_000 + 5_000
    opened.take(SentBatch(4, 6, 2, 1, late, 1), SentBatch(6, 9, 3, 1, late, 7), SentBatch(9, 10, 4, 1, late - 90, 8))
    ledger = opened.ledger.ledger
    assert opened.rows == [*RIGHT, (6, 3, 3), (9, 4, 1)]
    assert list(ledger.rows.times[-2:]) == [late * 1_000_000] * 2
    assert list(ledger.rows.maxima[-2:]) == [7, 8]


def test_what_does_not_go_on_waits_for_the_files(world: World) -> None:
    """
    The files are read to their end; what they do not have is a gap.
    """
    opened = Opened(world, 1)
    opened.take(SentBatch(8, 9, 7, 1, 0, 1))
    for _ in range(2):
        pause(0.3)
        opened.clock.advance(0)
    assert opened.rows == [*RIGHT, (8, 7, 1)]


def test_a_closed_ledger_neither_reads_nor_saves(world: World) -> None:
    opened = Opened(world, 0)
    opened.ledger.begin_at(0)
    opened.ledger.catch_up()
    opened.ledger.close()
    opened.take(SentBatch(0, 1, 0, 1, 0, 1))
    pause(0.2)
    done(opened.ledger.save())
    assert (opened.rows, opened.side_files.saved) == ([], [])
    assert not opened.clock.getDelayedCalls()


def test_changes_are_saved_together(world: World) -> None:
    """
    The interval begins with the first change. Without another one nothing is saved again.
    """
    opened = Opened(world)
    opened.open()
    opened.take(later(0))
    opened.clock.advance(INTERVAL_S - 0.1)
    opened.take(later(1))
    assert opened.side_files.saved == []
    opened.clock.advance(0.1)
    assert opened.side_files.saved == [[*RIGHT, (6, 3, 2), (8, 4, 2)]]
    opened.clock.advance(10 * INTERVAL_S)
    assert len(opened.side_files.saved) == 1
    opened.take(later(2))
    opened.clock.advance(INTERVAL_S)
    assert len(opened.side_files.saved) == 2


def test_a_deletion_is_saved(world: World) -> None:
    opened = Opened(world)
    opened.open()
    opened.ledger.begin_at(2)
    opened.clock.advance(INTERVAL_S)
    assert opened.side_files.saved == [RIGHT[1:]]


def test_what_is_read_from_files_is_saved(world: World) -> None:
    opened = Opened(world, 1)
    opened.open()
    opened.clock.advance(INTERVAL_S)
    assert opened.side_files.saved == [RIGHT]


def test_a_large_ledger_is_saved_less_often(world: World) -> None:
    """
    On average a quarter of a mebibyte is written in a second, or less.
    """
    opened = Opened(world)
    opened.open()
    count = 4 * 7282  # of 36 bytes
    opened.ledger.ledger.append_batches(range(6, 6 + count), range(3, 3 + count), [0] * count, [1] * count, [0] * count)
    opened.ledger.begin_at(0)
    opened.clock.advance(INTERVAL_S)
    assert opened.side_files.saved == [[*RIGHT, *((6 + n, 3 + n, 1) for n in range(count))]]
    opened.ledger.ledger.append_batches(
        range(6 + count, 6 + 2 * count), range(count), [0] * count, [1] * count, [0] * count
    )
    opened.ledger.begin_at(0)
    opened.clock.advance(INTERVAL_S)
    assert len(opened.side_files.saved) == 1
    opened.clock.advance(2)
    assert len(opened.side_files.saved) == 2


def test_what_could_not_be_saved_is_saved_later(world: World) -> None:
    """
    Also if nothing more changes.
    """
    opened = Opened(world)
    opened.open()
    opened.side_files.refuses = True
    opened.take(later(0))
    opened.clock.advance(INTERVAL_S)
    opened.side_files.refuses = False
    opened.clock.advance(INTERVAL_S)
    assert opened.side_files.saved == [[*RIGHT, (6, 3, 2)]]


def test_a_stop_saves_what_was_noted(world: World) -> None:
    """
    Rows are made of it at once. A ledger that has not changed is not saved.
    """
    opened = Opened(world)
    opened.open()
    done(opened.ledger.save())
    assert opened.side_files.saved == []
    opened.ledger.add_flushed(later(0))
    opened.ledger.grown()
    for _ in range(2):
        done(opened.ledger.save())
        assert opened.side_files.saved == [[*RIGHT, (6, 3, 2)]]
    opened.clock.advance(0)
    assert opened.rows == [*RIGHT, (6, 3, 2)]
