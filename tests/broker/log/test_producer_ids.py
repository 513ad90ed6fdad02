"""
Producer ids: none is given twice.
"""

from errno import ENOSPC
from pathlib import Path

import pytest

from kgateway.broker.log.folder_error import FolderError
from kgateway.broker.log.local_disk import LocalDisk
from kgateway.broker.log.producer_ids import BLOCK, ProducerIds


class CountingDisk(LocalDisk):
    """
    Counts what is written for good, and may be full.
    """

    def __init__(self) -> None:
        self.synced = 0
        self.full = False

    def write(self, path: Path, data: bytes, *, sync: bool) -> None:
        if self.full:
            raise OSError(ENOSPC, "No space left on device")
        self.synced += sync
        super().write(path, data, sync=sync)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kgateway.producer-ids"


def test_ids_are_given_in_order(path: Path) -> None:
    """
    The first id is 0, and each is the next.
    """
    ids = ProducerIds.open(path, LocalDisk())
    assert [ids.next() for _ in range(2 * BLOCK + 1)] == list(range(2 * BLOCK + 1))


def test_no_start_gives_an_id_of_another(path: Path) -> None:
    """
    Ids go on behind the block of the last start, however many of that were given.
    """
    first = ProducerIds.open(path, LocalDisk())
    first.next()
    second = ProducerIds.open(path, LocalDisk())
    assert [second.next() for _ in range(BLOCK)] == list(range(BLOCK, 2 * BLOCK))
    assert ProducerIds.open(path, LocalDisk()).next() == 2 * BLOCK


def test_a_block_is_sure_before_it_is_given(path: Path) -> None:
    """
    An id is given when its block is synced, and the disk is not asked again while the block lasts.
    """
    disk = CountingDisk()
    ids = ProducerIds.open(path, disk)
    assert disk.synced == 0
    for _ in range(BLOCK):
        ids.next()
        assert disk.synced == 1
    ids.next()
    assert disk.synced == 2


def test_a_block_can_be_reserved_apart(path: Path) -> None:
    """
    Whoever must not wait sees when the next id would, and has the block reserved elsewhere.
    """
    disk = CountingDisk()
    ids = ProducerIds.open(path, disk)
    assert ids.needs_block
    ids.reserve()
    for _ in range(BLOCK):
        assert not ids.needs_block
        ids.next()
    assert ids.needs_block
    assert disk.synced == 1


def test_a_block_may_come_early(path: Path) -> None:
    """
    A block that is reserved while there are ids is given after them.
    """
    disk = CountingDisk()
    ids = ProducerIds.open(path, disk)
    ids.next()
    ids.reserve()
    assert [ids.next() for _ in range(2 * BLOCK - 1)] == list(range(1, 2 * BLOCK))
    assert (ids.needs_block, disk.synced) == (True, 2)


def test_a_full_disk_gives_no_ids(path: Path) -> None:
    """
    Where no block can be reserved no id is given, until there is room.
    """
    disk = CountingDisk()
    ids = ProducerIds.open(path, disk)
    disk.full = True
    with pytest.raises(OSError, match="No space left"):
        ids.next()
    assert ids.needs_block
    disk.full = False
    assert ids.next() == 0


WRONG = [b"9" * 5000, "\u0667".encode(), b'"7"', b"-1", b"true", b"1.5", b"9223372036854775808", b"[" * 99999]


@pytest.mark.parametrize(
    "data",
    [b"", b"7", b"{}", b"\xff", b"\0\0\0", *(b'{"reserved": ' + data + b"}" for data in WRONG)],
    ids=lambda data: repr(data[:40]),
)
def test_a_damaged_file_is_refused(path: Path, data: bytes) -> None:
    """
    Where it is not known which ids were given none can be.
    """
    path.write_bytes(data)
    with pytest.raises(FolderError) as error:
        ProducerIds.open(path, LocalDisk())
    assert str(error.value) == (
        f"{path} is damaged; bring it back from a copy, or write into it "
        '{"reserved": N} with an N above every producer id that was ever given'
    )


def test_a_file_that_cannot_be_read_is_refused(path: Path) -> None:
    """
    A file that is there and cannot be read is not taken for missing.
    """
    path.mkdir()
    with pytest.raises(FolderError, match=r"producer-ids cannot be opened: Is a directory"):
        ProducerIds.open(path, LocalDisk())
