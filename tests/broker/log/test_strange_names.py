"""
Files in a partition's folder whose names only look like those of a log.
"""

from collections.abc import Iterable
from pathlib import Path

import pytest

from kgateway.broker.log.data_folder.state_snapshots import STATE
from kgateway.broker.log.files.local_disk import LocalDisk, ReadOnlyDisk
from kgateway.broker.log.inspection.dump import DumpRequest, dump, segments
from kgateway.broker.log.inspection.log_check import check_log
from kgateway.broker.log.segments.file_names import file_name
from tests.broker.behaviour import appended, batch, result
from tests.broker.log.fixtures import LeftLog, after_process
from tests.broker.log.log_world import LogWorld

ARABIC = "".join(chr(ord("\N{ARABIC-INDIC DIGIT ZERO}") + digit) for digit in range(10)) * 2  # int() accepts them
STRANGERS = [f"{ARABIC}{suffix}" for suffix in (".log", ".index", ".snapshot", ".log.cut-7", ".txnindex")]
STRANGERS += [
    f"{file_name(0, '.log')}.cut-{ARABIC}",
    f"{STATE}{ARABIC}",
    file_name(7, ""),
    file_name(7, ".notes"),
    file_name(1 << 63, ".log"),  # too large for an offset
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
    The files that a check names, what it says, and whether that is a fault.
    """
    _, steps = check_log(path, ReadOnlyDisk(), holder=holder)
    return [(finding.path.name, finding.what, finding.is_fault) for finding in steps if finding]


def test_strangers_are_passed_over_at_the_start(tmp_path: Path) -> None:
    """
    They belong to no segment and no snapshot, and are kept.
    """
    left = LeftLog(tmp_path / "t-0")
    settled = left.settle()
    put(left.folder, STRANGERS)
    opened = left.open(after_process(settled))
    assert (opened.faults, opened.segment_list.end_offset, opened.snapshot) == ([], 12, 12)
    assert [segment.base_offset for segment in opened.segment_list.segments] == [0, 5, 10]
    assert {path.name for path in left.folder.iterdir()} >= {*STRANGERS}


def test_strangers_are_no_state(world: LogWorld) -> None:
    """
    A coordinator reads and removes none of them.
    """
    log = world.state_log()
    log.append([(b"a", b"1")])
    (folder,) = {path.parent for path in world.path.glob("__consumer_offsets-*/*.log")}
    for name in STRANGERS:
        (folder / name).touch()  # as valid as an empty state
    world.killed()
    log = world.state_log()
    assert [pair for piece in result(log.replay()) for pair in piece] == [(b"a", b"1")]
    result(log.snapshot(iter([(b"a", b"1")])))
    assert {path.name for path in folder.iterdir()} >= {*STRANGERS}


def test_a_check_tells_of_strangers(world: LogWorld) -> None:
    """
    Each is named as a file unknown to kgateway, and none is a fault.
    """
    partition = world.log_partition()
    appended(partition, batch())
    result(world.broker.stop())
    put(partition.folder, STRANGERS)
    assert sorted(found(world.path)) == sorted((name, "kgateway does not know this file", False) for name in STRANGERS)


def test_a_check_of_a_state_that_was_being_written(world: LogWorld) -> None:
    """
    An unfinished file of a dead process is no fault; in a folder in use it is being written.
    """
    partition = world.log_partition()
    result(world.broker.stop())
    name = f"{STATE}{file_name(7, '')}.1-2-3.tmp"
    put(partition.folder, [name])
    assert found(world.path) == [(name, "a process ended while writing it", False)]
    assert found(world.path, holder="process 7") == []


def test_strangers_are_not_dumped_as_segments(tmp_path: Path) -> None:
    """
    The dump of a partition omits them; a dump of the file itself shows its content.
    """
    left = LeftLog(tmp_path / "t-0")
    put(left.folder, STRANGERS)
    assert segments(left.folder, LocalDisk()) == [0, 5, 10]
    for name in (f"{ARABIC}.log", file_name(5, ".copy.log")):
        path = left.folder / name
        path.write_bytes((left.folder / file_name(0, ".log")).read_bytes())
        assert len(list(dump(path, LocalDisk(), DumpRequest()))) == 1 + 5, name
