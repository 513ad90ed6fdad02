"""
Files in the folder of a partition whose names look like those of a log, and are not.
"""

from collections.abc import Iterable
from pathlib import Path

import pytest

from kgateway.broker.log.checking import check
from kgateway.broker.log.dumping import Wanted, dump, segments
from kgateway.broker.log.local_disk import LocalDisk
from kgateway.broker.log.looking import ReadingDisk
from kgateway.broker.log.segment import file_name
from kgateway.broker.log.state_snapshots import STATE
from tests.broker.behaviour import appended, batch, result
from tests.broker.log.left import Left, after_process
from tests.broker.log.log_world import LogWorld

ARABIC = "".join(chr(ord("\N{ARABIC-INDIC DIGIT ZERO}") + digit) for digit in range(10)) * 2  # int() reads them
STRANGERS = [f"{ARABIC}{suffix}" for suffix in (".log", ".index", ".snapshot", ".log.cut-7", ".txnindex")]
STRANGERS += [
    f"{file_name(0, '.log')}.cut-{ARABIC}",
    f"{STATE}{ARABIC}",
    file_name(7, ""),
    file_name(7, ".notes"),
    file_name(1 << 63, ".log"),  # no offset is so large
    f"{STATE}7",
    f"{STATE}notes",
]


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


def put(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        (folder / name).write_bytes(b"not of a log")


def found(path: Path, *, holder: str | None = None) -> list[tuple[str, str, bool]]:
    """
    Which files a check names, what it says, and whether that is a fault.
    """
    _, steps = check(path, ReadingDisk(), holder=holder)
    return [(finding.path.name, finding.what, finding.is_fault) for finding in steps if finding]


def test_strangers_are_passed_over_at_the_start(tmp_path: Path) -> None:
    """
    They are of no segment and no snapshot, and stay.
    """
    left = Left(tmp_path / "t-0")
    settled = left.settle()
    put(left.folder, STRANGERS)
    opened = left.open(after_process(settled))
    assert (opened.faults, opened.log.end_offset, opened.snapshot) == ([], 12, 12)
    assert [segment.base_offset for segment in opened.log.segments] == [0, 5, 10]
    assert {path.name for path in left.folder.iterdir()} >= {*STRANGERS}


def test_strangers_are_no_state(world: LogWorld) -> None:
    """
    A coordinator reads none of them, and removes none.
    """
    log = world.state_log()
    log.append([(b"a", b"1")])
    (folder,) = {path.parent for path in world.path.glob("__consumer_offsets-*/*.log")}
    for name in STRANGERS:
        (folder / name).touch()  # as good as the state of nothing
    world.killed()
    log = world.state_log()
    assert [pair for piece in result(log.replay()) for pair in piece] == [(b"a", b"1")]
    result(log.snapshot(iter([(b"a", b"1")])))
    assert {path.name for path in folder.iterdir()} >= {*STRANGERS}


def test_a_check_tells_of_strangers(world: LogWorld) -> None:
    """
    Each is named, as a file that kgateway does not know, and none is a fault.
    """
    partition = world.log_partition()
    appended(partition, batch())
    result(world.broker.stop())
    put(partition.folder, STRANGERS)
    assert sorted(found(world.path)) == sorted((name, "kgateway knows no such file", False) for name in STRANGERS)


def test_a_check_of_a_state_that_was_being_written(world: LogWorld) -> None:
    """
    What a process has left of a file that was not in its place yet is no fault; in a folder that is in use it is being
    written.
    """
    partition = world.log_partition()
    result(world.broker.stop())
    name = f"{STATE}{file_name(7, '')}.1-2-3.tmp"
    put(partition.folder, [name])
    assert found(world.path) == [(name, "a process ended while it wrote it", False)]
    assert found(world.path, holder="process 7") == []


def test_strangers_are_not_dumped_as_segments(tmp_path: Path) -> None:
    """
    Those of a partition are listed without them; whoever names one sees what is in it.
    """
    left = Left(tmp_path / "t-0")
    put(left.folder, STRANGERS)
    assert segments(left.folder, LocalDisk()) == [0, 5, 10]
    for name in (f"{ARABIC}.log", file_name(5, ".copy.log")):
        path = left.folder / name
        path.write_bytes((left.folder / file_name(0, ".log")).read_bytes())
        assert len(list(dump(path, LocalDisk(), Wanted()))) == 1 + 5, name
