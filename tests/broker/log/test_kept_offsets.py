"""
Offsets that only grow, written down: here, where logs begin.
"""

from errno import EIO
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from kgateway.broker.log.kept_offsets import LOG_STARTS, KeptOffsets
from tests.broker.behaviour import result
from tests.broker.log.making import Threads, log_parts
from tests.broker.log.noted_disk import NotedDisk

T, U = ("t", 0), ("u", 1)


class Made:
    """
    The log starts of a folder.
    """

    def __init__(self, folder: Path) -> None:
        self.path, self.disk, self.threads = folder / LOG_STARTS, NotedDisk(), Threads()
        self.starts = KeptOffsets(self.path, log_parts(self.disk, self.threads))

    @property
    def rows(self) -> list[str]:
        """
        What the file has now.
        """
        return self.path.read_text().split("\n")[2:-1]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def test_what_is_put_is_found(made: Made, tmp_path: Path) -> None:
    """
    Another process finds what was written, and nothing of what is not there any more.
    """
    result(made.starts.put(T, 5))
    result(made.starts.put(U, 1 << 40))
    assert made.rows == ["t 0 5", f"u 1 {1 << 40}"]
    found = Made(tmp_path).starts
    assert (found.of(T), found.of(U), found.of(("t", 1)), found.is_damaged) == (5, 1 << 40, 0, False)
    found.keep({U})
    assert (found.of(T), found.of(U)) == (0, 1 << 40)


def test_no_file_is_written_for_nothing(made: Made) -> None:
    """
    A topic that comes or goes costs nothing where no log start was ever told of its name.
    """
    made.starts.forget(T)
    result(made.starts.begin("t"))
    assert not made.path.exists()


def test_a_new_topic_waits_for_the_old_one(made: Made) -> None:
    """
    A name can be had again when the file tells nothing of it any more, also where that is just being written.
    """
    result(made.starts.put(T, 5))
    made.threads.slow = True
    made.starts.forget(T)
    putting = made.starts.put(U, 3)
    beginning = made.starts.begin("t")
    assert made.rows == ["t 0 5"]
    assert not beginning.called
    while len(made.threads):
        made.threads.work()
    assert (made.rows, putting.called, beginning.called) == (["u 1 3"], True, True)


def test_a_topic_that_goes_while_its_start_is_written(made: Made) -> None:
    """
    It may come into the file, and goes again before there is another topic of the name.
    """
    made.threads.slow = True
    made.starts.put(T, 5)
    made.starts.forget(T)
    beginning = made.starts.begin("t")
    made.threads.work()
    assert (made.rows, beginning.called, made.starts.of(T)) == (["t 0 5"], False, 0)
    made.threads.work()
    assert (made.rows, beginning.called) == ([], True)


def test_failures(made: Made) -> None:
    """
    All who wait for a writing that fails are told; what they wanted is not written with the next one, but what was to
    go is.
    """
    result(made.starts.put(T, 5))
    made.disk.failing[f"write {LOG_STARTS}"] = EIO
    made.starts.forget(T)
    with capturedLogs():
        failed: list[Deferred[None]] = [made.starts.begin("t"), made.starts.put(U, 3)]
        for each in failed:
            with pytest.raises(OSError, match="Input/output error"):
                result(each)
    made.disk.failing.clear()
    result(made.starts.begin("t"))
    assert (made.rows, made.starts.of(U)) == ([], 0)


def test_stopping(made: Made) -> None:
    """
    The end waits for the writing, well or not; without any it comes at once.
    """
    assert made.starts.stop().called
    made.threads.slow = True
    putting = made.starts.put(T, 5)
    stopping = made.starts.stop()
    made.threads.work()
    assert (putting.called, stopping.called) == (True, False)
    made.disk.failing["write"] = EIO
    with capturedLogs():
        made.threads.work()
    assert result(stopping) is None
