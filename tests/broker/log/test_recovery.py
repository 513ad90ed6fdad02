"""
Recovery after an earlier process: which files are trusted, which batches are scanned, and where the log ends.
"""

from pathlib import Path

import pytest

from kgateway.broker.log.files.file_cache import FileCache
from kgateway.broker.log.recovery import segment_recovery
from kgateway.broker.log.recovery.segment_recovery import KnownGood
from kgateway.broker.log.segments.file_names import file_name
from kgateway.broker.partition.leader_epochs import EPOCH_FILE
from kgateway.broker.partition.producer_snapshot import encode_snapshot
from kgateway.broker.partition.producer_state import ProducerTable
from kgateway.cluster.config import TopicConfig
from kgateway.records.batch import HEADER_SIZE
from tests.broker.behaviour import START_MS, batch, sequenced
from tests.broker.log.fixtures import EITHER, LOG, SIZE, LeftLog, after_machine, after_process, nth
from tests.broker.log.log_brokers import recovered
from tests.broker.log.recording_disk import RecordingDisk


@pytest.fixture
def left(tmp_path: Path) -> LeftLog:
    return LeftLog(tmp_path / "t-0")


@EITHER
def test_segments_alone_are_enough(known_good: KnownGood, left: LeftLog) -> None:
    """
    Indexes, producers and epochs are rebuilt from the segments if no other file is there.
    """
    before = left.opened
    left.settle()
    for path in left.folder.iterdir():
        if path.suffix != ".log":
            path.unlink()
    found = left.open(known_good)
    assert [(s.base_offset, s.next_offset, s.size) for s in found.segment_list.segments] == [
        (0, 5, 5 * SIZE),
        (5, 10, 5 * SIZE),
        (10, 12, 2 * SIZE),
    ]
    assert [s.indexes.offsets.entry(0) for s in found.segment_list.segments[:2]] == [(3, 3 * SIZE)] * 2
    assert found.epochs.encoded() == before.epochs.encoded() == b"0\n3\n0 0\n1 4\n2 8\n"
    assert found.producers == before.producers
    assert (found.snapshot, found.synced, found.faults) == (0, 0, [])
    assert found.epochs_unknown == range(12)
    for suffix in (".index", ".timeindex"):
        assert left.disk.count("sync", suffix) == 2


def test_a_clean_start_reads_no_whole_segment(left: LeftLog) -> None:
    """
    Where all is settled only the batches behind the last entry of the last index are read, of full segments the heads
    of these, and the files beside.
    """
    for number in range(12, 15):
        left.append(sequenced(number))
    found = left.open(KnownGood(15, left.settle(), nothing_missing=True))
    assert (left.disk.read_bytes[nth(0)], left.disk.read_bytes[nth(5)]) == (2 * HEADER_SIZE, 2 * HEADER_SIZE)
    assert SIZE < left.disk.read_bytes[nth(10)] < 4 * SIZE
    assert (found.segment_list.end_offset, found.snapshot, found.synced, found.faults) == (15, 15, 15, [])
    assert found.epochs_unknown == range(15, 15)
    assert [written.base_offset for written in found.producers.producers[7].window] == [10, 11, 12, 13, 14]
    assert found.epochs.encoded() == b"0\n3\n0 0\n1 4\n2 8\n"
    assert [found.segment_list.segments[0].indexes.is_loaded, found.segment_list.segments[-1].indexes.is_loaded] == [
        False,
        True,
    ]


def test_unsettled_batches_are_scanned(left: LeftLog) -> None:
    """
    Settled producers, epochs and indexes are extended by the batches that were not settled.
    """
    settled = left.settle()
    for number in range(12, 17):
        left.append(sequenced(number), epoch=9)
    before = left.opened
    found = left.open(after_process(settled))
    assert found.segment_list.end_offset == 17
    assert found.producers == before.producers
    assert found.epochs.encoded().endswith(b"9 12\n")
    assert left.disk.read_bytes[nth(0)] == left.disk.read_bytes[nth(5)] == 2 * HEADER_SIZE
    assert found.snapshot == settled


def test_newer_snapshots_are_not_believed(left: LeftLog) -> None:
    """
    A snapshot behind what is settled may be from a crash in the middle of settling: it is removed, and an older one
    counts. So it is with one that is damaged; without any, all batches tell, and those between segments are made again.
    """
    settled = left.settle()
    left.append(sequenced(12))
    left.settle()
    assert left.open(after_process(settled)).snapshot == 12
    assert not (left.folder / file_name(13, ".snapshot")).exists()
    left.change(20, file_name(12, ".snapshot"))
    for offset in (10, 5):
        found = left.open(after_process(settled))
        assert found.snapshot == offset
        left.change(20, file_name(offset, ".snapshot"))
    left.change(20, file_name(10, ".snapshot"))  # which was made again
    found = left.open(after_process(settled))
    assert found.snapshot == 0
    assert {path.name for path in left.folder.glob("*.snapshot")} == {
        file_name(5, ".snapshot"),
        file_name(10, ".snapshot"),
    }
    assert len(found.producers.producers[7].window) == 5
    assert left.open(after_process(settled)).snapshot == 10


@EITHER
def test_distrusted_files_do_not_return_after_a_power_cut(known_good: KnownGood, left: LeftLog) -> None:
    """
    The log may be shorter now, and the next batches would have had other producers there.
    """
    left.settle()
    left.open(known_good)
    after = left.disk.done[max(place for place, done in enumerate(left.disk.done) if done[0] == "remove") :]
    synced = after.index(("sync_folder", left.folder.name))
    assert not {"open", "append", "write"} & {operation for operation, _ in after[:synced]}
    assert left.open(KnownGood(12, 12, nothing_missing=True)).snapshot == 10
    assert not left.disk.count("sync_folder")


def test_first_timestamp_is_known_again(left: LeftLog) -> None:
    """
    The age of a segment counts from its first batch, even if only its last ones are scanned.
    """
    left.append(batch(timestamp=START_MS + 1))
    left.append(batch(timestamp=START_MS + 2))
    left.append(batch(timestamp=START_MS + 3))
    found = left.open(after_process(left.settle()))
    assert found.segment_list.segments[-1].first_timestamp == START_MS
    assert found.segment_list.segments[-1].largest() == START_MS + 3


def test_old_snapshots_are_removed(left: LeftLog) -> None:
    """
    Only the snapshots at segment borders and the newest are kept.
    """
    for offset in (3, 7):
        (left.folder / file_name(offset, ".snapshot")).write_bytes(encode_snapshot(ProducerTable()))
    left.open(after_process(left.settle()))
    assert sorted(path.stem.lstrip("0") for path in left.folder.glob("*.snapshot")) == ["10", "12", "5"]


def test_synced_full_segments_are_trusted(left: LeftLog) -> None:
    """
    After a power cut a full segment is not scanned if it was synced, and the one behind it was begun when it was.
    """
    left.settle()
    left.open(after_machine(12))
    assert [left.disk.read_bytes[nth(base)] for base in (0, 5, 10)] == [2 * HEADER_SIZE, 2 * HEADER_SIZE, 2 * SIZE]
    left.settle()
    left.open(after_machine(10))
    assert left.disk.read_bytes[nth(0)] == 2 * HEADER_SIZE
    assert left.disk.read_bytes[nth(5)] >= 5 * SIZE


def test_full_segment_without_indexes_is_scanned(left: LeftLog) -> None:
    """
    If one of its two index files is missing, both are rebuilt.
    """
    settled = left.settle()
    for suffix in (".index", ".timeindex"):
        (left.folder / file_name(0, suffix)).unlink()
        left.open(after_process(settled))
        assert left.disk.read_bytes[nth(0)] >= 5 * SIZE
        assert left.disk.read_bytes[nth(5)] == 2 * HEADER_SIZE
        assert (left.folder / file_name(0, suffix)).stat().st_size > 0


def test_epochs_are_made_up_where_their_file_is_damaged(left: LeftLog) -> None:
    """
    Then all batches are looked at, for nothing else tells of epochs, whatever is known of them otherwise.
    """
    for number in range(12, 15):
        left.append(sequenced(number), epoch=3 + number % 2)
    settled = left.settle()
    for data in (None, b"0\n9\n"):
        (left.folder / EPOCH_FILE).unlink() if data is None else (left.folder / EPOCH_FILE).write_bytes(data)
        found = left.open(after_process(settled))
        assert found.epochs.encoded() == b"0\n5\n0 0\n1 4\n2 8\n3 12\n4 13\n"


@pytest.mark.parametrize("base", [0, 5])
def test_epochs_stay_where_an_index_is_damaged(base: int, left: LeftLog) -> None:
    """
    Where an old segment is looked through again, and those behind it are not, its batches tell nothing of these.
    """
    settled = left.settle()
    left.change(0, file_name(base, ".timeindex"))
    found = left.open(KnownGood(settled, settled, nothing_missing=True))
    assert len(found.faults) == 1
    assert found.epochs.encoded() == b"0\n3\n0 0\n1 4\n2 8\n"


def test_epochs_end_with_the_log(left: LeftLog) -> None:
    """
    An epoch whose batches a power cut has lost is forgotten.
    """
    left.settle()
    (left.folder / nth(10)).unlink()
    left.cut(2 * SIZE + 3, nth(5))
    assert left.open(after_machine(7)).epochs.encoded() == b"0\n2\n0 0\n1 4\n"


def test_a_log_without_files(tmp_path: Path) -> None:
    """
    A new log has an empty segment from offset 0 on.
    """
    found = recovered(FileCache(RecordingDisk(), 9), tmp_path / "t-0")
    assert (found.segment_list.start_offset, found.segment_list.end_offset, found.snapshot) == (0, 0, 0)
    assert [path.name for path in (tmp_path / "t-0").iterdir()] == [LOG]


def test_empty_segments_are_removed(left: LeftLog) -> None:
    """
    A segment that was begun and not written to goes, and the one before it goes on; the first one stays.
    """
    (left.folder / nth(12)).touch()
    found = left.open(after_process(left.settle()))
    assert [segment.base_offset for segment in found.segment_list.segments] == [0, 5, 10]
    assert found.segment_list.segments[-1].next_offset == 12
    for name in left.folder_names:
        (left.folder / name).unlink(missing_ok=True)
    for base in (5, 10):
        (left.folder / nth(base)).touch()
    assert [segment.base_offset for segment in left.open(after_machine()).segment_list.segments] == [5]


def test_unfinished_files_are_removed(left: LeftLog) -> None:
    """
    What a crash has left of a file that was being written goes; other files in the folder stay.
    """
    (left.folder / "leader-epoch-checkpoint.1-2-3.tmp").touch()
    (left.folder / "notes.txt").touch()
    left.open(after_process(left.settle()))
    assert not list(left.folder.glob("*.tmp"))
    assert (left.folder / "notes.txt").exists()


def test_what_is_there_is_synced_where_acks_wait_for_that(left: LeftLog) -> None:
    """
    With kgateway.acks.fsync all that can be read will outlast the machine: segments behind what was synced, and names.
    """
    left.settle()
    found = left.open(KnownGood(11, 12, nothing_missing=True), TopicConfig(acks_fsync=True))
    assert found.synced == 12
    assert [(done, name) for done, name in left.disk.done if "sync" in done or "again" in done] == [
        (f"write again 0 {2 * SIZE}", nth(10)),  # from the last place before the sync that the index knows
        ("sync", nth(10)),
        *[("sync", file_name(10, suffix)) for suffix in (".index", ".timeindex")],
        ("sync", file_name(12, ".snapshot")),
        ("sync", EPOCH_FILE),
        ("sync_folder", left.folder.name),
        ("sync_folder", left.folder.parent.name),
    ]
    assert left.open(KnownGood(10, 12, nothing_missing=True)).synced == 10


@pytest.mark.parametrize(
    ("known_good", "clean"),
    [
        (KnownGood(12, 12, nothing_missing=True, clean=True), True),
        (KnownGood(12, 12, nothing_missing=True), False),
        (KnownGood(11, 12, nothing_missing=True, clean=True), False),
    ],
)
def test_clean_stop_leaves_everything_synced(known_good: KnownGood, clean: bool, left: LeftLog) -> None:
    """
    Everything is synced, files beside the segments too, if the last process synced all there was.
    """
    left.settle()
    assert left.open(known_good).clean is clean


def test_others_go_on_between_the_steps(left: LeftLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    After every so many batches of a segment the generator gives way; after every so many bytes, where there are many,
    what comes next is read in a thread.
    """

    def steps() -> tuple[int, int]:
        taken = [getattr(work, "func", None) for work in left.recovery(after_machine())]
        return taken.count(None), taken.count(segment_recovery._read_all)

    assert steps() == (0, 0)
    with monkeypatch.context() as patch:
        patch.setattr(segment_recovery, "_BATCHES_A_STEP", 2)
        assert steps() == (5, 0)
    monkeypatch.setattr(segment_recovery, "_BYTES_A_STEP", 2 * SIZE)
    monkeypatch.setattr(segment_recovery, "_READ_BEFORE", 2 * SIZE)
    assert steps() == (0, 7)  # two of the segments are read before, and all after every other batch


@pytest.mark.parametrize("count", [8, 9])
def test_the_ends_of_many_segments_are_looked_at_in_a_thread(count: int, left: LeftLog) -> None:
    """
    Of a few that is done at once.
    """
    left.limits = left.limits._replace(segment_bytes=SIZE)
    while len(left.opened.segment_list.segments) < count + 1:
        left.append(sequenced(left.opened.segment_list.end_offset))
    works = [work for work in left.recovery(after_process(left.settle())) if work]
    assert len(works) == (count > 8)


def test_segments_before_the_start_are_left_out(left: LeftLog) -> None:
    """
    What is wholly before the log start is no part of the log, and neither are indexes and files that were let go; they
    are to be removed.
    """
    settled = left.settle()
    (left.folder / nth(5)).rename(left.folder / f"{nth(5)}.deleted")
    found = left.open(after_process(settled).beginning_at(11))
    assert (found.log_start, [segment.base_offset for segment in found.segment_list.segments]) == (11, [10])
    gone = {nth(0), f"{nth(5)}.deleted"} | {
        file_name(base, f".{kind}index") for base in (0, 5) for kind in ("", "time")
    }
    assert {path.name for path in found.left_over} == gone
    (left.folder / nth(0)).unlink()
    found = left.open(after_process(settled).beginning_at(9))
    assert (found.log_start, [segment.base_offset for segment in found.segment_list.segments]) == (10, [10])


@pytest.mark.parametrize("snapshot", [None, b""])
def test_producers_outlast_a_power_cut_during_a_deletion(snapshot: bytes | None, left: LeftLog) -> None:
    """
    A segment that began at the new log start has no sound snapshot yet: the producers are known from the segment before
    it, which is not deleted yet.
    """
    left.settle()
    path = left.folder / file_name(10, ".snapshot")
    path.unlink() if snapshot is None else path.write_bytes(snapshot)
    left.cut(0, nth(10))
    found = left.open(after_machine(10).beginning_at(10))
    assert (found.log_start, found.segment_list.end_offset) == (10, 10)
    assert [batch.base_offset for batch in found.producers.producers[7].window] == [5, 6, 7, 8, 9]
    assert nth(0) in {path.name for path in found.left_over}
