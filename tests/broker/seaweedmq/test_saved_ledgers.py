"""
Ledgers are saved in the cluster, restored, and rebuilt from the log files with which they do not agree.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs, formatEvent

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweedmq.layout.topic_paths import RingRange, is_log_file
from kgateway.broker.seaweedmq.ledger.ledger import EARLIEST, LATEST, Ledger
from kgateway.broker.seaweedmq.ledger.snapshot import Snapshot, decode, encode
from kgateway.broker.seaweedmq.partitions.partition_ledger import PartitionLedger
from kgateway.broker.seaweedmq.publishing.publish_stream import PublishStream, encode_publish_request
from kgateway.broker.seaweedmq.topics.broker_rpc import BrokerRpc
from kgateway.topic_partition import PartitionId
from kgateway.wire.uuids import Uuid
from tests.broker import behaviour
from tests.broker.behaviour import result
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.real_reactor import pause, reactor, until, wait
from tests.broker.seaweedmq.gateways import ledger_end
from tests.broker.seaweedmq.ledger_world import World, filled, rows, topic
from tests.broker.seaweedmq.ledgers import shortened
from tests.broker.seaweedmq.test_external_changes import is_open

AHEAD = "offsets 4 to 7 are in files, but not yet in the saved ledger"
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
    They are saved some time after publishing, in case another gateway must take over.
    """
    with world.running(ledger_interval_ms=100) as broker:
        made = topic(broker, form)
        for end in (4, 8):
            filled(broker, made, 2)
            until(partial(has_kept, world, end))
            assert world.findings() == []


def has_kept(world: World, end: int) -> bool:
    kept = world.kept()
    return kept is not None and kept.end == end


def test_a_ledger_is_saved_no_earlier_than_it_should_be(world: World) -> None:
    """
    Nothing is written before the interval is over, or the gateway is stopped.
    """
    with world.running(ledger_interval_ms=3_600_000) as broker:
        made = topic(broker, "batch")
        filled(broker, made, 2)
        until(lambda: ledger_end(broker.partition(made.id, 0)) == 4)
        pause(0.2)
        assert world.kept() is None
    assert world.kept()


@FORMS
def test_what_was_not_kept_is_read_from_the_files(form: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A gateway that ends without warning saves nothing; the next one finds the rows in the log.
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
    with world.running() as broker:
        until(lambda: ledger_end(broker.partition(made.id, 0)) == 8)
    kept = world.kept()
    assert kept
    assert kept.end == 8
    assert world.findings() == []


Change = Callable[[bytes, PartitionId], bytes | None]


@dataclass
class Damage:
    """
    A change of the file of a ledger with three batches, and what the log and `verify` say of it.
    """

    change: Change
    logged: str
    found: tuple[str, ...]


def changed(change: Callable[[Ledger], Ledger | None], epoch: int | None = None) -> Change:
    """
    A change of the ledger, which is saved again.
    """

    def change_data(data: bytes, owner: PartitionId) -> bytes:
        ledger, known_epoch = decode(data, owner)
        return encode(Snapshot(change(ledger) or ledger, known_epoch if epoch is None else epoch), owner)

    return change_data


def of(owner: PartitionId) -> Change:
    return lambda data, true_owner: encode(decode(data, true_owner), owner)


def longer(ledger: Ledger) -> None:
    ledger.append(6, 3, 0, 2)


def moved(ledger: Ledger) -> None:
    ledger.rows.messages[2] = 1


def without_front(ledger: Ledger) -> None:
    ledger.drop_before(2)


def of_records(ledger: Ledger) -> None:
    ledger.batched = False


def of_another_generation(ledger: Ledger) -> None:
    ledger.sections[0] = ledger.sections[0]._replace(unix_time_ns=1)


def amid_a_batch(ledger: Ledger) -> None:
    ledger.rows.kafka[2], ledger.rows.messages[2], ledger.rows.spans[2] = 5, 9, 1


def short_and_moved(ledger: Ledger) -> Ledger:
    ledger.rows.messages[0] = 5
    return shortened(ledger, 1)


BEHIND = "t-0: its ledger ends before offset {}, the log files before 6; reading them from there"
UNUSABLE = "t-0: the saved ledger cannot be used: "
DAMAGE = {
    "missing": Damage(lambda *_: None, BEHIND.format(0), (NO_LEDGER,)),
    "stale": Damage(changed(lambda each: shortened(each, 1)), BEHIND.format(2), ("offsets 2 to 5 are in files, but",)),
    "empty": Damage(lambda *_: b"", UNUSABLE + "its file is empty", ("its file is empty", NO_LEDGER)),
    "truncated": Damage(
        lambda data, _: data[:-9], UNUSABLE + "its file is truncated or damaged", ("its file is truncated", NO_LEDGER)
    ),
    "bit flipped": Damage(
        lambda data, _: data[:60] + bytes([data[60] ^ 4]) + data[61:],
        UNUSABLE + "its file is truncated or damaged",
        ("its file is truncated or damaged", NO_LEDGER),
    ),
    "future version": Damage(
        lambda data, _: b"\2" + data[1:], UNUSABLE + "its file has the version 2", ("the version 2", NO_LEDGER)
    ),
    "of another topic": Damage(
        of(PartitionId(Uuid(range(16)), 0)),
        UNUSABLE + "its file is that of partition 0 of the topic with the id AAEC",
        ("its file is that of partition 0 of the topic with the id AAEC", NO_LEDGER),
    ),
    "too long": Damage(
        changed(longer),
        UNUSABLE + "it ends with offset 7, but the log ends with 5",
        ("row 3 has offsets 6 to 7, but the log has 0 of them",),
    ),
    "moved": Damage(
        changed(moved),
        UNUSABLE + "it has offset 4 in message 1, but the log has offset 4 in message 2",
        ("row 2 begins with message 1, but", "row 2 has offset 4 in message 1, but the log has it in message 2"),
    ),
    "short and moved": Damage(
        changed(short_and_moved),
        UNUSABLE + "it has offset 0 in message 5, but the log has offset 0 in message 0",
        ("row 0 has offset 0 in message 5", "offsets 2 to 5 are in files, but"),
    ),
    "amid a batch": Damage(
        changed(amid_a_batch),
        UNUSABLE + "it has offset 5, but the log does not",
        (
            "Kafka's offsets 4 to 4 are in no row before row 2",
            "messages 2 to 8 are in no row before row 2",
            "offset 4 is in message 2 of the log, but in no row",
            "row 2 has offsets 5 to 5, but the log has 0 of them",
        ),
    ),
    "without its front": Damage(
        changed(without_front), UNUSABLE + "it begins with offset 2, but the log begins with 0", ()
    ),
    "of records": Damage(
        changed(of_records), UNUSABLE + "its rows are of another format", ("of another format", NO_LEDGER)
    ),
    "of another generation": Damage(
        changed(of_another_generation),
        UNUSABLE + "it has partitions that the topic never had",
        tuple(f"row {number} has offset {2 * number} in another generation" for number in range(3)),
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_named_and_mended(name: str, world: World, filer: Filer) -> None:
    """
    The log and `verify` say what is wrong. The next gateway has the right ledger, and saves it.
    """
    with world.running() as broker:
        filled(broker, made := topic(broker, "batch"), 3)
    damage, path, owner = DAMAGE[name], world.ledger_path(), PartitionId(made.id, 0)
    right = world.kept()
    data = damage.change(wait(filer.files.read(path, 0, 1 << 20)), owner)
    wait(filer.delete(path) if data is None else filer.files.put(path, data))
    reasons = [finding.reason for finding in world.findings()]
    assert len(reasons) == len(damage.found), reasons
    for reason, words in zip(reasons, damage.found, strict=True):
        assert words in reason
    with capturedLogs() as logged, world.running() as broker:
        until(lambda: [line for line in map(formatEvent, logged) if line.startswith(damage.logged)])
        until(lambda: ledger_end(broker.partition(made.id, 0)) == 6)
    unusable = [line for line in map(formatEvent, logged) if line.startswith(UNUSABLE)]
    assert len(unusable) == damage.logged.startswith(UNUSABLE)
    kept = world.kept()
    assert kept
    assert right
    assert rows(kept) == rows(right) == [(0, 0, 2), (2, 1, 2), (4, 2, 2)]
    assert (kept.sections, kept.start) == (right.sections, right.start)
    assert world.findings() == []


def test_a_right_ledger_is_taken_as_it_is(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    No file is read for that, and nothing is saved again.
    """
    with world.running() as broker:
        filled(broker, topic(broker, "batch"), 3)
    monkeypatch.setattr(PartitionLedger, "_follow", lambda _: pytest.fail("it is read"))
    monkeypatch.setattr(PartitionLedger, "_has_changed", lambda _: pytest.fail("it is saved"))
    with capturedLogs() as logged, world.running():
        pause(0.1)
    assert not [line for line in map(formatEvent, logged) if "ledger" in line]
    assert world.findings() == []


def test_a_ledger_of_an_epoch_that_was_over_is_rebuilt(world: World, filer: Filer) -> None:
    """
    A gateway that was suspended has saved it, with rows that may be of messages that nobody sees.
    """
    for _ in range(2):
        with world.running() as broker:
            filled(broker, made := broker.view().topics.get("t") or topic(broker, "batch"), 2)
    path, owner = world.ledger_path(), PartitionId(made.id, 0)
    data = wait(filer.files.read(path, 0, 1 << 20))
    assert decode(data, owner).epoch == 1
    wait(filer.files.put(path, changed(lambda _: None, 0)(data, owner) or b""))
    with capturedLogs() as logged, world.running() as broker:
        until(lambda: ledger_end(broker.partition(made.id, 0)) == 8)
    words = "it was saved in epoch 0, which ended before offset 4, but ends with offset 7"
    assert f"{UNUSABLE}{words}" in [formatEvent(event) for event in logged]
    assert world.findings() == []


def test_a_ledger_that_the_filer_does_not_give_is_rebuilt(world: World, filer: Filer) -> None:
    """
    For example because a volume is lost. The partition is served nevertheless.
    """
    with world.running() as broker:
        filled(broker, made := topic(broker, "batch"), 3)
    entry = wait(filer.entry(world.ledger_path()))
    assert entry
    entry.chunks[0].file_id = "9999,01637037d6"
    entry.chunks[0].ClearField("fid")
    wait(filer.update(world.ledger_path(), entry))
    with capturedLogs() as logged, world.running() as broker:
        until(lambda: is_open(broker, made.id, 0))
        until(lambda: ledger_end(broker.partition(made.id, 0)) == 6)
    assert [line for line in map(formatEvent, logged) if line.startswith(UNUSABLE)]
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
    wait(filer.delete(world.ledger_path()))
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
    Save no rows from now on, as if the gateway were killed.
    """

    async def save(ledger: PartitionLedger) -> None:
        pass

    monkeypatch.setattr(PartitionLedger, "save", save)


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
