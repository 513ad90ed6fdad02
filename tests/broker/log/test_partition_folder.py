"""
Folders of partitions: which topic they belong to, and what becomes of others.
"""

from dataclasses import replace
from errno import EIO
from pathlib import Path

import pytest

from kgateway.broker.log.data_folder.partition_folder import (
    METADATA,
    folder_of,
    mark_deleted,
    prepare_folder,
    remove_deleted,
    rename_strays,
)
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import PartitionState, Topic
from kgateway.wire.uuids import Uuid
from tests.broker.log.recording_disk import RecordingDisk

LED = PartitionState(1, 0, (1,), (1,))
ORDERS = Topic(Uuid(range(16)), "orders", (LED,) * 2, TopicConfig())
OLDER = replace(ORDERS, id=Uuid(range(16, 32)))


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def test_metadata_is_as_kafka_writes_it(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    A new folder has the file with its topic's id.
    """
    folder = prepare_folder(disk, tmp_path, ORDERS, 1)
    assert folder == folder_of(tmp_path, ORDERS, 1) == tmp_path / "orders-1"
    assert (folder / METADATA).read_bytes() == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n"


def test_a_folder_is_found_again(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    The folder of the same topic is unchanged.
    """
    folder = prepare_folder(disk, tmp_path, ORDERS, 0)
    (folder / "kept").touch()
    assert prepare_folder(disk, tmp_path, ORDERS, 0) == folder
    assert names(folder) == ["kept", METADATA]
    assert disk.count("write") == 1


def test_the_folder_of_an_older_topic_is_put_away(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    The remains of a deleted topic are not taken for those of a new one of the same name.
    """
    (prepare_folder(disk, tmp_path, OLDER, 0) / "old").touch()
    folder = prepare_folder(disk, tmp_path, ORDERS, 0)
    assert names(tmp_path) == ["orders-0", f"orders-0.{OLDER.id}-delete"]
    assert names(folder) == [METADATA]
    assert ORDERS.id == Uuid.parse((folder / METADATA).read_text().split()[-1])


@pytest.mark.parametrize("data", [b"", b"version: 0\ntopic_id: AAEC", b"version: 0\ntopic_id: " + b"*" * 22 + b"\n"])
def test_metadata_that_was_not_finished(data: bytes, disk: RecordingDisk, tmp_path: Path) -> None:
    """
    A folder whose file a crash has truncated belongs to the topic, with its content, and the file is rewritten.
    """
    folder = prepare_folder(disk, tmp_path, ORDERS, 0)
    (folder / METADATA).write_bytes(data)
    (folder / "kept").touch()
    prepare_folder(disk, tmp_path, ORDERS, 0)
    assert names(folder) == ["kept", METADATA]
    assert (folder / METADATA).read_text().endswith(f"topic_id: {ORDERS.id}\n")


def test_long_names_can_be_put_away(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    A name of the maximum length is cut if the folder's name would be too long.
    """
    long = replace(ORDERS, name="n" * 249)
    mark_deleted(disk, prepare_folder(disk, tmp_path, long, 0), long.id)
    (name,) = names(tmp_path)
    assert name.endswith(f".{long.id}-delete")
    assert len(name) == 255


def test_what_was_put_away_is_removed(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    Folders of deleted topics are removed with their content; others are kept.
    """
    for index in range(2):
        (prepare_folder(disk, tmp_path, ORDERS, index) / "file").touch()
    mark_deleted(disk, folder_of(tmp_path, ORDERS, 0), ORDERS.id)
    remove_deleted(disk, tmp_path)
    assert names(tmp_path) == ["orders-1"]


def test_what_cannot_be_removed_stays(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    A folder that cannot be removed is left for later, and does not stop others.
    """
    for index in range(2):
        (prepare_folder(disk, tmp_path, ORDERS, index) / f"file.{index}").touch()
        mark_deleted(disk, folder_of(tmp_path, ORDERS, index), ORDERS.id)
    disk.failing["remove .0"] = EIO
    remove_deleted(disk, tmp_path)
    assert names(tmp_path) == [f"orders-0.{ORDERS.id}-delete"]
    disk.failing.clear()
    remove_deleted(disk, tmp_path)
    assert names(tmp_path) == []


def test_strays_are_put_aside(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    Folders of partitions without a topic are renamed with their content; everything else is unchanged.
    """
    for name in ("orders-0", "orders-2", "gone-0", "lost+found", "meta.properties", "a-0.id-delete", "b-1.0-stray"):
        (tmp_path / name).mkdir()
    (tmp_path / "gone-0" / "kept").touch()
    assert sorted(rename_strays(disk, tmp_path, [ORDERS])) == ["gone-0.0-stray", "orders-2.0-stray"]
    left = ["a-0.id-delete", "b-1.0-stray", "gone-0.0-stray", "lost+found", "meta.properties"]
    assert names(tmp_path) == [*left, "orders-0", "orders-2.0-stray"]
    assert names(tmp_path / "gone-0.0-stray") == ["kept"]
    assert disk.count("sync_folder") == 1


def test_strays_do_not_meet(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    A stray folder whose new name is taken gets the next number; without stray folders nothing is synced.
    """
    for number in range(3):
        (tmp_path / "gone-0").mkdir()
        assert rename_strays(disk, tmp_path, []) == [f"gone-0.{number}-stray"]
    assert rename_strays(disk, tmp_path, []) == []
    assert disk.count("sync_folder") == 3


def test_long_names_can_be_put_aside(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    The name of a stray folder is cut if the new one would be too long.
    """
    (tmp_path / ("n" * 249 + "-10")).mkdir()
    assert rename_strays(disk, tmp_path, []) == ["n" * 240 + ".0-stray"]
