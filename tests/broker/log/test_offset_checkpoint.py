"""
The file of log starts, which only increase.
"""

from errno import EIO
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from kgateway.broker.log.data_folder.checkpoints import LOG_STARTS, OffsetCheckpoint
from kgateway.topic_partition import TopicPartition
from tests.broker.behaviour import result
from tests.broker.log.log_brokers import Threads, log_runtime
from tests.broker.log.recording_disk import RecordingDisk

T, U = TopicPartition("t", 0), TopicPartition("u", 1)


class Made:
    """
    The log starts of a folder.
    """

    def __init__(self, folder: Path) -> None:
        self.path, self.disk, self.threads = folder / LOG_STARTS, RecordingDisk(), Threads()
        self.starts = OffsetCheckpoint(self.path, log_runtime(self.disk, self.threads))

    @property
    def rows(self) -> list[str]:
        return self.path.read_text().split("\n")[2:-1]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def test_what_is_put_is_found(made: Made, tmp_path: Path) -> None:
    """
    Another process finds what was written, without deleted entries.
    """
    result(made.starts.put(T, 5))
    result(made.starts.put(U, 1 << 40))
    assert made.rows == ["t 0 5", f"u 1 {1 << 40}"]
    found = Made(tmp_path).starts
    assert (found.of(T), found.of(U), found.of(TopicPartition("t", 1)), found.is_damaged) == (5, 1 << 40, 0, False)
    found.forget_all_but({U})
    assert (found.of(T), found.of(U)) == (0, 1 << 40)


def test_no_file_is_written_for_nothing(made: Made) -> None:
    """
    Creating or deleting a topic costs nothing if no log start of its name was ever written.
    """
    made.starts.forget(T)
    result(made.starts.forget_earlier("t"))
    assert not made.path.exists()


def test_a_new_topic_waits_for_the_old_one(made: Made) -> None:
    """
    A name can be used again once the file has nothing of it, even if it is being written.
    """
    result(made.starts.put(T, 5))
    made.threads.slow = True
    made.starts.forget(T)
    putting = made.starts.put(U, 3)
    beginning = made.starts.forget_earlier("t")
    assert made.rows == ["t 0 5"]
    assert not beginning.called
    while len(made.threads):
        made.threads.work()
    assert (made.rows, putting.called, beginning.called) == (["u 1 3"], True, True)


def test_a_topic_that_goes_while_its_start_is_written(made: Made) -> None:
    """
    Its start may be written, and is removed before another topic has the name.
    """
    made.threads.slow = True
    made.starts.put(T, 5)
    made.starts.forget(T)
    beginning = made.starts.forget_earlier("t")
    made.threads.work()
    assert (made.rows, beginning.called, made.starts.of(T)) == (["t 0 5"], False, 0)
    made.threads.work()
    assert (made.rows, beginning.called) == ([], True)


def test_failures(made: Made) -> None:
    """
    Everybody who waits for a failed write gets the error; their offsets are not written by the next one, but
    deletions are.
    """
    result(made.starts.put(T, 5))
    made.disk.failing[f"write {LOG_STARTS}"] = EIO
    made.starts.forget(T)
    with capturedLogs():
        failed: list[Deferred[None]] = [made.starts.forget_earlier("t"), made.starts.put(U, 3)]
        for each in failed:
            with pytest.raises(OSError, match="Input/output error"):
                result(each)
    made.disk.failing.clear()
    result(made.starts.forget_earlier("t"))
    assert (made.rows, made.starts.of(U)) == ([], 0)


def test_stopping(made: Made) -> None:
    """
    Stopping waits for the write, successful or not; without one it is immediate.
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
