"""
Rewritten segments replace the old ones, even if a crash interrupts the swap.
"""

from pathlib import Path

import pytest

from kgateway.broker.log.files.local_disk import LocalDisk
from kgateway.broker.log.segments.cleaned_segment import cleaned_name
from kgateway.broker.log.segments.file_names import COMPACTED, file_name
from kgateway.broker.log.segments.segment_swap import (
    Decision,
    OffsetRange,
    discard_rewritten,
    finish_swap,
    read_decision,
    remove_decision,
    swap_segment,
)
from tests.broker.log.recording_disk import RecordingDisk

TOKEN = "17-3"
DECISION = Decision(TOKEN, [OffsetRange(100, 300), OffsetRange(400, 500)])
SEGMENT = (".index", ".log", ".timeindex")


class Dead(BaseException):
    """
    The process is dead.
    """


class Mortal(RecordingDisk):
    """
    A disk whose process dies after a number of operations.
    """

    def __init__(self, operations: int) -> None:
        super().__init__()
        self._left = operations

    def note(self, operation: str, path: Path) -> None:
        if not self._left:
            raise Dead
        self._left -= 1
        super().note(operation, path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """
    Segments from 0 to 599, of which two from 100 on and one from 400 on were rewritten, and other files.
    """
    for base in (0, 100, 200, 300, 400, 500):
        for suffix in SEGMENT:
            (tmp_path / file_name(base, suffix)).write_text(f"old {base}")
    for base in (100, 200, 250, 300, 400):
        (tmp_path / file_name(base, ".snapshot")).write_text(f"old {base}")
    for base in (100, 400):
        for suffix in SEGMENT:
            (tmp_path / cleaned_name(base, suffix, TOKEN)).write_text(f"new {base}")
    (tmp_path / "leader-epoch-checkpoint").write_text("old")
    return tmp_path


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if not path.name.endswith(".deleted")}


EXPECTED = (
    {file_name(base, suffix): f"old {base}" for base in (0, 300, 500) for suffix in SEGMENT}
    | {file_name(base, suffix): f"new {base}" for base in (100, 400) for suffix in SEGMENT}
    | {file_name(base, ".snapshot"): f"old {base}" for base in (100, 250, 300, 400)}
    | {"leader-epoch-checkpoint": "old"}
)


def decide(folder: Path) -> None:
    LocalDisk().write(folder / COMPACTED, DECISION.encoded(), sync=False)


def swap_all(folder: Path, disk: LocalDisk) -> list[Path]:
    renamed = list[Path]()
    for place in DECISION.ranges:
        renamed += swap_segment(disk, folder, disk.names(folder), TOKEN, place)
    return renamed


def test_swap(folder: Path) -> None:
    """
    The rewritten segment has the names of its first source; all files of its sources, with the snapshots at their
    beginnings, are renamed for deletion and returned.
    """
    renamed = swap_all(folder, LocalDisk())
    assert content(folder) == EXPECTED
    assert sorted(renamed) == sorted(folder.glob("*.deleted"))
    gone = [file_name(base, suffix) for base in (100, 200, 400) for suffix in SEGMENT] + [file_name(200, ".snapshot")]
    assert sorted(path.name for path in renamed) == sorted(f"{name}.deleted" for name in gone)


def test_log_is_never_without_its_end(folder: Path) -> None:
    """
    A rewritten log never has the index of its predecessor: the log file comes last.
    """
    disk = RecordingDisk()
    swap_segment(disk, folder, disk.names(folder), TOKEN, OffsetRange(100, 300))
    new = [name for done, name in disk.done if done == "rename" and name.endswith(".cleaned")]
    assert new[-1] == cleaned_name(100, ".log", TOKEN)
    assert len(new) == 3


def test_swapped_already(folder: Path) -> None:
    """
    A segment that is in place is not touched.
    """
    swap_all(folder, LocalDisk())
    before = content(folder)
    assert swap_all(folder, LocalDisk()) == []
    assert content(folder) == before == EXPECTED


def test_files_that_are_gone(folder: Path) -> None:
    """
    Files that somebody else has removed are no obstacle.
    """
    disk = LocalDisk()
    names = disk.names(folder)
    (folder / file_name(200, ".timeindex")).unlink()
    swap_segment(disk, folder, names, TOKEN, OffsetRange(100, 300))
    assert content(folder)[file_name(100, ".log")] == "new 100"


def test_crashes_while_it_is_swapped(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """
    The next process finishes a swap, or the completion of one, that a crash has interrupted anywhere.
    """
    names = content(folder)
    for operations in range(100):
        here = tmp_path_factory.mktemp("again")
        for name, data in names.items():
            (here / name).write_text(data)
        decide(here)
        dead = 0
        try:
            swap_all(here, Mortal(operations))
        except Dead:
            dead += 1
            try:
                finish_swap(Mortal(operations // 2), here)
            except Dead:
                dead += 1
        if (here / COMPACTED).exists():
            finish_swap(LocalDisk(), here)
        assert content(here) == EXPECTED, operations
        if not dead:
            break
    assert operations > 15


def test_decision_is_forgotten_for_good(folder: Path) -> None:
    """
    The decision is removed once the new names are synced, and its removal is synced too.
    """
    decide(folder)
    disk = RecordingDisk()
    finish_swap(disk, folder)
    assert content(folder) == EXPECTED
    last = [(done, name) for done, name in disk.done if done != "names"][-3:]
    assert last == [("sync_folder", folder.name), ("remove", COMPACTED), ("sync_folder", folder.name)]
    disk = RecordingDisk()
    decide(folder)
    remove_decision(disk, folder)
    assert [done for done, _ in disk.done] == ["sync_folder", "remove", "sync_folder"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"0\n17-3\n2\n100 300\n",
        b"0\n17-3\n1\n100 300\n400 500\n",
        b"1\n17-3\n2\n100 300\n400 500\n",
        b"0\n\n2\n100 300\n400 500\n",
        b"0\n17-3\n2\n100 300\n400\n",
        b"0\n17-3\n2\n100 300\n-400 500\n",
    ],
)
def test_decisions_that_were_never_written_whole(data: bytes, folder: Path) -> None:
    """
    Nothing was begun: all files are unchanged, and the decision is removed.
    """
    before = content(folder)
    assert read_decision(data) is None
    (folder / COMPACTED).write_bytes(data)
    finish_swap(LocalDisk(), folder)
    assert content(folder) == before


def test_decision_is_read_as_it_was_written() -> None:
    """
    Its file is text with the names of the files and their offsets.
    """
    assert DECISION.encoded() == b"0\n17-3\n2\n100 300\n400 500\n"
    assert read_decision(DECISION.encoded()) == DECISION
    largest = Decision("t", [OffsetRange(0, (1 << 63) - 1)])
    assert read_decision(largest.encoded()) == largest


def test_stale_decisions(folder: Path) -> None:
    """
    A decision whose files are gone was carried out, and changes nothing.
    """
    decide(folder)
    finish_swap(LocalDisk(), folder)
    decide(folder)
    finish_swap(LocalDisk(), folder)
    assert content(folder) == EXPECTED


def test_discarded(folder: Path) -> None:
    """
    The useless files of a round are removed, but none of another round or of the log.
    """
    before = content(folder)
    other = cleaned_name(100, ".log", "1" + TOKEN)
    (folder / other).write_text("other")
    discard_rewritten(LocalDisk(), folder, TOKEN)
    assert content(folder) == {name: data for name, data in before.items() if TOKEN not in name} | {other: "other"}


def test_decided_files_are_not_discarded(folder: Path) -> None:
    """
    Files of a decision are kept, whatever became of the round.
    """
    decide(folder)
    before = content(folder)
    discard_rewritten(LocalDisk(), folder, TOKEN)
    assert content(folder) == before
