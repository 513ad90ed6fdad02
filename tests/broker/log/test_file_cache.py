"""
Which files are open, and for how long.
"""

from pathlib import Path

import pytest

from kgateway.broker.log.files.file_cache import FileCache
from tests.broker.log.recording_disk import RecordingDisk


class Opened:
    """
    Files a, b, c and d, of which two may be open.
    """

    def __init__(self, folder: Path) -> None:
        self.disk = RecordingDisk()
        self.files = FileCache(self.disk, 2)
        self.a, self.b, self.c, self.d = (folder / name for name in "abcd")
        for path in (self.a, self.b, self.c, self.d):
            path.touch()

    @property
    def names(self) -> str:
        return "".join(sorted(file.path.name for file in self.disk.opened))


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    return Opened(tmp_path)


def test_files_are_opened_once(opened: Opened) -> None:
    """
    An open file is returned again.
    """
    assert opened.files.get(opened.a) is opened.files.get(opened.a)
    assert opened.disk.count("open") == len(opened.files) == 1


def test_files_are_made_where_that_is_asked_for(opened: Opened, tmp_path: Path) -> None:
    """
    A missing file is created on request, or else an error.
    """
    with pytest.raises(FileNotFoundError):
        opened.files.get(tmp_path / "new")
    opened.files.get(tmp_path / "new", create=True)
    assert (tmp_path / "new").exists()


def test_those_used_last_stay_open(opened: Opened) -> None:
    """
    Beyond the limit the least recently used file is closed.
    """
    for path in (opened.a, opened.b, opened.a, opened.c):
        opened.files.get(path)
    assert (opened.names, len(opened.files)) == ("ac", 2)


def test_held_files_stay_open(opened: Opened) -> None:
    """
    A file in use is not closed, however long ago it was opened, even beyond the limit.
    """
    held = [opened.files.hold(path) for path in (opened.a, opened.b)]
    opened.files.get(opened.c)
    assert opened.names == "abc"
    opened.files.release(held[0])
    opened.files.get(opened.d)
    assert opened.names == "bcd"
    assert held[1].read(0, 1) == b""


def test_a_file_just_opened_is_not_the_one_that_goes(opened: Opened) -> None:
    """
    If all others are in use, the newest is kept, because its user needs it.
    """
    for path in (opened.a, opened.b):
        opened.files.hold(path)
    assert opened.files.get(opened.c).read(0, 1) == b""


def test_closed_files_are_closed_at_once(opened: Opened) -> None:
    """
    A file that nobody uses is closed on request; one that is not open is no error.
    """
    opened.files.get(opened.a)
    opened.files.close(opened.a)
    opened.files.close(opened.b)
    assert (opened.names, len(opened.files)) == ("", 0)


def test_a_held_file_is_closed_when_it_is_let_go(opened: Opened) -> None:
    """
    Its users finish first, even two of them; the next one to open its path meanwhile gets another file.
    """
    first, second = opened.files.hold(opened.a), opened.files.hold(opened.a)
    opened.files.close(opened.a)
    other = opened.files.get(opened.a)
    assert other is not first
    opened.files.release(first)
    assert opened.disk.opened == {second, other}
    opened.files.release(second)
    assert opened.disk.opened == {other}


def test_holding_again_after_a_close(opened: Opened) -> None:
    """
    Releasing a closed file does not close the one that is open under its path now.
    """
    first = opened.files.hold(opened.a)
    opened.files.close(opened.a)
    second = opened.files.hold(opened.a)
    opened.files.release(first)
    opened.files.release(second)
    assert opened.disk.opened == {second}


def test_a_folder_is_closed_by_itself(opened: Opened, tmp_path: Path) -> None:
    """
    All files in it are closed, in use or not, and no others; a file that was closed and reopened is found.
    """
    (tmp_path / "in").mkdir()
    inside = [tmp_path / "in" / name for name in "xy"]
    for path in inside:
        path.touch()
    files = FileCache(opened.disk, 9)
    held = files.hold(inside[0])
    for path in (opened.a, inside[1], inside[0], opened.b):
        files.get(path)
    files.close(opened.b)
    files.close_in(tmp_path / "in")
    assert (opened.names, len(files)) == ("ax", 1)
    files.release(held)
    files.get(inside[1])
    files.close_in(tmp_path / "in")
    files.close_in(tmp_path / "none")
    assert (opened.names, len(files)) == ("a", 1)


def test_a_folder_is_found_without_looking_through_all(opened: Opened, tmp_path: Path) -> None:
    """
    Deleting a topic of a thousand partitions examines only its own files, while thousands of others are open.
    """

    class Counted(type(tmp_path)):  # type: ignore[misc]  # a path of this system
        parents_asked = 0

        @property
        def parent(self) -> Path:
            Counted.parents_asked += 1
            return super().parent  # type: ignore[no-any-return]

    files = FileCache(opened.disk, 9)
    for path in (opened.a, opened.b, opened.c):
        files.get(Counted(path))
    Counted.parents_asked = 0
    files.close_in(tmp_path / "other")
    assert (Counted.parents_asked, len(files)) == (0, 3)


def test_what_goes_for_others_is_of_no_folder(opened: Opened, tmp_path: Path) -> None:
    """
    A file that was closed for lack of use is not closed again with its folder.
    """
    for path in (opened.a, opened.b, opened.c):
        opened.files.get(path)
    opened.files.close_in(tmp_path)
    assert (opened.names, len(opened.files)) == ("", 0)
    assert not opened.files._paths_by_folder


def test_all_are_closed_in_the_end(opened: Opened) -> None:
    """
    All are closed at once, except those in use.
    """
    held = opened.files.hold(opened.a)
    opened.files.get(opened.b)
    opened.files.close_all()
    assert (opened.names, len(opened.files)) == ("a", 0)
    opened.files.release(held)
    assert opened.names == ""
