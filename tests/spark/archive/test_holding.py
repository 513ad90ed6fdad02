"""
Archives that are read while jobs put their files together.
"""

import fcntl
import os
from pathlib import Path, PurePath
from typing import Any

import pyarrow.dataset as ds
import pytest

from kgateway.spark.archive.holding import LOCK, READING, held
from kgateway.spark.archive.merging import MANY
from kgateway.spark.failures import Unreadable
from tests.spark.archive.archives import Archives
from tests.spark.gateway import PARTITIONS, Topics, numbered


@pytest.fixture
def topic(topics: Topics, archives: Archives) -> str:
    """
    One whose archive has many small files.
    """
    name = topics.make()
    for number in range(MANY):
        topics.fill(name, numbered(2, first=2 * number))
        archives.archive(name)
    return name


def values(paths: tuple[PurePath, ...]) -> list[int]:
    """
    What the files have that are there.
    """
    tables = [ds.dataset(path, format="parquet").to_table(columns=["value"]) for path in paths]
    return sorted(int(row["value"]) for table in tables for row in table.to_pylist())


def test_files_stay_that_are_read(archives: Archives, topic: str) -> None:
    """
    Others take their place, and have been removed from the folder; what was begun to be read is there to its end.
    """
    folder = archives.folder(topic)
    with held(folder) as snapshot:
        before = archives.names(topic)
        assert archives.job(topic).merge() == len(before) == MANY * PARTITIONS
        assert len(archives.names(topic)) == PARTITIONS
        assert values(snapshot.paths) == [*range(2 * MANY)]
        assert archives.verify(topic).faults == 0
    assert not [*(archives.path / topic / READING).iterdir()]


def test_files_that_wait_to_be_published(archives: Archives, topic: str) -> None:
    """
    A job was killed when the manifest had them, and they were still where they had been made.
    """
    folder = archives.folder(topic)
    name = archives.names(topic)[0]
    os.replace(folder.path / name, folder.staged / name)
    with held(folder) as snapshot:
        assert values(snapshot.paths) == [*range(2 * MANY)]


def test_what_killed_readers_leave(archives: Archives, topic: str) -> None:
    """
    The next reader removes it, and so does the next job; not what somebody still reads.
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
        with held(folder):
            assert [path.exists() for path in left] == [False, False, True]
    archives.job(topic)
    assert not left[2].exists()


def test_an_archive_that_cannot_be_written(archives: Archives, topic: str) -> None:
    """
    Its files are read where they are.
    """
    folder = archives.folder(topic)
    (archives.path / topic / READING).write_text("no folder")
    with held(folder) as snapshot:
        assert sorted(Path(path).name for path in snapshot.paths) == archives.names(topic)
        assert values(snapshot.paths) == [*range(2 * MANY)]


def test_a_disk_without_links(archives: Archives, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The same.
    """

    def refuse(*arguments: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with held(archives.folder(topic)) as snapshot:
        assert sorted(Path(path).name for path in snapshot.paths) == archives.names(topic)


def test_a_file_that_is_gone(archives: Archives, topic: str) -> None:
    """
    It is named.
    """
    name = archives.names(topic)[0]
    (archives.path / topic / name).unlink()
    with pytest.raises(Unreadable, match=f"{name} is part of the archive, and not there"), held(archives.folder(topic)):
        pass


def test_no_archive(archives: Archives) -> None:
    """
    Nothing is made where there is none.
    """
    with pytest.raises(Unreadable, match="there is no archive in"), held(archives.folder("nothing")):
        pass
    assert not archives.path.exists()
