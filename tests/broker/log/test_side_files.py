"""
What a log knows of transactions survives the process, and a power loss as far as the records do.
"""

import os
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.log.checkpointer import INTERVAL_S
from kgateway.broker.log.files.local_disk import LocalDisk
from kgateway.broker.log.inspection.findings import Finding, Survey
from kgateway.broker.log.inspection.partition_check import PartitionCheck
from kgateway.broker.log.partition.partition import LogPartition
from kgateway.broker.log.segments.batch_scan import scan
from kgateway.broker.log.segments.file_names import file_name
from kgateway.broker.partition.producer_snapshot import SNAPSHOT
from kgateway.broker.partition.producer_state import EXPIRY_MS
from kgateway.broker.partition.transactions import (
    ABORTED_INDEX,
    AbortedTransaction,
    AbortedTransactions,
    checked_aborted,
    encode_aborted,
)
from kgateway.cluster.partition import Isolation, Origin
from kgateway.records.batch import Batch, BatchHeader, batches
from kgateway.records.record import Record
from kgateway.wire.errors import ErrorCode
from tests.broker.behaviour import START_MS, batch, fetched, refusal, result
from tests.broker.log.compaction.test_crashes import Life, cut_off_everywhere, small_segments
from tests.broker.log.compaction.topic_model import check_whole
from tests.broker.log.log_world import LogWorld
from tests.broker.transaction_model import PRODUCERS, Ledger, committed, in_transaction, marked, transact
from tests.records.values import batch_of

__all__ = ["small_segments"]

pytestmark = pytest.mark.usefixtures("power_goes")

ONE, TWO, *_ = PRODUCERS
EITHER = pytest.mark.parametrize("again", [LogWorld.restart, LogWorld.killed], ids=["stopped", "killed"])
_CRASH_SEEDS = range(int(os.environ.get("COMPACTION_SEEDS", "1")))
_HISTORIES = range(20 * len(_CRASH_SEEDS))


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


def aborted(partition: LogPartition) -> AbortedTransactions:
    return partition.producers().transactions.aborted


def known(partition: LogPartition) -> tuple[object, object]:
    """
    What is remembered, without expiry.
    """
    table = partition.producers()
    return deepcopy(table.producers), deepcopy(table.transactions)


def told(partition: LogPartition) -> dict[str, list[AbortedTransaction] | None]:
    """
    The contents of the files of aborted transactions.
    """
    files = sorted(partition.folder.glob(f"*{ABORTED_INDEX}"))
    return {path.name: checked_aborted(path.read_bytes(), int(path.stem)) for path in files}


def headers(partition: LogPartition) -> list[BatchHeader]:
    """
    The headers of all batches, including those without records.
    """
    files, segments = partition.segment_list.files, partition.segment_list.segments
    found = (one for part in segments for one in scan(files.get(part.path).read, 0, part.size, part.base_offset))
    return [one.header for one in found if isinstance(one, Batch)]


def filled(world: LogWorld, **config: Any) -> LogPartition:
    """
    Segments with open, committed and aborted transactions.
    """
    partition = world.log_partition(**{"segment_bytes": 300} | config)
    for number in range(6):
        transact(partition, in_transaction(ONE, b"a", sequence=number), marked(ONE, commits=number % 2 == 0))
    transact(partition, in_transaction(TWO, b"b"), batch())
    assert len(partition.segment_list.segments) > 3
    return partition


@EITHER
@pytest.mark.parametrize("settles", [True, False])
def test_they_outlive_the_process(again: Any, settles: bool, world: LogWorld) -> None:
    """
    Open ones, with their first offsets, and aborted ones are restored from the files beside the segments as far as
    these reach, and else from the batches.
    """
    partition = filled(world)
    if settles:
        world.tick()
    transact(partition, in_transaction(ONE, b"c", sequence=6), marked(ONE, commits=False), batch())
    before = known(partition)
    again(world)
    partition = world.again()
    assert known(partition) == before
    assert partition.producers().transactions.open == {TWO: 12}
    assert (partition.last_stable, len(aborted(partition))) == (12, 4)
    assert [record.offset for record in committed(partition, 0)] == [0, 4, 8]
    transact(partition, marked(TWO, commits=True))
    assert [record.offset for record in committed(partition, 9)] == [12, 13, 16]


def test_files_are_kafkas(world: LogWorld) -> None:
    """
    Each segment with markers of aborted transactions has one: producer, first and last offset, and the last stable
    offset then.
    """
    partition = filled(world)
    world.tick()
    files = told(partition)
    entries = [entry for found in files.values() for entry in found or ()]
    assert entries == [AbortedTransaction(ONE, offset, offset + 1, offset + 2) for offset in (2, 6, 10)]
    for name, found in files.items():
        segment = next(one for one in partition.segment_list.segments if one.path.stem == Path(name).stem)
        assert all(segment.base_offset <= one.last_offset < segment.next_offset for one in found or ())
    first = partition.folder / next(iter(files))
    numbers = [(0, 2), (ONE, 8), (2, 8), (3, 8), (4, 8)]
    assert first.read_bytes() == b"".join(number.to_bytes(size, "big") for number, size in numbers)


@pytest.mark.parametrize(
    "wrong", [b"nonsense" * 17, encode_aborted([AbortedTransaction(ONE, 9, 1, 2)])], ids=["bytes", "order"]
)
@EITHER
def test_damaged_files_are_made_again(again: Any, wrong: bytes, world: LogWorld) -> None:
    """
    They are rebuilt from the batches.
    """
    partition = filled(world)
    world.tick()
    before = known(partition)
    for name in told(partition):
        (partition.folder / name).write_bytes(wrong)
    again(world)
    partition = world.again()
    assert known(partition) == before
    world.restart()
    assert known(world.again()) == before
    assert None not in told(world.again()).values()


def test_files_that_tell_more_than_is_settled(world: LogWorld) -> None:
    """
    An index entry whose snapshot was not written before the process died is found once.
    """
    partition = filled(world)
    world.tick()
    last = partition.segment_list.segments[-1]
    transact(partition, marked(TWO, commits=False))
    entries = aborted(partition).ended_between(last.base_offset, last.next_offset)
    assert [entry.producer_id for entry in entries][-1] == TWO
    last.path.with_suffix(ABORTED_INDEX).write_bytes(encode_aborted(entries))
    before = known(partition)
    world.killed()
    assert known(world.again()) == before


def test_what_was_cut_off_is_forgotten(world: LogWorld) -> None:
    """
    If a log ends before a known marker, as after a power loss, the transaction is open again.
    """
    partition = filled(world)
    transact(partition, marked(TWO, commits=False))
    marker = partition.log_end - 1
    world.kill()
    last = partition.segment_list.segments[-1]
    with last.path.open("r+b") as file:
        file.truncate(last.size - len(marked(TWO, commits=False).data))
    world.boot = "another"
    world.start()
    partition = world.again()
    assert partition.producers().transactions.open == {TWO: 12}
    assert [one.last_offset for one in aborted(partition).reaching(0, 1 << 40)] == [3, 7, 11]
    transact(partition, batch())
    world.restart()
    assert [one.last_offset for one in aborted(world.again()).reaching(0, 1 << 40)] == [3, 7, 11]
    assert marker >= 14


def test_they_go_with_their_segments(world: LogWorld) -> None:
    """
    Deleting a segment deletes its transactions, in memory and on disk.
    """
    partition = filled(world, file_delete_delay_ms=0)
    world.tick()
    before = set(told(partition))
    assert result(partition.delete_before(partition.log_end)) == partition.log_end
    world.tick()
    assert len(aborted(partition)) == 0
    assert before
    assert not before & set(told(partition))
    world.restart()
    assert len(aborted(world.again())) == 0


@pytest.mark.parametrize("commits", [True, False])
def test_markers_that_are_not_safe(commits: bool, world: LogWorld) -> None:
    """
    Their effect is visible once they are committed, even if others ended meanwhile.
    """
    partition = world.log_partition(acks_fsync=True)
    transact(partition, batch(), in_transaction(ONE, b"a"))
    world.threads.slow = True
    for sent in (marked(ONE, commits), in_transaction(TWO, b"b"), marked(TWO, commits)):
        partition.append(sent, Origin.COORDINATOR)
        assert (partition.high_watermark, partition.last_stable) == (2, 1)
    while len(world.threads):
        world.threads.work()
    assert (partition.high_watermark, partition.last_stable) == (5, 5)


def test_a_transaction_behind_what_is_safe(world: LogWorld) -> None:
    """
    The last stable offset never exceeds the high watermark.
    """
    partition = world.log_partition(acks_fsync=True)
    transact(partition, batch())
    world.threads.slow = True
    partition.append(batch(), Origin.COORDINATOR)
    partition.append(in_transaction(ONE, b"a"), Origin.COORDINATOR)
    assert (partition.high_watermark, partition.last_stable) == (1, 1)
    while len(world.threads):
        world.threads.work()
    assert (partition.high_watermark, partition.last_stable) == (3, 2)


def test_ended_transactions_need_no_memory(world: LogWorld) -> None:
    """
    This does not depend on anybody asking for the last stable offset, in this process or the next.
    """
    partition = filled(world)
    assert not partition.producers().transactions._uncommitted
    world.killed()
    assert not world.again().producers().transactions._uncommitted


def test_log_start_moves_while_a_reader_waits(world: LogWorld) -> None:
    """
    Nobody gets records that are no longer known to be aborted.
    """
    filled(world)
    world.tick()
    world.restart()
    partition = world.again()
    world.threads.slow = True
    waiting = partition.read(0, 1 << 20, Isolation.READ_COMMITTED, True)
    assert isinstance(waiting, Deferred)
    world.threads.slow = False
    result(partition.delete_before(9))
    world.threads.slow = True
    while not waiting.called:
        world.threads.work()
    assert refusal(lambda: waiting).code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_damage_before_the_last_stable_offset(world: LogWorld) -> None:
    """
    Readers of committed records get the valid ones around it, as all readers do.
    """
    partition = world.log_partition()
    transact(partition, *(batch() for _ in range(6)), in_transaction(ONE, b"a"), batch())
    world.tick()
    world.kill()
    with partition.segment_list.segments[-1].path.open("r+b") as file:
        file.seek(3 * len(batch().data) + 8)
        file.write(b"\x7f\0\0\0")  # the length of a batch
    world.start()
    partition = world.again()
    assert partition.last_stable == 6
    for offset, good in ((0, range(3)), (4, range(4, 6))):
        read = fetched(partition, offset, isolation=Isolation.READ_COMMITTED)
        assert [one.header.base_offset for data in read.batches for one in batches(data)] == list(good)


def test_checking(world: LogWorld) -> None:
    """
    `kgateway log check` names files with impossible content, and those without a segment.
    """
    partition = filled(world)
    world.restart()
    folder, first = partition.folder, next(iter(told(partition)))

    def found() -> list[str]:
        survey = Survey(LocalDisk(), is_ours=True, was_clean=True, in_use=False)
        steps = PartitionCheck(survey, folder).steps()
        return [finding.path.name for finding in steps if isinstance(finding, Finding) and finding.is_fault]

    assert found() == []
    data = (folder / first).read_bytes()
    for wrong in (data[:20], encode_aborted([AbortedTransaction(ONE, 900, 901, 902)])):
        (folder / first).write_bytes(wrong)
        assert found() == [first]
    (folder / first).write_bytes(data)
    stranger = file_name(1, ABORTED_INDEX)
    (folder / stranger).write_bytes(b"")
    assert found() == [stranger]


class Transacting(Life):
    """
    Expected records with transactions, under a cleaner.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.ledger = Ledger(self.chance)

    def write(self) -> None:
        self.now_ms += 10
        self.ledger.write(self.partition)

    def check(self) -> None:
        """
        Check that committed readers get the last record of each key at least, and nothing that was aborted.
        """
        partition = self.partition
        start = partition.log_start
        read, expected = committed(partition, start), [one for one in self.ledger.committed if one.offset >= start]
        assert [one for one in read if one not in expected] == []
        latest = {record.key: record for record in expected}
        kept = {record.key: record for record in read}
        assert kept == latest
        border = partition.segment_list.segments[-1].base_offset
        assert [one for one in read if one.offset >= border] == [one for one in expected if one.offset >= border]
        check_whole(partition)
        self.check_files(partition)

    def check_files(self, partition: LogPartition) -> None:
        """
        Check that the file of each full segment has what is known of its markers.
        """
        for segment in partition.segment_list.segments[:-1]:
            path = segment.path.with_suffix(ABORTED_INDEX)
            is_there = path.name in self.disk.names(partition.folder)
            entries = checked_aborted(self.disk.read(path), segment.base_offset) if is_there else []
            assert entries is not None
            start = max(segment.base_offset, partition.log_start)
            expected = aborted(partition).ended_between(start, segment.next_offset)
            assert [one for one in entries if one.last_offset >= start] == expected


def written_to(seed: int) -> Transacting:
    life = Transacting(seed)
    for _ in range(40):
        life.write()
    return life


@pytest.mark.parametrize("seed", range(8))
def test_compaction(seed: int) -> None:
    """
    Whatever was open, committed or aborted, and however often it is compacted, consumers of committed records get the
    last of each key, now and in the next process.
    """
    life = Transacting(seed)
    for turn in range(6):
        for _ in range(20):
            life.write()
        life.check()
        life.compact()
        life.check()
        if turn % 2:
            life.again(power=turn == 3)
            life.check()


@pytest.mark.parametrize("seed", _HISTORIES)
def test_histories(seed: int) -> None:
    """
    Records are deleted, processes die, power is lost, and days pass in which producers expire. Decided transactions
    stay decided, open ones stay open, and their producers continue.
    """
    life, days_go_by = Transacting(seed), bool(seed % 2)
    chance, ledger = life.chance, life.ledger
    ledger.has_stray_markers = not days_go_by
    for _ in range(12):
        for _ in range(chance.randint(1, 25)):
            life.write()
        life.compact()
        if chance.random() < 0.3:
            result(life.partition.delete_before(chance.randint(life.partition.log_start, life.partition.last_stable)))
        if days_go_by and chance.random() < 0.3:
            life.now_ms += EXPIRY_MS + 1
        for _ in range(chance.randint(0, 3)):
            life.compact()
        if chance.random() < 0.6:
            life.again(power=not days_go_by)
        started = (max(one.first_offset, life.partition.log_start) for one in ledger.open.values())
        assert life.partition.last_stable == min([life.partition.log_end, *started])
        life.check()


@pytest.mark.parametrize("commits", [True, False])
def test_compacted_markers_end_what_a_file_has_open(commits: bool) -> None:
    """
    The snapshot of the producers may be older than the marker, of which only the header is left.
    """
    life = Transacting(0)
    partition, filling = life.partition, batch_of([Record(0, START_MS, b"a", bytes(200))])
    transact(partition, in_transaction(ONE, b"a"))
    life.clock.advance(INTERVAL_S)
    path = partition.folder / file_name(partition.log_end, SNAPSHOT)
    data = life.disk.read(path)
    transact(partition, marked(ONE, commits, epoch=1))
    for _ in range(3):
        transact(partition, *[filling] * 4)
        life.now_ms += partition.topic.config.delete_retention_ms
        life.compact()
    assert [header.records_count for header in headers(partition) if header.is_control] == [0]
    for name in life.disk.names(partition.folder):
        if name.endswith(SNAPSHOT):
            life.disk.remove(partition.folder / name)
    life.disk.write(path, data, sync=True)
    life.again(power=False)
    assert not life.partition.producers().transactions.any_undecided
    assert len(aborted(life.partition)) == 0


@pytest.mark.parametrize("power", [False, True], ids=["kill", "power"])
@pytest.mark.parametrize("seed", _CRASH_SEEDS)
def test_crash_at_every_operation(seed: int, power: bool) -> None:
    """
    Wherever compaction and settling are cut off, committed readers see no difference.
    """
    for _ in cut_off_everywhere(written_to, seed, power=power):
        pass  # each is compared by itself
