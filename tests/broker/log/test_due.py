"""
What is to be synced, and in what order.
"""

from collections.abc import Iterator
from errno import EIO, EMFILE
from pathlib import Path

import pytest

from kgateway.broker.log.due import Doubtful, Due, NotTried
from tests.broker.log.noted_disk import NotedDisk


def due(folder: Path) -> Due:
    """
    A doubtful part, two files and two folders.
    """
    for name in "abc":
        (folder / name).write_bytes(b"0123456789")
    return Due([Doubtful(folder / "a", 2, 5)], [folder / "b", folder / "c"], [folder, folder.parent])


def done(disk: NotedDisk) -> list[tuple[str, str]]:
    """
    What was written and synced.
    """
    return [(what, name) for what, name in disk.done if what not in ("open", "read_at")]


def test_all_is_done_in_order(tmp_path: Path) -> None:
    """
    What is doubtful is written before anything is synced, and names come last; not of a folder that was synced already.
    """
    disk, synced = NotedDisk(), {tmp_path}
    due(tmp_path).sync(disk, [disk.open(tmp_path / "a")], synced)
    order = [("write again 2 5", "a"), ("sync", "a"), ("sync", "b"), ("sync", "c")]
    assert done(disk) == [*order, ("sync_folder", tmp_path.parent.name)]
    assert synced == {tmp_path, tmp_path.parent}


def test_what_is_gone_needs_nothing(tmp_path: Path) -> None:
    """
    A file that was removed since is no matter.
    """
    disk, all_of_it = NotedDisk(), due(tmp_path)
    for name in "ac":
        (tmp_path / name).unlink()
    all_of_it.sync(disk, [], set())
    assert done(disk)[0] == ("sync", "b")


def test_two_of_them_are_one(tmp_path: Path) -> None:
    """
    Nothing of either is left out, and no folder is there twice.
    """
    first = due(tmp_path)
    second = Due([Doubtful(tmp_path / "b", 0, 1)], [tmp_path / "a"], [tmp_path, tmp_path / "d"])
    both = first.and_then(second)
    assert both.doubtful == first.doubtful + second.doubtful
    assert both.files == first.files + second.files
    assert both.folders == [tmp_path, tmp_path.parent, tmp_path / "d"]
    assert first == due(tmp_path)


@pytest.mark.parametrize("count", range(6))
def test_it_may_be_over_before_all_is_done(count: int, tmp_path: Path) -> None:
    """
    Whoever has it done is asked before each single thing, and a folder that was not synced is not called so.
    """
    disk, synced, answers = NotedDisk(), set[Path](), iter(range(count))
    with pytest.raises(StopIteration):
        due(tmp_path).sync(disk, [disk.open(tmp_path / "a")], synced, lambda: _go_on(answers))
    assert len(done(disk)) == count
    assert synced == ({tmp_path} if count == 5 else set())


def _go_on(answers: Iterator[int]) -> None:
    next(answers)


@pytest.mark.parametrize(
    ("operation", "error"), [("open b", NotTried), ("open_folder", NotTried), ("sync_folder", OSError)]
)
def test_what_cannot_be_opened_was_not_tried(operation: str, error: type[Exception], tmp_path: Path) -> None:
    """
    A file or a folder; a folder whose sync fails was.
    """
    disk, synced = NotedDisk(), set[Path]()
    disk.failing[operation] = EMFILE if error is NotTried else EIO
    with pytest.raises(error):
        due(tmp_path).sync(disk, [], synced)
    assert not synced
