"""
Bytes in temporary files: they come back as they were, files go when nobody needs them, and a full disk loses nothing.
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

from kgateway.broker.spool import InMemory, Piece, Spool, Stored, read

FILE_BYTES, FILES = 100, 16


def spool() -> Spool:
    return Spool(FILE_BYTES * FILES)


def kept(spool: Spool, data: bytes) -> Piece:
    piece = spool.keep(data)
    assert isinstance(piece, Piece)
    return piece


class Counting:
    """
    How often it was told to let go.
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
def test_bytes_come_back(written: Sequence[bytes], data: st.DataObject) -> None:
    """
    Whatever was written between, and whichever pieces are read together.
    """
    files = spool()
    pieces = [files.keep(each) for each in written]
    places = data.draw(st.lists(st.integers(0, len(written) - 1), max_size=20)) if written else []
    assert b"".join(read([pieces[place] for place in places])) == b"".join(written[place] for place in places)


def test_neighbours_are_read_at_once() -> None:
    files = spool()
    pieces: list[Stored] = [files.keep(b"%d" % number) for number in range(6)]
    assert read(pieces) == [b"012345"]
    some = [*pieces[:2], *pieces[4:], in_memory(Spool(0), b"memory"), pieces[3]]
    assert read(some) == [b"01", b"45", b"memory", b"3"]


def test_the_oldest_file_is_given_up() -> None:
    """
    What is in it can be read as long as anybody refers to it; with the last piece it is closed.
    """
    files, user = spool(), Counting()
    files.serve(user)
    first, other = kept(files, b"a" * 50), kept(files, b"b" * 50)
    for _ in range(FILES - 1):
        kept(files, bytes(FILE_BYTES))
    assert not first.age.is_over
    newest = kept(files, b"one too many")
    assert first.age.is_over
    assert not newest.age.is_over
    assert user.told == 1
    descriptor, gone = first.file.descriptor, weakref.ref(first.file)
    del first
    assert read([other]) == [b"b" * 50]
    del other
    assert gone() is None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_file_has_so_many_pieces_at_most() -> None:
    files = Spool(1 << 30)
    first, last = kept(files, b"1"), [kept(files, b"1") for _ in range(8_192)][-1]
    assert first.file is not last.file


def test_files_have_no_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    piece = kept(spool(), b"some")
    assert not list(tmp_path.iterdir())
    assert piece.read() == b"some"


def test_none_are_wanted() -> None:
    assert not in_memory(Spool(0), b"some").age.is_over


def test_what_cannot_be_written_stays_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Until it can again.
    """
    folder = tmp_path / "later"
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    files = spool()
    first = in_memory(files, b"some")
    folder.mkdir()
    assert kept(files, b"more").read() == b"more"
    assert not first.age.is_over
    for _ in range(FILES + 1):
        kept(files, bytes(FILE_BYTES))
    assert first.age.is_over


def test_no_place_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The operator is told once, until there is one; nothing fails.
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
def test_another_folder_than_the_one_wanted(
    wanted: str, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The operator is told once where the files are.
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
    line = f"temporary files are in {tmp_path} in place of TMPDIR={wanted}, where none can be written"
    assert [formatEvent(event) for event in told] == [line] * times


def test_what_a_full_disk_left_in_memory_has_an_age(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    That of what was written before.
    """
    files = spool()
    before = kept(files, b"before")
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", _full)
        there = in_memory(files, b"some")
    assert there.age is before.age


def _full(*_: object) -> int:
    raise OSError(28, "No space left on device")


def test_a_disk_that_is_full_amid_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    What was written of it is written over.
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
    assert read([before, behind]) == [b"beforebehind"]


def test_bytes_that_are_lost_are_told() -> None:
    piece = kept(spool(), b"some")
    os.ftruncate(piece.file.descriptor, 2)
    with pytest.raises(OSError, match="gave 2 bytes instead of 4"):
        piece.read()
