"""
Archives are read while jobs merge their files.
"""

import fcntl
import os
from pathlib import Path, PurePath
from typing import Any

import pyarrow.dataset as ds
import pytest

from kgateway.spark.archive.reader_lease import LOCK, READING, leased
from kgateway.spark.archive.task import MANY
from kgateway.spark.errors import Unreadable
from tests.spark.archive.archives import Archives
from tests.spark.gateway import PARTITIONS, Topics, numbered


@pytest.fixture
def topic(topics: Topics, archives: Archives) -> str:
    """
    A topic whose archive has many small files.
    """
    name = topics.make()
    for number in range(MANY):
        topics.fill(name, numbered(2, first=2 * number))
        archives.archive(name)
    return name


def values(paths: tuple[PurePath, ...]) -> list[int]:
    """
    The values in these files.
    """
    tables = [ds.dataset(path, format="parquet").to_table(columns=["value"]) for path in paths]
    return sorted(int(row["value"]) for table in tables for row in table.to_pylist())


def test_files_are_kept_while_they_are_read(archives: Archives, topic: str) -> None:
    """
    A reader keeps replaced and removed files to the end of its lease.
    """
    folder = archives.folder(topic)
    with leased(folder) as snapshot:
        before = archives.names(topic)
        assert archives.job(topic).merge() == len(before) == MANY * PARTITIONS
        assert len(archives.names(topic)) == PARTITIONS
        assert values(snapshot.paths) == [*range(2 * MANY)]
        assert archives.verify(topic).faults == 0
    assert not [*(archives.path / topic / READING).iterdir()]


def test_unpublished_files_are_found(archives: Archives, topic: str) -> None:
    """
    The files of the manifest are found in the staging folder, where a killed job left them.
    """
    folder = archives.folder(topic)
    name = archives.names(topic)[0]
    os.replace(folder.path / name, folder.staged / name)
    with leased(folder) as snapshot:
        assert values(snapshot.paths) == [*range(2 * MANY)]


def test_leases_of_killed_readers(archives: Archives, topic: str) -> None:
    """
    The next reader or job removes stale leases, and keeps live ones.
    """
    folder = archives.folder(topic)
    left = [archives.path / topic / READING / name for name in ("killed", "killed-early", "alive")]
    for path in left:
        path.mkdir(parents=True)
        (path / "1").mkdir()
        (path / LOCK).touch()
    (left[1] / LOCK).unlink()
    (left[1] / "1").rmdir()
    with open(left[2] / LOCK, "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with leased(folder):
            assert [path.exists() for path in left] == [False, False, True]
    archives.job(topic)
    assert not left[2].exists()


def test_a_read_only_archive_is_read_in_place(archives: Archives, topic: str) -> None:
    folder = archives.folder(topic)
    (archives.path / topic / READING).write_text("no folder")
    with leased(folder) as snapshot:
        assert sorted(Path(path).name for path in snapshot.paths) == archives.names(topic)
        assert values(snapshot.paths) == [*range(2 * MANY)]


def test_a_disk_without_links_is_read_in_place(archives: Archives, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with leased(archives.folder(topic)) as snapshot:
        assert sorted(Path(path).name for path in snapshot.paths) == archives.names(topic)


def test_a_missing_file_is_named(archives: Archives, topic: str) -> None:
    name = archives.names(topic)[0]
    (archives.path / topic / name).unlink()
    with (
        pytest.raises(Unreadable, match=f"{name} is part of the archive, but missing"),
        leased(archives.folder(topic)),
    ):
        pass


def test_a_lease_creates_no_archive(archives: Archives) -> None:
    with pytest.raises(Unreadable, match="there is no archive in"), leased(archives.folder("nothing")):
        pass
    assert not archives.path.exists()
