"""
Ledgers are stored in the cluster, restored, and rebuilt from the log files with which they do not agree.
"""

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweedmq.layout.topic_paths import RingRange, is_log_file
from kgateway.broker.seaweedmq.leader.ledger_store import LedgerStore
from kgateway.broker.seaweedmq.ledger.ledger import EARLIEST, LATEST
from kgateway.broker.seaweedmq.publishing.publish_stream import PublishStream, encode_publish_request
from kgateway.broker.seaweedmq.topics.broker_rpc import BrokerRpc
from tests.broker import behaviour
from tests.broker.behaviour import result
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.real_reactor import pause, reactor, wait
from tests.broker.seaweedmq.ledger_world import World, filled, rows, topic

AHEAD = "offsets 4 to 7 are in files, but not yet in the stored part of the ledger"
NO_LEDGER = "it has messages but no ledger yet; a gateway creates one when it serves the topic"
_FLUSHED_S = 1.1  # longer than a broker of the tests waits with its files
FORMS = pytest.mark.parametrize("form", ["batch", "record", "plain"])


@pytest.fixture
def world(cluster: DevCluster, seaweed: SeaweedCluster, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(behaviour, "patience", wait)
    return World(cluster, seaweed)


def log_files(filer: Filer, namespace: str, name: str) -> list[str]:
    """
    The log files of a topic of one partition, oldest first.
    """
    folder = f"/topics/{namespace}/{name}"
    for _ in ("generation", "partition"):
        (below,) = [entry for entry in wait(filer.entries(folder)) if entry.is_directory and entry.name[0] != "."]
        folder = f"{folder}/{below.name}"
    return [f"{folder}/{entry.name}" for entry in wait(filer.entries(folder)) if is_log_file(entry.name)]


@FORMS
def test_what_was_published_is_kept_at_the_end(form: str, world: World) -> None:
    """
    Each batch, or each run of records, is a row, and the ledger agrees with the files.
    """
    with world.running() as broker:
        filled(broker, topic(broker, form), 3)
    kept = world.kept()
    assert kept
    assert rows(kept) == ([(0, 0, 2), (2, 1, 2), (4, 2, 2)] if form == "batch" else [(0, 0, 6)])
    assert world.findings() == []


@FORMS
def test_a_ledger_goes_on_after_a_restart(form: str, world: World) -> None:
    """
    A later gateway adds its rows to the stored ones.
    """
    for _ in range(3):
        with world.running() as broker:
            filled(broker, broker.view().topics.get("t") or topic(broker, form), 2)
    kept = world.kept()
    assert kept
    assert kept.end == 12
    assert [kept.at(offset).message_offset for offset in (0, 5, 11)] == ([0, 2, 5] if form == "batch" else [0, 5, 11])  # type: ignore[union-attr]
    assert world.findings() == []


@FORMS
def test_rows_are_kept_while_a_gateway_runs(form: str, world: World) -> None:
    """
    They are stored some seconds after publishing, in case another gateway must take over.
    """
    with world.running() as broker:
        filled(broker, topic(broker, form), 2)
        for _ in range(30):
            pause(1)
            if (kept := world.kept()) and kept.end == 4:
                break
        assert kept
        assert kept.end == 4
        assert world.findings() == []


@FORMS
def test_what_was_not_kept_is_read_from_the_files(form: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A gateway that ends without warning stores nothing; the next one finds the rows in the log.
    """
    with world.running() as broker:
        filled(broker, made := topic(broker, form), 2)
    with world.running() as broker:
        filled(broker, made, 2)
        nothing_is_kept(monkeypatch)
    (found,) = world.findings()
    assert (found.is_fault, found.reason) == (False, AHEAD)
    monkeypatch.undo()
    monkeypatch.setattr(behaviour, "patience", wait)
    with world.running():
        pause(0.5)
    kept = world.kept()
    assert kept
    assert kept.end == 8
    assert world.findings() == []


def test_a_ledger_that_is_gone_is_made_again(world: World, filer: Filer) -> None:
    """
    All files of the partition are read, and the whole ledger is stored.
    """
    with world.running() as broker:
        filled(broker, topic(broker, "batch"), 3)
    wait(filer.delete(f"/topics/{world.namespace}-system", recursive=True))
    assert world.kept() is None
    with world.running():
        pause(0.5)
    kept = world.kept()
    assert kept
    assert rows(kept) == [(0, 0, 2), (2, 1, 2), (4, 2, 2)]
    assert world.findings() == []


def test_a_damaged_message_is_missed_until_its_ledger_is_made_again(world: World, filer: Filer) -> None:
    """
    The next gateway rebuilds it.
    """
    with world.running() as broker:
        filled(broker, topic(broker, "batch"), 3)
    (path,) = log_files(filer, f"{world.namespace}-system", "offset-mappings")
    data = bytearray(wait(filer.files.read(path, 0, 1 << 20)))
    data[len(data) // 2] ^= 1  # in the value of its message
    wait(filer.files.put(path, bytes(data)))
    assert "the CRC is not that of the bytes" in world.findings()[0].reason
    with world.running():
        pause(0.5)
    assert world.findings() == []


@FORMS
def test_files_are_looked_at_without_a_ledger(form: str, world: World, filer: Filer) -> None:
    """
    A deleted file between others leaves a gap, and a truncated one is named; later ones are checked, too.
    """
    with world.running() as broker:
        made = topic(broker, form)
        for _ in range(5):
            filled(broker, made, 1)
            pause(_FLUSHED_S)
    wait(filer.delete(f"/topics/{world.namespace}-system", recursive=True))
    (whole,) = world.findings()
    assert (whole.is_fault, whole.reason) == (False, NO_LEDGER)
    paths = log_files(filer, world.namespace, "t")
    assert len(paths) == 5
    wait(filer.delete(paths[1]))
    data = wait(filer.files.read(paths[3], 0, 1 << 20))
    wait(filer.files.put(paths[3], data[:-5]))
    gone, cut, behind, last = world.findings()
    folder = paths[1].rpartition("/")[0]
    first, each = (1, 1) if form == "batch" else (2, 2)
    assert gone.reason == f"messages {first} to {first + each - 1} of {folder} are in none of its files"
    assert cut.reason.startswith(f"{paths[3]} cannot be read to its end: ")
    assert behind.reason.startswith(f"messages {4 * each - 1} to {4 * each - 1} of")
    assert last == whole
    assert [finding.is_fault for finding in (gone, cut, behind)] == [True] * 3


@FORMS
def test_a_topic_that_has_grown_has_sections(form: str, world: World) -> None:
    """
    Each generation of partitions counts messages from its own start, and offsets continue.
    """
    with world.running() as broker:
        made = topic(broker, form)
        filled(broker, made, 2)
        result(broker.add_partitions(made.id, 2))
        filled(broker, made, 2)
        filled(broker, made, 1, index=1)
    kept = world.kept()
    assert kept
    assert [section.first_row for section in kept.sections] == [0, 2 if form == "batch" else 1]
    first, last = kept.at(EARLIEST), kept.at(LATEST)
    assert first
    assert last
    assert (first.offset, first.message_offset, last.offset) == (0, 0, 7)
    assert (last.message_offset, last.section.part) == (1 if form == "batch" else 3, RingRange(0, 1260))
    other = world.kept(index=1)
    assert other
    assert rows(other) == [(0, 0, 2)]
    assert world.findings() == []


def test_what_others_publish_is_in_the_ledger(world: World, seaweed: SeaweedCluster) -> None:
    """
    The rows are read from the files.
    """
    with world.running() as broker:
        made = topic(broker, "plain")
        filled(broker, made, 1)
    publish_beside(seaweed, world.namespace, 3)
    with world.running():
        pause(0.5)
    kept = world.kept()
    assert kept
    assert kept.end == 5
    assert world.findings() == []


def test_topics_that_are_deleted_are_forgotten(world: World) -> None:
    """
    A later topic of that name has a ledger of its own.
    """
    with world.running() as broker:
        made = topic(broker, "batch")
        filled(broker, made, 3)
        result(broker.delete_topic(made.id))
        made = topic(broker, "batch")
        filled(broker, made, 1)
    kept = world.kept()
    assert kept
    assert (kept.start, kept.end) == (0, 2)
    assert world.findings() == []


def nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Store no rows from now on, as if the gateway were killed.
    """

    async def flush(ledgers: LedgerStore) -> None:
        pass

    monkeypatch.setattr(LedgerStore, "flush", flush)


def publish_beside(seaweed: SeaweedCluster, namespace: str, count: int) -> None:
    """
    Publish this many messages to the topic as another program, which then disconnects.
    """
    rpc, ended = BrokerRpc(seaweed, namespace), Deferred[None]()
    publisher = PublishStream(lambda *_: None, lambda *_: ended.callback(None), reactor)

    async def publish() -> None:
        (assignment,) = await rpc.assignments("t")
        await rpc.publish("t", assignment, publisher, "somebody")
        publisher.send([encode_publish_request(b"key", b"value")] * count)
        publisher.finish()
        await ended

    done(publish())
