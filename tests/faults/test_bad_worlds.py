"""
Unusable data folders: each is refused in plain words, with what to do, and left unchanged.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kgateway.wire.errors import ErrorCode
from tests.faults.mounts import PrivateMounts
from tests.faults.worlds import DATA, World, checked, contents, filled, only, ran, refused, wait_for

_META = "version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\ndirectory.id=2aVnXVTvT1q0kVBXWFl3bA\nnode.id=1\n"
_TWISTD = [sys.executable, "-c", "from twisted.scripts.twistd import run; run()"]


def make_a_file(data: Path) -> None:
    """
    Create a file where the folder should be.
    """
    data.write_text("not a folder")


def make_alien(data: Path) -> None:
    data.mkdir()
    (data / "holiday.jpg").write_bytes(b"sun")


def make_kafka(data: Path) -> None:
    data.mkdir()
    (data / "meta.properties").write_text(_META)
    (data / "orders-0").mkdir()


def make_newer(data: Path) -> None:
    """
    Create what a future kgateway would leave.
    """
    data.mkdir()
    (data / "meta.properties").write_text(f"kgateway.format=2\n{_META}")
    (data / "kgateway.start").write_text('{"start_number": 3}')


Make = Callable[[Path], None]

WORLDS: list[tuple[Make, str]] = [
    (make_a_file, "cannot be made: File exists; it is a file, not a folder; name an empty folder or a new one"),
    (make_alien, "holds files that are not kgateway's: holiday.jpg; name an empty folder or a new one"),
    (make_kafka, "is the data directory of an Apache Kafka broker; name an empty folder or a new one"),
    (make_newer, "was written by a newer kgateway; format 2, this one reads 1: start the newer one"),
]


def test_a_missing_folder_is_created(tmp_path: Path) -> None:
    """
    Its parents are created too, and it is complete at once.
    """
    with World(tmp_path, "--broker", "log:some/where/data") as world:
        assert world.create() == ErrorCode.NONE
        assert "data in some/where/data (0 topics)" in world.log
    assert checked(tmp_path / "some" / "where" / "data")[0] == 0


@pytest.mark.parametrize(("make", "reason"), WORLDS, ids=[make.__name__ for make, _ in WORLDS])
def test_a_foreign_folder_is_refused(tmp_path: Path, make: Make, reason: str) -> None:
    """
    One line on stderr says what it is and what to do, and nothing is touched. A file can never become the folder, so
    the exit code is that of a mistake.
    """
    make(tmp_path / DATA)
    before = contents(tmp_path)
    ended = refused(tmp_path, f"log:{DATA}")
    assert ended.returncode == (2 if make is make_a_file else 1)
    assert reason in only(ended.stderr)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(("make", "reason"), WORLDS[:2], ids=["a file", "alien"])
def test_a_daemon_refuses_a_foreign_folder(tmp_path: Path, make: Make, reason: str) -> None:
    """
    The terminal and the daemon's log have the whole message.
    """
    make(tmp_path / DATA)
    before = contents(tmp_path)
    files = [f"--pidfile={tmp_path / 'pid'}", f"--logfile={tmp_path / 'log'}"]
    options = ["--listen", "tcp:0:interface=127.0.0.1", "--control-socket", str(tmp_path / "c.sock")]
    ended = ran([*_TWISTD, *files, "kgateway", *options], tmp_path)
    assert ended.returncode == 1
    assert reason in only(ended.stderr)
    wait_for(lambda: reason in (tmp_path / "log").read_text())
    (tmp_path / "log").unlink()
    assert contents(tmp_path) == before


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    """
    The process that holds it is named and is not disturbed.
    """
    with World(tmp_path) as world:
        world.create()
        before = contents(world.data)
        ended = refused(tmp_path, f"log:{world.data}")
        assert ended.returncode == 1
        told = (
            f"{world.data} is in use by process {world.pid}; stop it, or name another folder with --broker log:FOLDER"
        )
        assert told in only(ended.stderr)
        assert contents(world.data) == before
        assert world.produce(b"value") == (ErrorCode.NONE, 0)


def test_a_taken_port_closes_the_folder(tmp_path: Path) -> None:
    """
    A gateway that opens its folder and then cannot listen leaves it as a clean stop would.
    """
    filled(tmp_path, count=2)
    with World(tmp_path, "--broker", "memory:") as other:
        before = contents(tmp_path / DATA)
        ended = refused(tmp_path, f"log:{DATA}", "--listen", f"tcp:{other.port}:interface=127.0.0.1")
        assert ended.returncode == 1
        assert "in use" in only(ended.stderr)
    after = contents(tmp_path / DATA)
    assert set(after) == set(before)
    assert {name for name in after if after[name] != before[name]} <= {
        ".kafka_cleanshutdown",
        "kgateway.start",
        ".lock",
    }


@pytest.fixture
def mounts() -> Iterator[PrivateMounts]:
    """
    Mounts that only this test sees.
    """
    with PrivateMounts() as mounts:
        yield mounts


def test_a_read_only_folder_is_refused(tmp_path: Path, mounts: PrivateMounts) -> None:
    """
    The error names the missing permission and says what to do.
    """
    filled(tmp_path, count=2)
    before = contents(tmp_path / DATA)
    mounts.run("mount", "--bind", tmp_path / DATA, tmp_path / DATA)
    mounts.run("mount", "-o", "remount,bind,ro", tmp_path / DATA)
    ended = refused(tmp_path, f"log:{tmp_path / DATA}", prefix=mounts.prefix)
    assert ended.returncode == 1
    told = only(ended.stderr)
    assert "Read-only file system" in told
    assert "mount its file system read-write, or name another folder" in told
    assert contents(tmp_path / DATA) == before


def test_a_read_only_parent_is_refused(tmp_path: Path, mounts: PrivateMounts) -> None:
    """
    The error is as clear where the folder cannot be created.
    """
    (tmp_path / "place").mkdir()
    mounts.run("mount", "-t", "tmpfs", "-o", "ro", "tmpfs", tmp_path / "place")
    ended = refused(tmp_path, f"log:{tmp_path / 'place' / 'data'}", prefix=mounts.prefix)
    assert ended.returncode == 1
    assert "cannot be made: Read-only file system" in only(ended.stderr)


def test_a_read_only_folder_can_be_checked(tmp_path: Path, mounts: PrivateMounts) -> None:
    filled(tmp_path, count=2)
    mounts.run("mount", "--bind", tmp_path / DATA, tmp_path / DATA)
    mounts.run("mount", "-o", "remount,bind,ro", tmp_path / DATA)
    command = [*mounts.prefix, sys.executable, "-m", "kgateway", "log", "check", str(tmp_path / DATA)]
    ended = ran(command, tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
