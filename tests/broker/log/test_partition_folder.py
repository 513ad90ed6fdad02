"""
Folders of partitions: whose they are, and what becomes of those that are nobody's.
"""

from dataclasses import replace
from errno import EIO
from pathlib import Path

import pytest

from kgateway.broker.log.partition_folder import (
    METADATA,
    folder_of,
    prepare,
    put_away,
    put_strays_aside,
    remove_deleted,
)
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import PartitionState, Topic
from kgateway.wire.uuids import Uuid
from tests.broker.log.noted_disk import NotedDisk

LED = PartitionState(1, 0, (1,), (1,))
ORDERS = Topic(Uuid(range(16)), "orders", (LED,) * 2, TopicConfig())
OLDER = replace(ORDERS, id=Uuid(range(16, 32)))


@pytest.fixture
def disk() -> NotedDisk:
    return NotedDisk()


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def test_metadata_is_as_kafka_writes_it(disk: NotedDisk, tmp_path: Path) -> None:
    """
    A new folder has the file that tells which topic it is of.
    """
    folder = prepare(disk, tmp_path, ORDERS, 1)
    assert folder == folder_of(tmp_path, ORDERS, 1) == tmp_path / "orders-1"
    assert (folder / METADATA).read_bytes() == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n"


def test_a_folder_is_found_again(disk: NotedDisk, tmp_path: Path) -> None:
    """
    The folder of the same topic stays as it is.
    """
    folder = prepare(disk, tmp_path, ORDERS, 0)
    (folder / "kept").touch()
    assert prepare(disk, tmp_path, ORDERS, 0) == folder
    assert names(folder) == ["kept", METADATA]
    assert disk.count("write") == 1


def test_the_folder_of_an_older_topic_is_put_away(disk: NotedDisk, tmp_path: Path) -> None:
    """
    What a deleted topic of the same name has left is not taken for the new one's.
    """
    (prepare(disk, tmp_path, OLDER, 0) / "old").touch()
    folder = prepare(disk, tmp_path, ORDERS, 0)
    assert names(tmp_path) == ["orders-0", f"orders-0.{OLDER.id}-delete"]
    assert names(folder) == [METADATA]
    assert ORDERS.id == Uuid.parse((folder / METADATA).read_text().split()[-1])


@pytest.mark.parametrize("data", [b"", b"version: 0\ntopic_id: AAEC", b"version: 0\ntopic_id: " + b"*" * 22 + b"\n"])
def test_metadata_that_was_not_finished(data: bytes, disk: NotedDisk, tmp_path: Path) -> None:
    """
    A folder whose file a crash has cut is the topic's, with what is in it, and gets the file anew.
    """
    folder = prepare(disk, tmp_path, ORDERS, 0)
    (folder / METADATA).write_bytes(data)
    (folder / "kept").touch()
    prepare(disk, tmp_path, ORDERS, 0)
    assert names(folder) == ["kept", METADATA]
    assert (folder / METADATA).read_text().endswith(f"topic_id: {ORDERS.id}\n")


def test_long_names_can_be_put_away(disk: NotedDisk, tmp_path: Path) -> None:
    """
    A name that is as long as topics' may be is cut where a folder's would be too long.
    """
    long = replace(ORDERS, name="n" * 249)
    put_away(disk, prepare(disk, tmp_path, long, 0), long.id)
    (name,) = names(tmp_path)
    assert name.endswith(f".{long.id}-delete")
    assert len(name) == 255


def test_what_was_put_away_is_removed(disk: NotedDisk, tmp_path: Path) -> None:
    """
    Folders of deleted topics go with all that is in them; others stay.
    """
    for index in range(2):
        (prepare(disk, tmp_path, ORDERS, index) / "file").touch()
    put_away(disk, folder_of(tmp_path, ORDERS, 0), ORDERS.id)
    remove_deleted(disk, tmp_path)
    assert names(tmp_path) == ["orders-1"]


def test_what_cannot_be_removed_stays(disk: NotedDisk, tmp_path: Path) -> None:
    """
    A folder that the disk keeps waits for another time, and holds up no other.
    """
    for index in range(2):
        (prepare(disk, tmp_path, ORDERS, index) / f"file.{index}").touch()
        put_away(disk, folder_of(tmp_path, ORDERS, index), ORDERS.id)
    disk.failing["remove .0"] = EIO
    remove_deleted(disk, tmp_path)
    assert names(tmp_path) == [f"orders-0.{ORDERS.id}-delete"]
    disk.failing.clear()
    remove_deleted(disk, tmp_path)
    assert names(tmp_path) == []


def test_strays_are_put_aside(disk: NotedDisk, tmp_path: Path) -> None:
    """
    Folders of partitions that no topic has get another name, and keep what is in them; all else is left alone.
    """
    for name in ("orders-0", "orders-2", "gone-0", "lost+found", "meta.properties", "a-0.id-delete", "b-1.0-stray"):
        (tmp_path / name).mkdir()
    (tmp_path / "gone-0" / "kept").touch()
    assert sorted(put_strays_aside(disk, tmp_path, [ORDERS])) == ["gone-0.0-stray", "orders-2.0-stray"]
    left = ["a-0.id-delete", "b-1.0-stray", "gone-0.0-stray", "lost+found", "meta.properties"]
    assert names(tmp_path) == [*left, "orders-0", "orders-2.0-stray"]
    assert names(tmp_path / "gone-0.0-stray") == ["kept"]
    assert disk.count("sync_folder") == 1


def test_strays_do_not_meet(disk: NotedDisk, tmp_path: Path) -> None:
    """
    A stray whose name was put aside before gets the next number; where there are none nothing is synced.
    """
    for number in range(3):
        (tmp_path / "gone-0").mkdir()
        assert put_strays_aside(disk, tmp_path, []) == [f"gone-0.{number}-stray"]
    assert put_strays_aside(disk, tmp_path, []) == []
    assert disk.count("sync_folder") == 3


def test_long_names_can_be_put_aside(disk: NotedDisk, tmp_path: Path) -> None:
    """
    The name of a stray is cut where the new one would be too long.
    """
    (tmp_path / ("n" * 249 + "-10")).mkdir()
    assert put_strays_aside(disk, tmp_path, []) == ["n" * 240 + ".0-stray"]
