"""
The checkpoint files: up to where logs are known to be good.
"""

from pathlib import Path

import pytest

from kgateway.broker.log.data_folder.checkpoints import SETTLED, SYNCED, Checkpoints
from kgateway.topic_partition import TopicPartition
from tests.broker.log.recording_disk import RecordingDisk

PLACES = {
    TopicPartition(*key): offset
    for key, offset in {("orders", 0): 7, ("a.b-c_d", 12): 0, ("-", 1): 1 << 40, ("x-1", 1): 3}.items()
}


def checkpoints(folder: Path, *, trust_settled: bool = True) -> Checkpoints:
    return Checkpoints(folder, RecordingDisk(), trust_settled=trust_settled)


def test_files_are_as_kafka_writes_them(tmp_path: Path) -> None:
    """
    They have a version, the number of lines, and one line with topic, partition and offset each.
    """
    written = checkpoints(tmp_path)
    written.synced[TopicPartition("orders", 0)], written.settled[TopicPartition("x-1", 3)] = 5, 6
    written.save()
    assert (tmp_path / SYNCED).read_bytes() == b"0\n1\norders 0 5\n"
    assert (tmp_path / SETTLED).read_bytes() == b"0\n1\nx-1 3 6\n"


def test_what_is_saved_is_found(tmp_path: Path) -> None:
    """
    All valid topic names are read back, from each file by itself.
    """
    written = checkpoints(tmp_path)
    written.synced |= PLACES
    written.settled |= {TopicPartition("y", 0): 1}
    written.save()
    found = checkpoints(tmp_path)
    assert (found.synced, found.settled) == (PLACES, {TopicPartition("y", 0): 1})


def test_settled_is_not_always_to_be_trusted(tmp_path: Path) -> None:
    """
    After the death of the machine only synced offsets count.
    """
    written = checkpoints(tmp_path)
    written.synced |= PLACES
    written.settled |= PLACES
    written.save()
    found = checkpoints(tmp_path, trust_settled=False)
    assert (found.synced, found.settled) == (PLACES, {})


def test_nothing_is_known_at_first(tmp_path: Path) -> None:
    """
    Without files nothing is known, and none are created until a checkpoint is written.
    """
    found = checkpoints(tmp_path)
    assert (found.synced, found.settled, list(tmp_path.iterdir())) == ({}, {}, [])


def test_partitions_are_forgotten(tmp_path: Path) -> None:
    """
    A deleted partition is in neither file; an unknown one is no error.
    """
    found = checkpoints(tmp_path)
    found.synced |= PLACES
    found.settled |= PLACES
    for _ in range(2):
        found.forget(TopicPartition("orders", 0))
    assert ("orders", 0) not in found.synced.keys() | found.settled.keys()
    assert len(found.synced) == len(found.settled) == 3


def test_files_are_synced_where_that_is_asked_for(tmp_path: Path) -> None:
    """
    Only the last write syncs both files.
    """
    disk = RecordingDisk()
    found = Checkpoints(tmp_path, disk, trust_settled=True)
    found.save()
    assert disk.count("sync") == 0
    found.save(sync=True)
    assert (disk.count("sync", SYNCED), disk.count("sync", SETTLED)) == (1, 1)


def test_a_name_that_was_forgotten_is_forgotten_for_good(tmp_path: Path) -> None:
    """
    Before the name is used again the files are synced, even if they were written without it since.
    """
    disk = RecordingDisk()
    found = Checkpoints(tmp_path, disk, trust_settled=True)
    found.synced |= PLACES
    found.forget(TopicPartition("orders", 0))
    found.save()
    found.forget_earlier("orders")
    assert (disk.count("sync", SYNCED), disk.count("sync", SETTLED)) == (1, 1)
    found.forget_earlier("orders")
    assert disk.count("sync", SYNCED) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"0\n",
        b"0\n0",
        b"1\n1\nt 0 5\n",
        b"0\n2\nt 0 5\n",
        b"0\n1\nt 0 5\nt 1 6\n",
        b"0\n1\nt 0 -5\n",
        b"0\n1\nt 0 x\n",
        b"0\n1\nt 5\n",
        b"0\nx\nt 0 5\n",
        b"0\n1\nt\xff 0 5\n",
        b"0\n1\nt 0 " + b"9" * 5000 + b"\n",
        b"0\n1\nt " + b"9" * 5000 + b" 5\n",
        b"0\n" + b"9" * 5000 + b"\nt 0 5\n",
        "0\n1\nt 0 \u0663\n".encode(),
        b"0\n1\nt 0 5 \n",
    ],
    ids=lambda data: repr(data[:30]),
)
def test_damaged_files_say_nothing(data: bytes, tmp_path: Path) -> None:
    """
    A damaged file only costs time: the other one still counts.
    """
    written = checkpoints(tmp_path)
    written.settled |= PLACES
    written.save()
    (tmp_path / SYNCED).write_bytes(data)
    found = checkpoints(tmp_path)
    assert (found.synced, found.settled) == ({}, PLACES)


def test_a_file_cut_anywhere_says_no_more_than_is_so(tmp_path: Path) -> None:
    """
    Offsets may be behind the truth, never ahead of it.
    """
    written = checkpoints(tmp_path)
    written.synced |= PLACES
    written.save()
    data = (tmp_path / SYNCED).read_bytes()
    for size in range(len(data)):
        (tmp_path / SYNCED).write_bytes(data[:size])
        for place, offset in checkpoints(tmp_path).synced.items():
            assert offset <= PLACES[place], size
