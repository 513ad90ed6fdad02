"""
Ledgers that earlier versions have stored in a topic are imported once.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.logger import capturedLogs, formatEvent

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweedmq.leader.ledger_import import read_ledgers
from kgateway.broker.seaweedmq.ledger.ledger import Ledger, Row
from kgateway.cluster.partition import Origin
from kgateway.records.record import Record
from kgateway.topic_partition import PartitionId
from kgateway.wire.uuids import Uuid
from tests.broker import behaviour
from tests.broker.behaviour import result
from tests.broker.seaweed.real_reactor import until, wait
from tests.broker.seaweedmq.gateways import ledger_end
from tests.broker.seaweedmq.ledger_world import World, filled, topic
from tests.broker.seaweedmq.ledgers import Model, models
from tests.broker.seaweedmq.old_ledgers import key, value
from tests.records.values import batch_of

OWNER = PartitionId(Uuid(range(16)), 3)
ROWS = [Row(2 * n, n, n, n, 2) for n in range(6)]


def ledger_of(*values: bytes) -> Ledger:
    """
    The only ledger that these messages describe.
    """
    found = read_ledgers((key(OWNER), each) for each in values)
    assert list(found) == [OWNER]
    return found[OWNER].ledger


@given(models(batched=True), st.data())
def test_parts_are_joined(model: Model, data: st.DataObject) -> None:
    """
    Each section is in parts of its own; a later part may repeat rows of the one before.
    """
    ledger, values, first = model.ledger, list[bytes](), 0
    ends = [section.first_row for section in ledger.sections[1:]]
    for section, end in zip(ledger.sections, [*ends, len(ledger.rows)], strict=True):
        while first < end:
            begin = max(section.first_row, first - data.draw(st.integers(0, 1)))
            first = data.draw(st.integers(first + 1, end))
            rows = list(ledger.rows)[begin:first]
            values.append(value(rows, begin, unix_time_ns=section.unix_time_ns, part=section.part))
    if not values:
        return
    joined = ledger_of(*values)
    assert list(joined.rows) == list(ledger.rows)
    assert joined.sections == ledger.sections


def test_later_rows_replace_earlier_ones() -> None:
    """
    Those that an earlier leader has sent late do not.
    """
    other = [row._replace(message_offset=row.message_offset + 10) for row in ROWS]
    assert list(ledger_of(value(ROWS), value(other[2:4], 2)).rows) == [*ROWS[:2], *other[2:4]]
    assert list(ledger_of(value(ROWS, epoch=2), value(other[2:4], 2, epoch=1)).rows) == ROWS


def test_rows_after_a_gap_are_the_only_ones() -> None:
    """
    The ledger is found to begin too late then, and rebuilt.
    """
    assert list(ledger_of(value(ROWS[:2]), value(ROWS[4:], 4)).rows) == ROWS[4:]


@pytest.mark.parametrize("damaged", [b"", value(ROWS[2:4], 2)[:-1], value(ROWS[2:4], 2, version=2)])
def test_what_cannot_be_read_is_left_out(damaged: bytes) -> None:
    """
    So are messages whose key is not that of a partition.
    """
    assert list(ledger_of(value(ROWS[:2]), damaged).rows) == ROWS[:2]
    assert read_ledgers([(b"key", value(ROWS))]) == {}


def test_what_was_deleted_is_left_out() -> None:
    """
    The last part says where the log begins.
    """
    ledger = ledger_of(value(ROWS), value(ROWS[5:], 5, start=4))
    assert (ledger.start, list(ledger.rows)) == (4, ROWS[2:])


class Imported:
    """
    A topic of three batches, whose ledger is in the old topic. It differs from what the log says in one timestamp.
    """

    def __init__(self, world: World, filer: Filer) -> None:
        self.world, self.filer = world, filer
        with world.running() as broker:
            self.topic = topic(broker, "batch", 2)
            filled(broker, self.topic, 3)
        kept = world.kept()
        assert kept
        row, *others = kept.rows
        self.marked = row._replace(max_timestamp=row.max_timestamp + 7)
        section = kept.sections[0]
        self.publish(value([self.marked, *others], unix_time_ns=section.unix_time_ns, part=section.part))

    def publish(self, data: bytes) -> None:
        """
        Publish this as an earlier version would have.
        """
        namespace, self.world.namespace = self.world.namespace, f"{self.world.namespace}-system"
        with self.world.running() as broker:
            made = topic(broker, "plain", name="offset-mappings")
            batch = batch_of([Record(0, 5, key(PartitionId(self.topic.id, 0)), data)])
            committed = broker.partition(made.id, 0).append(batch, Origin.CLIENT).committed
            assert committed
            result(committed)
        self.world.namespace = namespace

    def delete(self) -> None:
        wait(self.filer.delete(f"/topics/{self.world.namespace}/t/.kgateway/0/ledger"))

    def served(self) -> list[str]:
        """
        Serve the topic until its ledger is complete. Returns the log lines about ledgers.
        """
        with capturedLogs() as logged, self.world.running() as broker:
            until(lambda: ledger_end(broker.partition(self.topic.id, 0)) == 6)
        return [line for line in map(formatEvent, logged) if "ledger" in line]

    @property
    def first_row(self) -> Row:
        kept = self.world.kept()
        assert kept
        return kept.rows.at(0)


@pytest.fixture
def imported(cluster: DevCluster, seaweed: SeaweedCluster, filer: Filer, monkeypatch: pytest.MonkeyPatch) -> Imported:
    monkeypatch.setattr(behaviour, "patience", wait)
    return Imported(World(cluster, seaweed), filer)


def test_the_topic_is_read_once(imported: Imported) -> None:
    """
    The ledger in it becomes a file, and the log says so. Later starts do not read the topic, whatever becomes of the
    file.
    """
    folder = f"/topics/{imported.world.namespace}-system/offset-mappings"
    imported.delete()
    assert imported.served() == [f"imported 1 ledger from {folder}, which is not read again"]
    assert imported.first_row == imported.marked
    assert wait(imported.filer.entry(f"{folder}/.kgateway/imported"))
    imported.delete()
    (line,) = imported.served()
    assert line.startswith("t-0: its ledger ends before offset 0, the log files before 6")
    assert imported.first_row.max_timestamp == imported.marked.max_timestamp - 7
    assert imported.world.findings() == []


def test_saved_ledgers_are_not_replaced(imported: Imported) -> None:
    """
    They are newer.
    """
    (line,) = imported.served()
    assert line.startswith("imported 1 ledger from ")
    assert imported.first_row.max_timestamp == imported.marked.max_timestamp - 7
