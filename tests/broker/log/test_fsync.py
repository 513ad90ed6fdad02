"""
What a sync covers, in which order, and how few threads carry out many.
"""

from collections.abc import Iterator
from errno import EIO, EMFILE
from functools import partial
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.log.segments.fsync import CheckRunning, NotTried, SyncJob, SyncPool, UnsyncedPart
from tests.broker.log.log_brokers import Threads
from tests.broker.log.recording_disk import RecordingDisk


def due(folder: Path) -> SyncJob:
    """
    A doubtful range, two files and two folders.
    """
    for name in "abc":
        (folder / name).write_bytes(b"0123456789")
    return SyncJob([UnsyncedPart(folder / "a", 2, 5)], [folder / "b", folder / "c"], [folder, folder.parent])


def done(disk: RecordingDisk) -> list[tuple[str, str]]:
    """
    The written and synced names.
    """
    return [(what, name) for what, name in disk.done if what not in ("open", "read_at")]


def test_all_is_done_in_order(tmp_path: Path) -> None:
    """
    Doubtful ranges are rewritten before any sync, and folders are synced last, unless they were synced already.
    """
    disk, synced = RecordingDisk(), {tmp_path}
    due(tmp_path).sync(disk, [disk.open(tmp_path / "a")], synced)
    order = [("write again 2 5", "a"), ("sync", "a"), ("sync", "b"), ("sync", "c")]
    assert done(disk) == [*order, ("sync_folder", tmp_path.parent.name)]
    assert synced == {tmp_path, tmp_path.parent}


def test_what_is_gone_needs_nothing(tmp_path: Path) -> None:
    """
    A file removed meanwhile is no error.
    """
    disk, all_of_it = RecordingDisk(), due(tmp_path)
    for name in "ac":
        (tmp_path / name).unlink()
    all_of_it.sync(disk, [], set())
    assert done(disk)[0] == ("sync", "b")


def test_two_of_them_are_one(tmp_path: Path) -> None:
    """
    The union has everything, and each folder once.
    """
    first = due(tmp_path)
    second = SyncJob([UnsyncedPart(tmp_path / "b", 0, 1)], [tmp_path / "a"], [tmp_path, tmp_path / "d"])
    both = first.merged_with(second)
    assert both.unsynced == first.unsynced + second.unsynced
    assert both.files == first.files + second.files
    assert both.folders == [tmp_path, tmp_path.parent, tmp_path / "d"]
    assert first == due(tmp_path)


@pytest.mark.parametrize("count", range(6))
def test_it_may_be_over_before_all_is_done(count: int, tmp_path: Path) -> None:
    """
    Before each step the job asks whether to stop, and an unsynced folder does not count as synced.
    """
    disk, synced, answers = RecordingDisk(), set[Path](), iter(range(count))
    with pytest.raises(StopIteration):
        due(tmp_path).sync(disk, [disk.open(tmp_path / "a")], synced, lambda: _check_running(answers))
    assert len(done(disk)) == count
    assert synced == ({tmp_path} if count == 5 else set())


def _check_running(answers: Iterator[int]) -> None:
    next(answers)


@pytest.mark.parametrize(
    ("operation", "error"), [("open b", NotTried), ("open_folder", NotTried), ("sync_folder", OSError)]
)
def test_what_cannot_be_opened_was_not_tried(operation: str, error: type[Exception], tmp_path: Path) -> None:
    """
    This holds for files and folders; a folder whose sync failed was tried.
    """
    disk, synced = RecordingDisk(), set[Path]()
    disk.failing[operation] = EMFILE if error is NotTried else EIO
    with pytest.raises(error):
        due(tmp_path).sync(disk, [], synced)
    assert not synced


class Busy:
    """
    Two threads that work when a test says so.
    """

    def __init__(self) -> None:
        self.threads = Threads()
        self.threads.slow = True
        self.pool = SyncPool(self.threads)
        self.done: list[str] = []
        self.known: list[int] = []  # folders, at each of these

    def do(self, *names: str) -> list[Deferred[None]]:
        return [self.pool.run(partial(self._work, name)) for name in names]

    def _work(self, name: str, synced: set[Path], check_running: CheckRunning) -> None:
        check_running()
        self.done.append(name)
        self.known.append(len(synced))
        synced.add(Path(name))


@pytest.fixture
def busy() -> Busy:
    return Busy()


def test_what_comes_meanwhile_is_done_at_once(busy: Busy) -> None:
    """
    While all threads are busy jobs wait, and the first free thread does all of them.
    """
    asked = busy.do("a", "b", "c", "d", "e")
    assert len(busy.threads) == 2
    busy.threads.work()
    assert (busy.done, [each.called for each in asked]) == (["a"], [True, False, False, False, False])
    for _ in range(2):
        busy.threads.work()
    assert busy.done == ["a", "b", "c", "d", "e"]
    assert busy.known == [0, 0, 0, 1, 2]  # what was synced before the request does not count
    assert all(each.called for each in asked)
    busy.do("f", "g", "h")
    assert len(busy.threads) == 2


def test_each_fails_for_itself(busy: Busy) -> None:
    """
    A failing job does not affect others.
    """

    def failing(_: set[Path], check_running: CheckRunning) -> None:
        raise OSError("no disk")

    busy.do("a", "b")
    failed: list[str] = []
    asked = [*busy.do("c"), busy.pool.run(failing), *busy.do("d")]
    asked[1].addErrback(lambda failure: failed.append(failure.getErrorMessage()))
    while busy.threads:
        busy.threads.work()
    assert (busy.done, failed) == (["a", "b", "c", "d"], ["no disk"])
    assert all(each.called for each in asked)


def test_what_was_taken_is_not_begun_when_it_is_over(busy: Busy) -> None:
    """
    A thread ends after its current step; unfinished jobs are not reported, and no more are accepted.
    """

    def stopping(_: set[Path], check_running: CheckRunning) -> None:
        check_running()
        busy.pool.stop()
        check_running()
        busy.done.append("too late")

    busy.do("a", "b")
    asked = [*busy.do("c"), busy.pool.run(stopping), *busy.do("d")]
    while busy.threads:
        busy.threads.work()
    assert busy.done == ["a", "b", "c"]
    assert [each.called for each in asked] == [True, False, False]
    asked += busy.do("e")
    assert (len(busy.threads), asked[-1].called) == (0, False)
