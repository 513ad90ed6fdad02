"""
What a process finds of the log that another has left: what is believed, what is looked through, and where the log ends.
"""

from pathlib import Path

import pytest

from kgateway.broker import producer_snapshots
from kgateway.broker.epochs import EPOCH_FILE
from kgateway.broker.log import looking_through
from kgateway.broker.log.open_files import OpenFiles
from kgateway.broker.log.segment import file_name
from kgateway.broker.log.trust import Trust
from kgateway.broker.producers import ProducerTable
from kgateway.cluster.config import TopicConfig
from kgateway.records.batch import HEADER_SIZE
from tests.broker.behaviour import START_MS, batch, sequenced
from tests.broker.log.left import EITHER, LOG, SIZE, Left, after_machine, after_process, nth
from tests.broker.log.making import recovered
from tests.broker.log.noted_disk import NotedDisk


@pytest.fixture
def left(tmp_path: Path) -> Left:
    return Left(tmp_path / "t-0")


@EITHER
def test_all_is_made_up_from_the_batches(trust: Trust, left: Left) -> None:
    """
    Without any file beside them the segments tell of all: indexes, producers and epochs.
    """
    before = left.opened
    left.settle()
    for path in left.folder.iterdir():
        if path.suffix != ".log":
            path.unlink()
    found = left.open(trust)
    assert [(s.base_offset, s.next_offset, s.size) for s in found.log.segments] == [
        (0, 5, 5 * SIZE),
        (5, 10, 5 * SIZE),
        (10, 12, 2 * SIZE),
    ]
    assert [s.indexes.offsets.entry(0) for s in found.log.segments[:2]] == [(3, 3 * SIZE)] * 2
    assert found.epochs.written() == before.epochs.written() == b"0\n3\n0 0\n1 4\n2 8\n"
    assert found.producers == before.producers
    assert (found.snapshot, found.synced, found.faults) == (0, 0, [])
    assert found.looked_through == range(12)
    for suffix in (".index", ".timeindex"):
        assert left.disk.count("sync", suffix) == 2


def test_a_clean_start_reads_no_whole_segment(left: Left) -> None:
    """
    Where all is settled only the batches behind the last entry of the last index are read, of full segments the heads
    of these, and the files beside.
    """
    for number in range(12, 15):
        left.append(sequenced(number))
    found = left.open(Trust(15, left.settle(), process_only=True))
    assert (left.disk.read_bytes[nth(0)], left.disk.read_bytes[nth(5)]) == (2 * HEADER_SIZE, 2 * HEADER_SIZE)
    assert SIZE < left.disk.read_bytes[nth(10)] < 4 * SIZE
    assert (found.log.end_offset, found.snapshot, found.synced, found.faults) == (15, 15, 15, [])
    assert found.looked_through == range(15, 15)
    assert [written.base_offset for written in found.producers.producers[7].window] == [10, 11, 12, 13, 14]
    assert found.epochs.written() == b"0\n3\n0 0\n1 4\n2 8\n"
    assert [found.log.segments[0].indexes.is_loaded, found.log.segments[-1].indexes.is_loaded] == [False, True]


def test_what_came_after_the_last_settling_is_looked_through(left: Left) -> None:
    """
    Producers, epochs and indexes that were settled go on with the batches that were not.
    """
    settled = left.settle()
    for number in range(12, 17):
        left.append(sequenced(number), epoch=9)
    before = left.opened
    found = left.open(after_process(settled))
    assert found.log.end_offset == 17
    assert found.producers == before.producers
    assert found.epochs.written().endswith(b"9 12\n")
    assert left.disk.read_bytes[nth(0)] == left.disk.read_bytes[nth(5)] == 2 * HEADER_SIZE
    assert found.snapshot == settled


def test_newer_snapshots_are_not_believed(left: Left) -> None:
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
def test_what_is_not_believed_does_not_come_back(trust: Trust, left: Left) -> None:
    """
    When the power goes. The log may be shorter now, and what is written next would have had other producers there.
    """
    left.settle()
    left.open(trust)
    after = left.disk.done[max(place for place, done in enumerate(left.disk.done) if done[0] == "remove") :]
    synced = after.index(("sync_folder", left.folder.name))
    assert not {"open", "append", "write"} & {operation for operation, _ in after[:synced]}
    assert left.open(Trust(12, 12, process_only=True)).snapshot == 10
    assert not left.disk.count("sync_folder")


def test_first_timestamp_is_known_again(left: Left) -> None:
    """
    How old a segment is counts from its first batch, also where only its last ones are looked at.
    """
    left.append(batch(timestamp=START_MS + 1))
    left.append(batch(timestamp=START_MS + 2))
    left.append(batch(timestamp=START_MS + 3))
    found = left.open(after_process(left.settle()))
    assert found.log.segments[-1].first_timestamp == START_MS
    assert found.log.segments[-1].largest() == START_MS + 3


def test_old_snapshots_are_removed(left: Left) -> None:
    """
    Of the snapshots those at the borders of segments stay, and the newest.
    """
    for offset in (3, 7):
        (left.folder / file_name(offset, ".snapshot")).write_bytes(producer_snapshots.written(ProducerTable()))
    left.open(after_process(left.settle()))
    assert sorted(path.stem.lstrip("0") for path in left.folder.glob("*.snapshot")) == ["10", "12", "5"]


def test_full_segments_are_believed_as_far_as_synced(left: Left) -> None:
    """
    After the death of the machine a full segment is not looked through if it was synced, and the one behind it was
    begun when it was.
    """
    left.settle()
    left.open(after_machine(12))
    assert [left.disk.read_bytes[nth(base)] for base in (0, 5, 10)] == [2 * HEADER_SIZE, 2 * HEADER_SIZE, 2 * SIZE]
    left.settle()
    left.open(after_machine(10))
    assert left.disk.read_bytes[nth(0)] == 2 * HEADER_SIZE
    assert left.disk.read_bytes[nth(5)] >= 5 * SIZE


def test_without_its_indexes_a_full_segment_is_looked_through(left: Left) -> None:
    """
    Where one of its two files is missing they are made again.
    """
    settled = left.settle()
    for suffix in (".index", ".timeindex"):
        (left.folder / file_name(0, suffix)).unlink()
        left.open(after_process(settled))
        assert left.disk.read_bytes[nth(0)] >= 5 * SIZE
        assert left.disk.read_bytes[nth(5)] == 2 * HEADER_SIZE
        assert (left.folder / file_name(0, suffix)).stat().st_size > 0


def test_epochs_are_made_up_where_their_file_is_damaged(left: Left) -> None:
    """
    Then all batches are looked at, for nothing else tells of epochs, whatever is known of them otherwise.
    """
    for number in range(12, 15):
        left.append(sequenced(number), epoch=3 + number % 2)
    settled = left.settle()
    for data in (None, b"0\n9\n"):
        (left.folder / EPOCH_FILE).unlink() if data is None else (left.folder / EPOCH_FILE).write_bytes(data)
        found = left.open(after_process(settled))
        assert found.epochs.written() == b"0\n5\n0 0\n1 4\n2 8\n3 12\n4 13\n"


@pytest.mark.parametrize("base", [0, 5])
def test_epochs_stay_where_an_index_is_damaged(base: int, left: Left) -> None:
    """
    Where an old segment is looked through again, and those behind it are not, its batches tell nothing of these.
    """
    settled = left.settle()
    left.change(0, file_name(base, ".timeindex"))
    found = left.open(Trust(settled, settled, process_only=True))
    assert len(found.faults) == 1
    assert found.epochs.written() == b"0\n3\n0 0\n1 4\n2 8\n"


def test_epochs_end_with_the_log(left: Left) -> None:
    """
    An epoch whose batches the machine has lost is forgotten.
    """
    left.settle()
    (left.folder / nth(10)).unlink()
    left.cut(2 * SIZE + 3, nth(5))
    assert left.open(after_machine(7)).epochs.written() == b"0\n2\n0 0\n1 4\n"


def test_a_log_without_files(tmp_path: Path) -> None:
    """
    A new log has an empty segment from offset 0 on.
    """
    found = recovered(OpenFiles(NotedDisk(), 9), tmp_path / "t-0")
    assert (found.log.start_offset, found.log.end_offset, found.snapshot) == (0, 0, 0)
    assert [path.name for path in (tmp_path / "t-0").iterdir()] == [LOG]


def test_empty_segments_are_removed(left: Left) -> None:
    """
    A segment that was begun and not written to goes, and the one before it goes on; the first one stays.
    """
    (left.folder / nth(12)).touch()
    found = left.open(after_process(left.settle()))
    assert [segment.base_offset for segment in found.log.segments] == [0, 5, 10]
    assert found.log.segments[-1].next_offset == 12
    for name in left.folder_names:
        (left.folder / name).unlink(missing_ok=True)
    for base in (5, 10):
        (left.folder / nth(base)).touch()
    assert [segment.base_offset for segment in left.open(after_machine()).log.segments] == [5]


def test_unfinished_files_are_removed(left: Left) -> None:
    """
    What a crash has left of a file that was being written goes; other files in the folder stay.
    """
    (left.folder / "leader-epoch-checkpoint.1-2-3.tmp").touch()
    (left.folder / "notes.txt").touch()
    left.open(after_process(left.settle()))
    assert not list(left.folder.glob("*.tmp"))
    assert (left.folder / "notes.txt").exists()


def test_what_is_there_is_synced_where_acks_wait_for_that(left: Left) -> None:
    """
    With kgateway.acks.fsync all that can be read will outlast the machine: segments behind what was synced, and names.
    """
    left.settle()
    found = left.open(Trust(11, 12, process_only=True), TopicConfig(acks_fsync=True))
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
    assert left.open(Trust(10, 12, process_only=True)).synced == 10


@pytest.mark.parametrize(
    ("trust", "clean"),
    [
        (Trust(12, 12, process_only=True, clean=True), True),
        (Trust(12, 12, process_only=True), False),
        (Trust(11, 12, process_only=True, clean=True), False),
    ],
)
def test_what_a_clean_stop_has_left(trust: Trust, clean: bool, left: Left) -> None:
    """
    All will outlast the machine, files beside the segments too, where the last process has synced all that there is.
    """
    left.settle()
    assert left.open(trust).clean is clean


def test_others_go_on_between_the_steps(left: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    After every so many batches of a segment the generator gives way; after every so many bytes, where there are many,
    what comes next is read in a thread.
    """

    def steps() -> tuple[int, int]:
        taken = [getattr(work, "func", None) for work in left.recovery(after_machine())]
        return taken.count(None), taken.count(looking_through._read_all)

    assert steps() == (0, 0)
    with monkeypatch.context() as patch:
        patch.setattr(looking_through, "_BATCHES_A_STEP", 2)
        assert steps() == (5, 0)
    monkeypatch.setattr(looking_through, "_BYTES_A_STEP", 2 * SIZE)
    monkeypatch.setattr(looking_through, "_READ_BEFORE", 2 * SIZE)
    assert steps() == (0, 7)  # two of the segments are read before, and all after every other batch


@pytest.mark.parametrize("count", [8, 9])
def test_the_ends_of_many_segments_are_looked_at_in_a_thread(count: int, left: Left) -> None:
    """
    Of a few that is done at once.
    """
    left.limits = left.limits._replace(segment_bytes=SIZE)
    while len(left.opened.log.segments) < count + 1:
        left.append(sequenced(left.opened.log.end_offset))
    works = [work for work in left.recovery(after_process(left.settle())) if work]
    assert len(works) == (count > 8)


def test_segments_before_the_start_are_left_out(left: Left) -> None:
    """
    What is wholly before the log start is no part of the log, and neither are indexes and files that were let go; they
    are to be removed.
    """
    settled = left.settle()
    (left.folder / nth(5)).rename(left.folder / f"{nth(5)}.deleted")
    found = left.open(after_process(settled).beginning_at(11))
    assert (found.log_start, [segment.base_offset for segment in found.log.segments]) == (11, [10])
    gone = {nth(0), f"{nth(5)}.deleted"} | {
        file_name(base, f".{kind}index") for base in (0, 5) for kind in ("", "time")
    }
    assert {path.name for path in found.left_over} == gone
    (left.folder / nth(0)).unlink()
    found = left.open(after_process(settled).beginning_at(9))
    assert (found.log_start, [segment.base_offset for segment in found.log.segments]) == (10, [10])
