"""
Producer ids: none is assigned twice.
"""

from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import execute

from kgateway.broker.log.data_folder.folder_error import FolderError
from kgateway.broker.log.data_folder.producer_ids import BLOCK, ProducerIds
from kgateway.broker.log.files.local_disk import LocalDisk
from kgateway.wire.errors import ErrorCode
from tests.broker.behaviour import refusal, result
from tests.broker.log.log_brokers import Threads, log_runtime


class CountingDisk(LocalDisk):
    """
    Counts synced writes, and may be full.
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


def opened(path: Path, disk: LocalDisk | None = None, in_thread: Any = execute) -> ProducerIds:
    return ProducerIds.open(path, log_runtime(disk or LocalDisk(), in_thread))


def given(ids: ProducerIds, count: int) -> list[int]:
    return [result(ids.next()) for _ in range(count)]


def test_ids_are_given_in_order(path: Path) -> None:
    """
    The first id is 0, and each is the next.
    """
    assert given(opened(path), 2 * BLOCK + 1) == list(range(2 * BLOCK + 1))


def test_each_start_continues_after_the_last_block(path: Path) -> None:
    """
    Ids continue after the last start's block, however many of it were used.
    """
    given(opened(path), 1)
    assert given(opened(path), BLOCK) == list(range(BLOCK, 2 * BLOCK))
    assert given(opened(path), 1) == [2 * BLOCK]


def test_block_is_synced_before_its_ids_are_assigned(path: Path) -> None:
    """
    The disk is not asked again until the block is used up.
    """
    disk = CountingDisk()
    ids = opened(path, disk)
    assert disk.synced == 0
    for _ in range(BLOCK):
        given(ids, 1)
        assert disk.synced == 1
    given(ids, 1)
    assert disk.synced == 2


def test_a_block_is_reserved_in_a_thread(path: Path) -> None:
    """
    All that ask meanwhile wait for the same block, and get its ids in order; what is reserved is given without waiting.
    """
    disk, threads = CountingDisk(), Threads()
    ids = opened(path, disk, threads)
    threads.slow = True
    waiting = [ids.next() for _ in range(3)]
    assert (len(threads), disk.synced, [each.called for each in waiting]) == (1, 0, [False] * 3)
    threads.work()
    assert [result(each) for each in waiting] == [0, 1, 2]
    assert given(ids, BLOCK - 3) == list(range(3, BLOCK))
    assert (len(threads), disk.synced) == (0, 1)
    assert not ids.next().called


def test_more_than_a_block_may_be_waited_for(path: Path) -> None:
    """
    If more wait than a block has ids, the next block is reserved for the rest.
    """
    disk, threads = CountingDisk(), Threads()
    ids = opened(path, disk, threads)
    threads.slow = True
    waiting = [ids.next() for _ in range(BLOCK + 2)]
    threads.work()
    assert [each.called for each in waiting].count(False) == 2
    threads.work()
    assert [result(each) for each in waiting] == list(range(BLOCK + 2))
    assert disk.synced == 2


def test_full_disk_assigns_no_ids(path: Path) -> None:
    """
    If no block can be reserved, no id is assigned until there is room.
    """
    disk = CountingDisk()
    ids = opened(path, disk)
    disk.full = True
    error = refusal(ids.next)
    assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert error.message == "cannot assign a producer id: No space left on device"
    disk.full = False
    assert given(ids, 1) == [0]


WRONG = [b"9" * 5000, "\u0667".encode(), b'"7"', b"-1", b"true", b"1.5", b"9223372036854775808", b"[" * 99999]


@pytest.mark.parametrize(
    "data",
    [b"", b"7", b"{}", b"\xff", b"\0\0\0", *(b'{"reserved": ' + data + b"}" for data in WRONG)],
    ids=lambda data: repr(data[:40]),
)
def test_a_damaged_file_is_refused(path: Path, data: bytes) -> None:
    """
    If it is unknown which ids were assigned, none can be.
    """
    path.write_bytes(data)
    with pytest.raises(FolderError) as error:
        opened(path)
    assert str(error.value) == (
        f"{path} is damaged; restore it from a copy, or write "
        '{"reserved": N} into it, with an N above every producer id that was ever assigned'
    )


def test_unreadable_file_is_refused(path: Path) -> None:
    """
    A file that exists but cannot be read is not treated as missing.
    """
    path.mkdir()
    with pytest.raises(FolderError, match=r"producer-ids cannot be opened: Is a directory"):
        opened(path)
