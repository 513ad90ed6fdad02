"""
Reads of damaged or unreadable logs.
"""

from errno import EIO
from functools import partial
from pathlib import Path

import pytest
from twisted.logger import capturedLogs, formatEvent

from kgateway.broker.log.partition import reader
from kgateway.broker.log.segments.file_names import file_name
from kgateway.wire.errors import ErrorCode
from tests.broker.behaviour import appended, batch, fetched, offsets, refusal
from tests.broker.log.fixtures import SIZE, FilledLog
from tests.broker.log.log_world import LogWorld

LENGTH_AT = 8
IN_RECORDS = 70
CRC = "the CRC of the batch does not match its contents"


@pytest.fixture
def filled(tmp_path: Path) -> FilledLog:
    return FilledLog(tmp_path / "t-0")


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Few bytes are read at once.
    """
    monkeypatch.setattr(reader, "READ_BYTES", 2 * SIZE + 9)


@pytest.mark.parametrize("cold", [False, True])
def test_damaged_batches_are_not_returned(cold: bool, filled: FilledLog) -> None:
    """
    Good batches around a damaged one are returned; a read of the damaged one fails.
    """
    filled.damage(6, IN_RECORDS)
    filled.open()
    filled.disk.cold = cold
    assert [filled.read(offset) for offset in (4, 5, 7, 8)] == [[4, 5], [5], [7], [8, 9]]
    for _ in range(2):
        error = refusal(lambda: filled.ask(6))
        assert error.code is ErrorCode.CORRUPT_MESSAGE
        name = f"{filled.folder.name}/{file_name(4, '.log')}"
        assert error.message == f"{name} cannot be read for offset 6: at byte {2 * SIZE}: {CRC}"
    assert filled.read(4) == [4, 5]


def test_first_damage_counts(filled: FilledLog) -> None:
    """
    It counts even if the other one was found before it.
    """
    filled.disk.cold = True
    filled.damage(1, IN_RECORDS)
    filled.damage(2, LENGTH_AT)
    segment = filled.segment_list.segments[0]
    segment.indexes.offsets.cut(0, 0)
    assert filled.read(0, 4 * SIZE - 1) == [0]


def test_damage_is_logged_once(filled: FilledLog) -> None:
    """
    Each damaged batch is logged once, not for every consumer that meets it.
    """
    for offset in (5, 9):
        filled.damage(offset, IN_RECORDS)
    filled.disk.cold = True
    with capturedLogs() as logged:
        for offset in (5, 5, 9, 5):
            refusal(partial(filled.ask, offset))
    told = [formatEvent(event) for event in logged]
    assert [text.partition(" cannot")[0] for text in told] == [
        f"{filled.folder.name}/{file_name(base, '.log')}" for base in (4, 8)
    ]


@pytest.mark.parametrize("operation", ["open .log", "read_at .log"])
def test_read_errors_are_storage_errors(operation: str, filled: FilledLog) -> None:
    """
    The client gets KAFKA_STORAGE_ERROR, and may succeed later.
    """
    filled.disk.cold = True
    filled.runtime.files.close_all()
    filled.disk.failing[operation] = EIO
    error = refusal(lambda: filled.ask(4))
    assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert error.message
    assert "Input/output error" in error.message
    filled.disk.failing.clear()
    assert filled.read(4) == [4, 5, 6, 7]
    filled.runtime.files.close_all()
    assert not filled.disk.opened


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("offset", [2, 3])
def test_pieces_before_damage_are_returned(offset: int, filled: FilledLog) -> None:
    filled.disk.cold = True
    filled.damage(offset, IN_RECORDS)
    assert filled.read(0) == list(range(offset))
    assert refusal(lambda: filled.ask(offset)).code is ErrorCode.CORRUPT_MESSAGE


def test_a_changed_leader_epoch(tmp_path: Path) -> None:
    """
    No CRC covers it, but a file tells when each epoch began: a batch that tells another one is not given out, be it
    from before the crash or from this process. What came after the last settling only its batches tell of.
    """
    world = LogWorld(tmp_path)
    partition = world.log_partition()
    for _ in range(3):
        appended(partition, batch())
    world.tick()
    for _ in range(2):
        appended(partition, batch())
    world.killed()
    partition = world.again()
    for _ in range(2):
        appended(partition, batch())
    path = tmp_path / "t-0" / file_name(0, ".log")
    data = bytearray(path.read_bytes())
    for number in (1, 3, 5):
        data[number * SIZE + 15] ^= 4  # the last byte of four
    path.write_bytes(data)
    world.disk.cold = True
    assert [offsets(fetched(partition, offset)) for offset in (0, 2, 6)] == [[0], [2, 3, 4], [6]]
    for offset, told in ((1, 4), (5, 5)):
        error = refusal(partial(fetched, partition, offset))
        assert error.code is ErrorCode.CORRUPT_MESSAGE
        assert str(error.message).endswith(f"leader epoch {told}, where {told ^ 4} should be")
