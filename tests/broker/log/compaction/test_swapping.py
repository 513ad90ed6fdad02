"""
Rewritten segments take their places, also where a crash comes between.
"""

from pathlib import Path

import pytest

from kgateway.broker.log.compaction.rewriting import cleaned_name
from kgateway.broker.log.compaction.swapping import Decision, Place, discard, finish, forget, read_decision, swap
from kgateway.broker.log.found_files import COMPACTED
from kgateway.broker.log.local_disk import LocalDisk
from kgateway.broker.log.segment import file_name
from tests.broker.log.noted_disk import NotedDisk

TOKEN = "17-3"
DECISION = Decision(TOKEN, [Place(100, 300), Place(400, 500)])
SEGMENT = (".index", ".log", ".timeindex")


class Dead(BaseException):
    """
    The process is.
    """


class Mortal(NotedDisk):
    """
    A disk of a process that dies after so many operations.
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
    Segments from 0 to 599, of which two from 100 on and one from 400 on were written anew, and what else is there.
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
    """
    What a log finds there.
    """
    return {path.name: path.read_text() for path in folder.iterdir() if not path.name.endswith(".deleted")}


EXPECTED = (
    {file_name(base, suffix): f"old {base}" for base in (0, 300, 500) for suffix in SEGMENT}
    | {file_name(base, suffix): f"new {base}" for base in (100, 400) for suffix in SEGMENT}
    | {file_name(base, ".snapshot"): f"old {base}" for base in (100, 250, 300, 400)}
    | {"leader-epoch-checkpoint": "old"}
)


def decide(folder: Path) -> None:
    LocalDisk().write(folder / COMPACTED, DECISION.written(), sync=False)


def swap_all(folder: Path, disk: LocalDisk) -> list[Path]:
    renamed = list[Path]()
    for place in DECISION.places:
        renamed += swap(disk, folder, disk.names(folder), TOKEN, place)
    return renamed


def test_swap(folder: Path) -> None:
    """
    The rewritten segment has the names of the one that it begins with; all that was of the segments it has taken in is
    let go, with the snapshots at their beginnings, and those are told.
    """
    renamed = swap_all(folder, LocalDisk())
    assert content(folder) == EXPECTED
    assert sorted(renamed) == sorted(folder.glob("*.deleted"))
    gone = [file_name(base, suffix) for base in (100, 200, 400) for suffix in SEGMENT] + [file_name(200, ".snapshot")]
    assert sorted(path.name for path in renamed) == sorted(f"{name}.deleted" for name in gone)


def test_log_is_never_without_its_end(folder: Path) -> None:
    """
    At no moment has a rewritten log the index of the one before it: the log comes last.
    """
    disk = NotedDisk()
    swap(disk, folder, disk.names(folder), TOKEN, Place(100, 300))
    new = [name for done, name in disk.done if done == "rename" and name.endswith(".cleaned")]
    assert new[-1] == cleaned_name(100, ".log", TOKEN)
    assert len(new) == 3


def test_swapped_already(folder: Path) -> None:
    """
    What has its place stays there, and nothing more is let go.
    """
    swap_all(folder, LocalDisk())
    before = content(folder)
    assert swap_all(folder, LocalDisk()) == []
    assert content(folder) == before == EXPECTED


def test_files_that_are_gone(folder: Path) -> None:
    """
    What somebody else has removed meanwhile hinders nobody.
    """
    disk = LocalDisk()
    names = disk.names(folder)
    (folder / file_name(200, ".timeindex")).unlink()
    swap(disk, folder, names, TOKEN, Place(100, 300))
    assert content(folder)[file_name(100, ".log")] == "new 100"


def test_crashes_while_it_is_swapped(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """
    Wherever a process dies while it swaps, or while it does what another has left undone, the next one does the rest.
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
                finish(Mortal(operations // 2), here)
            except Dead:
                dead += 1
        if (here / COMPACTED).exists():
            finish(LocalDisk(), here)
        assert content(here) == EXPECTED, operations
        if not dead:
            break
    assert operations > 15


def test_decision_is_forgotten_for_good(folder: Path) -> None:
    """
    It goes when the new names will outlast the machine, and its own end does too.
    """
    decide(folder)
    disk = NotedDisk()
    finish(disk, folder)
    assert content(folder) == EXPECTED
    last = [(done, name) for done, name in disk.done if done != "names"][-3:]
    assert last == [("sync_folder", folder.name), ("remove", COMPACTED), ("sync_folder", folder.name)]
    disk = NotedDisk()
    decide(folder)
    forget(disk, folder)
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
    Nothing was begun then: all stays as it was, and the file goes.
    """
    before = content(folder)
    assert read_decision(data) is None
    (folder / COMPACTED).write_bytes(data)
    finish(LocalDisk(), folder)
    assert content(folder) == before


def test_decision_is_read_as_it_was_written() -> None:
    """
    Its file is text that tells whose files these are, and which offsets they have.
    """
    assert DECISION.written() == b"0\n17-3\n2\n100 300\n400 500\n"
    assert read_decision(DECISION.written()) == DECISION
    largest = Decision("t", [Place(0, (1 << 63) - 1)])
    assert read_decision(largest.written()) == largest


def test_stale_decisions(folder: Path) -> None:
    """
    One of a round whose files are there no more changes nothing: what it has decided was done.
    """
    decide(folder)
    finish(LocalDisk(), folder)
    decide(folder)
    finish(LocalDisk(), folder)
    assert content(folder) == EXPECTED


def test_discarded(folder: Path) -> None:
    """
    What a round has written in vain goes, and no file of another round or of the log.
    """
    before = content(folder)
    other = cleaned_name(100, ".log", "1" + TOKEN)
    (folder / other).write_text("other")
    discard(LocalDisk(), folder, TOKEN)
    assert content(folder) == {name: data for name, data in before.items() if TOKEN not in name} | {other: "other"}


def test_decided_files_are_not_discarded(folder: Path) -> None:
    """
    Where it was decided that they count they stay, whatever became of the round.
    """
    decide(folder)
    before = content(folder)
    discard(LocalDisk(), folder, TOKEN)
    assert content(folder) == before
