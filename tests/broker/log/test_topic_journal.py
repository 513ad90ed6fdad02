"""
The journal of topics: which changes count, and what a crash leaves of it.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from errno import EIO, ENOSPC
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Semaphore
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.log.data_folder.folder_error import FolderError
from kgateway.broker.log.data_folder.start_file import LastEnd
from kgateway.broker.log.data_folder.topic_journal import StoredTopic, TopicJournal, encode_line
from kgateway.broker.log.files.local_disk import LocalDisk, LocalFile
from kgateway.wire.types import Buffer
from kgateway.wire.uuids import Uuid

PATIENCE_SECONDS = 20


class WatchedDisk(LocalDisk):
    """
    Records syncs, and fails on request. Files are not really synced, for speed.
    """

    def __init__(self) -> None:
        self.synced: list[int] = []  # the size of the file
        self.written: list[Path] = []
        self.before_sync: Callable[[], None] = lambda: None
        self.before_append: Callable[[], None] = lambda: None

    def open(self, path: Path, *, create: bool = False) -> "WatchedFile":
        return WatchedFile(os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o644), self)

    def write(self, path: Path, data: bytes, *, sync: bool) -> None:
        super().write(path, data, sync=False)
        if sync:
            self.written.append(path)


class WatchedFile(LocalFile):
    def __init__(self, descriptor: int, disk: WatchedDisk) -> None:
        super().__init__(descriptor)
        self._disk = disk

    def append(self, buffers: Sequence[Buffer]) -> None:
        self._disk.before_append()
        super().append(buffers)

    def sync(self) -> None:
        self._disk.before_sync()
        self._disk.synced.append(self.size)


def fail(code: int) -> Callable[[], None]:
    def failing() -> None:
        raise OSError(code, os.strerror(code))

    return failing


def numbered(number: int, name: str = "orders", **config: str) -> StoredTopic:
    """
    The topic with this number as id.
    """
    return StoredTopic(Uuid(number.to_bytes(16, "big")), name, 4, config, internal=False, born=1)


ONE, TWO, THREE = numbered(1, "one"), numbered(2, "two"), numbered(3, "three")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kgateway.topics"


def journal(
    path: Path,
    *topics: StoredTopic,
    disk: LocalDisk | None = None,
    last_end: LastEnd = LastEnd.MACHINE_CRASHED,
) -> TopicJournal:
    """
    A journal to which these topics were added.
    """
    opened = TopicJournal.open(path, disk or WatchedDisk(), last_end)
    for topic in topics:
        opened.put(topic)
    return opened


def damage(path: Path, number: int) -> None:
    lines = path.read_bytes().splitlines(True)
    lines[number - 1] = lines[number - 1].replace(b'"partitions": 4', b'"partitions": 5')
    path.write_bytes(b"".join(lines))


def names(path: Path) -> list[str]:
    """
    The topics that the next start finds.
    """
    return [topic.name for topic in journal(path).topics.values()]


def test_topics_are_found_again(path: Path) -> None:
    """
    A topic is read back unchanged, on a real disk too.
    """
    topic = StoredTopic(Uuid.random(), "orders", 12, {"retention.ms": "7", "täg\n": "\ud800"}, internal=True, born=3)
    first = journal(path, topic, ONE, disk=LocalDisk())
    assert first.topics == {topic.id: topic, ONE.id: ONE}
    first.close()
    assert journal(path, disk=LocalDisk()).topics == first.topics


def test_a_topic_may_change(path: Path) -> None:
    """
    The last entry with an id counts.
    """
    journal(path, ONE, TWO, replace(ONE, partition_count=8))
    assert [topic.partition_count for topic in journal(path).topics.values()] == [8, 4]


def test_a_topic_may_go(path: Path) -> None:
    """
    A deleted topic does not exist, and may be deleted again.
    """
    opened = journal(path, ONE, TWO)
    opened.delete(ONE.id)
    opened.delete(ONE.id)
    assert list(opened.topics) == [TWO.id]
    assert names(path) == ["two"]


def test_topics_that_were_seen_do_not_change(path: Path) -> None:
    """
    An iteration over the topics shows them as they were when it began.
    """
    opened = journal(path, ONE)
    seen = opened.topics
    opened.put(TWO)
    assert list(seen) == [ONE.id]


def test_a_topic_counts_when_it_is_sure(path: Path) -> None:
    """
    While its line is being synced the topic does not exist.
    """
    disk, seen = WatchedDisk(), list[int]()
    opened = journal(path, disk=disk)
    disk.before_sync = lambda: seen.append(len(opened.topics))
    opened.put(ONE)
    assert seen == [0]
    assert disk.synced[-1] == path.stat().st_size


def test_what_is_found_is_made_sure(path: Path) -> None:
    """
    The last process may have died before a sync; what was found of its changes counts from now on.
    """
    journal(path, ONE)
    disk = WatchedDisk()
    journal(path, disk=disk)
    assert disk.written == [path]


def test_a_full_disk_changes_nothing(path: Path) -> None:
    """
    A change that cannot be written does not count, and later ones may succeed.
    """
    disk = WatchedDisk()
    opened = journal(path, ONE, disk=disk)
    disk.before_append = fail(ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        opened.put(TWO)
    disk.before_append = lambda: None
    opened.put(THREE)
    assert list(opened.topics) == [ONE.id, THREE.id]
    assert names(path) == ["one", "three"]


def test_what_a_full_disk_has_taken_stays_away(path: Path) -> None:
    """
    The undoing of a partial write is synced, because a crash could bring a part of it back.
    """
    disk = WatchedDisk()
    opened = journal(path, ONE, disk=disk)
    disk.before_append = fail(ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        opened.delete(ONE.id)
    assert disk.synced == [path.stat().st_size] * 2


def test_a_failed_sync_is_the_last(path: Path) -> None:
    """
    Nothing counts after a failed sync, until the journal is reopened without that change.
    """
    disk = WatchedDisk()
    opened = journal(path, ONE, disk=disk)
    disk.before_sync = fail(EIO)
    with pytest.raises(OSError, match="Input/output error"):
        opened.put(TWO)
    disk.before_sync = lambda: None
    for change in (lambda: opened.put(THREE), lambda: opened.delete(ONE.id)):
        with pytest.raises(OSError, match="accepts no changes since a sync failed; restart the gateway"):
            change()
    assert list(opened.topics) == [ONE.id]
    assert len(disk.synced) == 1  # the sync of ONE
    assert names(path) == ["one"]


class Arrivals(deque[Any]):
    """
    A queue that reports arrivals.
    """

    def __init__(self) -> None:
        super().__init__()
        self._come = Semaphore(0)

    def append(self, arrived: Any) -> None:
        super().append(arrived)
        self._come.release()

    def wait(self) -> None:
        assert self._come.acquire(timeout=PATIENCE_SECONDS)


def put_meanwhile(opened: TopicJournal, disk: WatchedDisk, topics: Sequence[StoredTopic]) -> list[Future[None]]:
    """
    Put ONE, and during its sync all of these, each in a thread of its own; return the outcomes.
    """
    arrivals = opened._queue = Arrivals()
    outcomes = list[Future[None]]()

    def come() -> None:
        disk.before_sync = lambda: None
        arrivals.wait()  # for ONE
        for topic in topics:
            outcomes.append(threads.submit(opened.put, topic))
            arrivals.wait()

    with ThreadPoolExecutor(len(topics)) as threads:
        disk.before_sync = come
        opened.put(ONE)
    return outcomes


def test_many_changes_are_synced_at_once(path: Path) -> None:
    """
    Changes that arrive during a sync share the next one, in order.
    """
    disk, crowd = WatchedDisk(), [numbered(number, str(number)) for number in range(10, 50)]
    opened = journal(path, disk=disk)
    outcomes = put_meanwhile(opened, disk, crowd)
    assert [outcome.result() for outcome in outcomes] == [None] * 40
    assert len(disk.synced) == 2  # the sync of ONE, and that of all others
    assert list(opened.topics.values()) == [ONE, *crowd]
    assert journal(path).topics == opened.topics


def test_many_changes_fail_at_once(path: Path) -> None:
    """
    If their shared write fails all are told, and none counts.
    """
    disk = WatchedDisk()
    opened = journal(path, disk=disk)

    def fail_next() -> None:
        disk.before_append = fail(ENOSPC)

    disk.before_append = fail_next
    outcomes = put_meanwhile(opened, disk, [TWO, THREE])
    assert [str(outcome.exception()) for outcome in outcomes] == ["[Errno 28] No space left on device"] * 2
    assert list(opened.topics) == [ONE.id]
    assert names(path) == ["one"]


def test_a_torn_line_is_cut(path: Path) -> None:
    """
    The rest of a line that a crash has left is removed durably, wherever it was torn.
    """
    journal(path, ONE)
    whole = path.stat().st_size
    journal(path, TWO)
    data = path.read_bytes()
    for size in range(whole + 1, len(data)):
        path.write_bytes(data[:size])
        opened = journal(path)
        assert (list(opened.topics), opened.cut_bytes) == ([ONE.id], size - whole)
        assert path.read_bytes() == data[:whole]
    path.write_bytes(data)
    assert journal(path).cut_bytes == 0


@pytest.mark.parametrize("last_end", LastEnd)
def test_a_torn_line_after_each_end(path: Path, last_end: LastEnd) -> None:
    """
    After a clean stop there is none that a crash could have left: the file is damaged, wherever it was cut.
    """
    journal(path, ONE)
    whole = path.stat().st_size
    journal(path, TWO)
    data = path.read_bytes()
    for size in range(whole + 1, len(data)):
        path.write_bytes(data[:size])
        if last_end is LastEnd.CLEAN_STOP:
            with pytest.raises(FolderError, match=r"line 2 of .*: the gateway was shut down cleanly; restore"):
                journal(path, last_end=last_end)
            assert path.read_bytes() == data[:size]
        else:
            assert list(journal(path, last_end=last_end).topics) == [ONE.id]


@pytest.mark.parametrize("last_end", LastEnd)
def test_any_changed_byte_of_the_last_line_is_damage(path: Path, last_end: LastEnd) -> None:
    """
    The line was whole, so it was acknowledged, whichever of its bytes has changed, even its newline; it is named, and
    nothing is written.
    """
    journal(path, ONE, TWO)
    good = path.read_bytes()
    for position in range(good.index(b"\n") + 1, len(good)):
        for bit in range(8):
            data = bytearray(good)
            data[position] ^= 1 << bit
            path.write_bytes(data)
            with pytest.raises(FolderError, match=r"line 2 of .* is damaged, and "):
                journal(path, last_end=last_end)
            assert path.read_bytes() == data


@pytest.mark.parametrize("last_end", LastEnd)
def test_a_newline_that_changed_before_a_torn_line(path: Path, last_end: LastEnd) -> None:
    """
    A whole line is not removed with the torn one behind it.
    """
    journal(path, ONE, TWO, THREE)
    lines = path.read_bytes().splitlines(True)
    path.write_bytes(lines[0] + lines[1][:-1] + b"*" + lines[2][:50])
    with pytest.raises(FolderError, match=r"line 2 of .* is damaged"):
        journal(path, last_end=last_end)


REST = [b"\n", b"\n\n\n", b"x\ny z\n\xff", b"00000000 0 {}\n", b"0000000g", b"00000000 0 \xff", b"\0\n", b"0\0"]


@pytest.mark.parametrize("last_end", LastEnd)
@pytest.mark.parametrize("rest", REST)
def test_what_no_crash_leaves_is_refused(path: Path, rest: bytes, last_end: LastEnd) -> None:
    """
    It may be an acknowledged change.
    """
    journal(path, ONE)
    with path.open("ab") as file:
        file.write(rest)
    with pytest.raises(FolderError, match=r"line 2 of .* is damaged"):
        journal(path, last_end=last_end)


@pytest.mark.parametrize("last_end", LastEnd)
def test_missing_sectors(path: Path, last_end: LastEnd) -> None:
    """
    The machine may die before all sectors of a change are written, whatever is behind them; a process may not.
    """
    journal(path, ONE)
    sure = path.stat().st_size
    journal(path, numbered(2, "two", **{"retention.ms": "7" * 1500}), THREE)
    good = path.read_bytes()
    lines = good.splitlines(True)
    together = lines[0] + lines[1] + encode_line(sure, lines[2].split(b" ", 2)[2].rstrip())
    for start, end in ((sure, 512), (512, 1024), (1024, 1536), (512, 1536), (1536, len(together))):
        path.write_bytes(together[:start] + bytes(end - start) + together[end:])
        if last_end is LastEnd.MACHINE_CRASHED:
            opened = journal(path)
            assert (list(opened.topics), opened.cut_bytes) == ([ONE.id], len(together) - sure)
        else:
            with pytest.raises(FolderError, match=r"line 2 of .* is damaged"):
                journal(path, last_end=last_end)
    for start, end in ((513, 1024), (512, 1023), (sure, sure + 1)):
        path.write_bytes(together[:start] + bytes(end - start) + together[end:])
        with pytest.raises(FolderError, match=r"line 2 of .* is damaged, and "):
            journal(path, last_end=last_end)


@pytest.mark.parametrize("last_end", [LastEnd.PROCESS_CRASHED, LastEnd.MACHINE_CRASHED])
def test_missing_sectors_of_what_was_sure(path: Path, last_end: LastEnd) -> None:
    """
    A later line proves that they were written.
    """
    journal(path, ONE, numbered(2, "two", **{"retention.ms": "7" * 1500}), THREE)
    data = path.read_bytes()
    path.write_bytes(data[:512] + bytes(512) + data[1024:])
    with pytest.raises(FolderError, match=r"line 2 of .*, and it was intact once: later lines still are; restore"):
        journal(path, last_end=last_end)


def test_a_closed_journal_takes_no_changes(path: Path) -> None:
    """
    Its file may be another one by then. It tells whether everything in it is synced.
    """
    opened = journal(path, ONE)
    assert opened.close()
    with pytest.raises(OSError, match="the gateway is stopping"):
        opened.put(TWO)
    assert names(path) == ["one"]
    disk = WatchedDisk()
    opened = journal(path, disk=disk)
    disk.before_sync = fail(EIO)
    with pytest.raises(OSError, match="Input/output error"):
        opened.put(TWO)
    assert not opened.close()


def test_a_damaged_line_is_refused(path: Path) -> None:
    """
    A line that was synced and is damaged is named, with what to do.
    """
    journal(path, ONE, TWO, THREE)
    damage(path, 2)
    damaged = path.read_bytes()
    with pytest.raises(FolderError) as error:
        journal(path)
    assert str(error.value) == (
        f"line 2 of {path} is damaged, and it was intact once: later lines still are; restore the file from a copy, "
        "or remove the line: its topic is then as it was before the line, or put aside if the line created it"
    )
    assert path.read_bytes() == damaged
    path.write_bytes(b"".join(line for line in damaged.splitlines(True) if b"two" not in line))
    assert names(path) == ["one", "three"]


def test_what_was_synced_together_is_lost_in_any_order(path: Path) -> None:
    """
    A line that a crash has left in part is removed with the valid ones behind it unless they prove that it was
    synced.
    """
    disk = WatchedDisk()
    opened = journal(path, disk=disk)
    put_meanwhile(opened, disk, [numbered(2, "two", **{"retention.ms": "7" * 1500}), THREE])
    opened.close()
    data = path.read_bytes()
    lost = len(data) - len(data.splitlines(True)[0])
    path.write_bytes(data[:512] + bytes(512) + data[1024:])
    opened = journal(path)
    assert (list(opened.topics), opened.cut_bytes) == ([ONE.id], lost)


def test_an_unknown_change_is_refused(path: Path) -> None:
    """
    A whole line that is not understood is not removed, even if it is the last.
    """
    journal(path, ONE)
    rest = b'%d {"renamed": "x"}' % path.stat().st_size
    with path.open("ab") as file:
        file.write(b"%08x %s\n" % (crc32c(rest), rest))
    with pytest.raises(
        FolderError, match=r"line 2 of .* is intact, but this version of kgateway does not understand it"
    ):
        journal(path)


def test_a_file_that_cannot_be_read_is_refused(path: Path) -> None:
    """
    The system's error is reported.
    """
    path.mkdir()
    with pytest.raises(FolderError, match=r"kgateway\.topics cannot be opened: Is a directory"):
        journal(path)


def test_a_file_of_old_changes_is_written_anew(path: Path) -> None:
    """
    Opening the journal removes lines without effect, and appends continue.
    """
    journal(path, *[ONE, TWO] * 20)
    journal(path).put(THREE)
    assert len(path.read_bytes().splitlines()) == 3
    assert names(path) == ["one", "two", "three"]


def test_a_file_of_deletions_is_written_anew(path: Path) -> None:
    """
    Lines of deleted topics have no effect, nor have their deletions.
    """
    opened = journal(path)
    for number in range(20):
        opened.put(numbered(number))
        opened.delete(numbered(number).id)
    assert names(path) == []
    assert path.read_bytes() == b""


def test_each_line_that_was_written_anew_is_sure(path: Path) -> None:
    """
    Damage in a rewritten file, which was synced as a whole, is not taken for a crash; of several lines the first is
    named.
    """
    journal(path, ONE, TWO, THREE)
    journal(path)
    damage(path, 1)
    damage(path, 2)
    with pytest.raises(FolderError, match=r"line 1 of .* is damaged"):
        journal(path)


def test_a_file_is_written_anew_or_not_at_all(path: Path) -> None:
    """
    Without space for the new file the old one is unchanged, and the journal is refused.
    """

    class FullDisk(LocalDisk):
        def write(self, path: Path, data: bytes, *, sync: bool) -> None:
            raise OSError(ENOSPC, os.strerror(ENOSPC))

    journal(path, ONE, ONE)
    before = path.read_bytes()
    with pytest.raises(FolderError, match=r"cannot be opened: No space left on device; free some space on its disk"):
        journal(path, disk=FullDisk())
    assert path.read_bytes() == before


def test_a_closed_journal_gives_its_file_back(path: Path) -> None:
    """
    No descriptor is left open, even if the journal is refused.
    """
    before = os.listdir("/dev/fd")
    journal(path, ONE, TWO).close()
    damage(path, 1)
    with pytest.raises(FolderError):
        journal(path)
    assert os.listdir("/dev/fd") == before


NUMBERS = st.integers(0, 5)
CHANGES = st.lists(
    st.builds(
        numbered, NUMBERS, st.text(max_size=3), **{"retention.ms": st.text(max_size=3), "cleanup.policy": st.text()}
    )
    | NUMBERS.map(lambda number: numbered(number).id),
    max_size=40,
)


@given(changes=CHANGES, torn=st.floats(0, 1))
def test_a_crash_leaves_the_first_changes(changes: list[StoredTopic | Uuid], torn: float) -> None:
    """
    Wherever the file ends after a crash, the topics are those after some change, and a later end means a later
    change.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, "kgateway.topics")
        opened = journal(path)
        states, ends = [opened.topics], [0]
        for change in changes:
            if isinstance(change, StoredTopic):
                opened.put(change)
            else:
                opened.delete(change)
            states.append(opened.topics)
            ends.append(path.stat().st_size)
        opened.close()
        data = path.read_bytes()
        size = round(torn * len(data))
        path.write_bytes(data[:size])
        found = journal(path)
        found.close()
        whole = max(number for number, end in enumerate(ends) if end <= size)
        assert (found.topics, found.cut_bytes) == (states[whole], size - ends[whole])
        again = journal(path)
        again.close()
        assert (again.topics, again.cut_bytes) == (states[whole], 0)
