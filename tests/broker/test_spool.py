"""
Byte strings in temporary files: they are read back, unused files are closed, and a full disk loses nothing.
"""

import os
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.logger import Logger, formatEvent

from kgateway.broker.partition.spool import InMemory, Spool, SpooledBytes, Stored, read_spooled

FILE_BYTES, FILES = 100, 16


def spool() -> Spool:
    return Spool(FILE_BYTES * FILES)


def kept(spool: Spool, data: bytes) -> SpooledBytes:
    piece = spool.keep(data)
    assert isinstance(piece, SpooledBytes)
    return piece


class Counting:
    """
    Counts how often it was asked to release its pieces.
    """

    told = 0

    def let_go(self) -> None:
        self.told += 1


def in_memory(spool: Spool, data: bytes) -> InMemory:
    stored = spool.keep(data)
    assert isinstance(stored, InMemory)
    assert (stored.read(), len(stored)) == (data, len(data))
    return stored


@given(st.lists(st.binary(min_size=1, max_size=60), max_size=60), st.data())
def test_bytes_are_read_back(written: Sequence[bytes], data: st.DataObject) -> None:
    """
    The order of writes and the pieces read together do not matter.
    """
    files = spool()
    pieces = [files.keep(each) for each in written]
    places = data.draw(st.lists(st.integers(0, len(written) - 1), max_size=20)) if written else []
    assert b"".join(read_spooled([pieces[place] for place in places])) == b"".join(written[place] for place in places)


def test_neighbours_are_read_in_one_call() -> None:
    files = spool()
    pieces: list[Stored] = [files.keep(b"%d" % number) for number in range(6)]
    assert read_spooled(pieces) == [b"012345"]
    some = [*pieces[:2], *pieces[4:], in_memory(Spool(0), b"memory"), pieces[3]]
    assert read_spooled(some) == [b"01", b"45", b"memory", b"3"]


def test_the_oldest_file_is_dropped() -> None:
    """
    It can be read while one of its pieces is referenced, and is closed with the last.
    """
    files, user = spool(), Counting()
    files.add_user(user)
    first, other = kept(files, b"a" * 50), kept(files, b"b" * 50)
    for _ in range(FILES - 1):
        kept(files, bytes(FILE_BYTES))
    assert not first.lifetime.is_over
    newest = kept(files, b"one argument too many")
    assert first.lifetime.is_over
    assert not newest.lifetime.is_over
    assert user.told == 1
    descriptor, gone = first.file.descriptor, weakref.ref(first.file)
    del first
    assert read_spooled([other]) == [b"b" * 50]
    del other
    assert gone() is None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_pieces_of_a_file_are_limited() -> None:
    files = Spool(1 << 30)
    first, last = kept(files, b"1"), [kept(files, b"1") for _ in range(8_192)][-1]
    assert first.file is not last.file


def test_files_have_no_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    piece = kept(spool(), b"some")
    assert not list(tmp_path.iterdir())
    assert piece.read() == b"some"


def test_a_spool_without_files() -> None:
    assert not in_memory(Spool(0), b"some").lifetime.is_over


def test_unwritable_bytes_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Later ones are written as soon as writes succeed.
    """
    folder = tmp_path / "later"
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    files = spool()
    first = in_memory(files, b"some")
    folder.mkdir()
    assert kept(files, b"more").read() == b"more"
    assert not first.lifetime.is_over
    for _ in range(FILES + 1):
        kept(files, bytes(FILE_BYTES))
    assert first.lifetime.is_over


def test_no_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    One log line tells the operator, and nothing fails.
    """
    told: list[Any] = []
    monkeypatch.setattr(Spool, "_log", Logger(observer=cast(Any, told.append)))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/proc/nowhere"])
    files = spool()
    for _ in range(3):
        in_memory(files, b"some")
    assert len(told) == 1
    assert "No usable temporary directory" in formatEvent(told[0])
    monkeypatch.undo()
    kept(files, b"more")


@pytest.mark.parametrize(("wanted", "times"), [("/proc/nowhere", 1), ("{used}/", 0), ("", 0)])
def test_another_folder_than_the_configured_one(
    wanted: str, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    One log line tells the operator where the files are.
    """
    told: list[Any] = []
    wanted = wanted.format(used=tmp_path)
    monkeypatch.setattr(Spool, "_log", Logger(observer=cast(Any, told.append)))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", wanted)
    monkeypatch.setenv("TEMP", str(tmp_path))
    files = spool()
    for _ in range(3):
        kept(files, bytes(FILE_BYTES))
    line = f"temporary files are in {tmp_path}, because TMPDIR={wanted} is not writable"
    assert [formatEvent(event) for event in told] == [line] * times


def test_bytes_in_memory_have_an_age(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    They are as old as the bytes written before them.
    """
    files = spool()
    before = kept(files, b"before")
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", _full)
        there = in_memory(files, b"some")
    assert there.lifetime is before.lifetime


def _full(*_: object) -> int:
    raise OSError(28, "No space left on device")


def test_a_disk_that_fills_up_amid_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The next write overwrites the incomplete one.
    """
    files, pwrite = spool(), os.pwrite
    before = kept(files, b"before")

    def full(descriptor: int, data: memoryview, position: int) -> int:
        if position > before.size:
            raise OSError(28, "No space left on device")
        return pwrite(descriptor, data[:3], position)

    monkeypatch.setattr(os, "pwrite", full)
    in_memory(files, b"amid it")
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, position: pwrite(descriptor, data[:2], position))
    behind = kept(files, b"behind")
    assert read_spooled([before, behind]) == [b"beforebehind"]


def test_lost_bytes_are_an_error() -> None:
    piece = kept(spool(), b"some")
    os.ftruncate(piece.file.descriptor, 2)
    with pytest.raises(OSError, match="gave 2 bytes instead of 4"):
        piece.read()
