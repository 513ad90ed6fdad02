"""
Files of this machine.
"""

import resource
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kgateway.broker.log.files.disk import NotOpened
from kgateway.broker.log.files.local_disk import LocalDisk


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """
    Limit the size of files, as a full disk would.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 1, 10, 11, 19])
def test_an_append_that_falls_short_leaves_nothing(room: int, tmp_path: Path) -> None:
    """
    A partial append is undone; the next one follows the earlier content.
    """
    with closing(LocalDisk().open(tmp_path / "log", create=True)) as file:
        file.append([b"before"])
        with files_end_at(6 + room), pytest.raises(OSError, match="too large"):
            file.append([b"0123456789", b"0123456789"])
        assert (file.size, (tmp_path / "log").read_bytes()) == (6, b"before")
        file.append([b" and", b" after"])
    assert (tmp_path / "log").read_bytes() == b"before and after"


def test_a_folder_that_cannot_be_opened(tmp_path: Path) -> None:
    """
    If the process has too many open files, the sync was not tried; a missing folder is another error.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(NotOpened, match="Too many open files"):
            LocalDisk().sync_folder(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    LocalDisk().sync_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        LocalDisk().sync_folder(tmp_path / "none")


def test_a_file_that_nobody_holds_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    file = LocalDisk().open(path, create=True)
    assert path in _open_files()
    del file
    assert path not in _open_files()


def _open_files() -> list[Path]:
    return [one.resolve() for one in Path("/proc/self/fd").iterdir()]
