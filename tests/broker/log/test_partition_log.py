"""
The log of a partition against a list of batches: whatever is done to it, and however often another process finds it.
"""

from collections.abc import Callable
from contextlib import suppress
from errno import ENOSPC
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgateway.broker import producer_snapshots
from kgateway.broker.epochs import EPOCH_FILE
from kgateway.broker.log.open_files import OpenFiles
from kgateway.broker.log.partition_log import Limits
from kgateway.broker.log.parts import LoadedIndexes
from kgateway.broker.log.reading import Reader
from kgateway.broker.log.segment import file_name
from kgateway.broker.log.segment_indexes import INDEX, TIME_INDEX
from kgateway.broker.log.time_search import TimeSearch
from kgateway.broker.log.trust import Trust
from kgateway.broker.producers import ProducerTable
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.records.batch import Batch
from tests.broker.behaviour import PLENTY, at_times, result
from tests.broker.log.making import log_parts, put, recovered
from tests.broker.log.noted_disk import NotedDisk
from tests.broker.log.written import CRASHES, Written, batches, damage, epochs_of
from tests.records.sealed import sealed

_EXAMPLES = 6 * settings().max_examples
_MEMORY = Path("/dev/shm")  # most of the time goes into files
_OPEN_MAX = 2
_JUNK = st.binary(min_size=1, max_size=40)


STEPS = st.lists(
    st.tuples(st.just("append"), batches())
    | st.tuples(st.just("append"), batches())
    | st.tuples(st.just("truncate"), st.integers(0, 60) | st.integers(0, 4))
    | st.tuples(st.sampled_from(["roll", "settle", "half settle", "clean", "machine"]), st.none())
    | st.tuples(st.sampled_from(CRASHES), st.tuples(st.integers(0, 99), _JUNK)),
    max_size=40,
)


class Compared:
    """
    A log, and what it should be.
    """

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self.disk = NotedDisk()
        self.expected: list[Written] = []
        self.epoch = 0
        self.settled = 0
        self.open(Trust(0, 0, process_only=False))

    @property
    def end(self) -> int:
        return self.expected[-1].end if self.expected else 0

    def open(self, trust: Trust) -> None:
        self.parts = log_parts(self.disk)
        self.parts.files = OpenFiles(self.disk, _OPEN_MAX)
        self.parts.loaded = LoadedIndexes(limit=1)
        config = TopicConfig(index_interval_bytes=self.limits.index_interval_bytes)
        found = recovered(self.parts.files, self.folder, trust, config)
        assert found.faults == []
        self.log, self.epochs = found.log, found.epochs
        self.reader = Reader(self.log, self.parts, lambda _: None)
        self.compare()

    def close(self) -> None:
        for file in list(self.disk.opened):
            file.close()

    def reopen(self, trust: Trust) -> None:
        self.close()
        self.epoch += 1
        self.open(trust)

    def append(self, batch: Batch) -> None:
        self.epochs.assign(self.epoch, self.end)
        data = put(self.log, batch, epoch=self.epoch, limits=self.limits)
        self.expected.append(Written(batch, self.end, self.epoch, data))

    def truncate(self, offset: int) -> None:
        offset = min(max(offset, 0), self.end)
        self.log.truncate(offset)
        self.expected = [written for written in self.expected if written.end <= offset]
        self.epochs.cut(self.end)
        (self.folder / EPOCH_FILE).write_bytes(self.epochs.written())  # or the old one might be believed
        self.settled = min(self.settled, self.end)
        self.compare()

    def roll(self) -> None:
        if self.log.segments[-1].size:
            self.log.roll()

    def settle(self) -> None:
        self.log.save_indexes()
        snapshot = self.folder / file_name(self.end, ".snapshot")
        snapshot.write_bytes(producer_snapshots.written(ProducerTable()))
        (self.folder / EPOCH_FILE).write_bytes(self.epochs.written())
        self.settled = self.end

    def half_settle(self) -> None:
        """
        The process dies between the two indexes, or the disk is full.
        """
        self.disk.failing["append .index"] = ENOSPC
        with suppress(OSError):
            self.log.save_indexes()
        self.disk.failing.clear()

    def clean(self) -> None:
        self.settle()
        self.reopen(Trust(self.end, self.end, process_only=True, clean=True))

    def machine(self) -> None:
        """
        The machine dies, and has luck: only files beside the segments are lost.
        """
        for path in self.folder.iterdir():
            if path.suffix in (INDEX, TIME_INDEX):
                path.write_bytes(b"lost")
        self.settled = 0
        self.reopen(Trust(0, 0, process_only=False))

    def crash(self, how: str, which: int, junk: bytes) -> None:
        """
        The process dies, and something is wrong with the indexes of a segment that was not settled as a full one.
        """
        bases = [segment.base_offset for segment in self.log.segments]
        doubtful = [
            base for base, following in zip(bases, [*bases[1:], LONG_MAX], strict=True) if following > self.settled
        ]
        base = doubtful[which % len(doubtful)]
        damage(self.folder / file_name(base, INDEX), self.folder / file_name(base, TIME_INDEX), how, which, junk)
        self.reopen(Trust(0, self.settled, process_only=True))

    def compare(self) -> None:
        self.compare_reads()
        self.compare_segments()
        self.compare_times()

    def compare_reads(self) -> None:
        assert self.log.end_offset == self.end
        for offset in range(self.end):
            for max_bytes in (PLENTY, 0, 200):
                self.compare_read(offset, max_bytes)

    def compare_segments(self) -> None:
        assert self.epochs.written() == epochs_of(self.expected).written()
        bases = [segment.base_offset for segment in self.log.segments]
        for segment, following in zip(self.log.segments, [*bases[1:], self.end], strict=True):
            inside = [each for each in self.expected if segment.base_offset <= each.offset < following]
            assert segment.next_offset == following
            assert segment.size == sum(each.size for each in inside)
            assert segment.size <= self.limits.segment_bytes or len(inside) == 1
            assert all(segment.indexes.grow())

    def compare_times(self) -> None:
        found = [found for written in self.expected for found in written.found]
        times = {time for each in found for time in (each.timestamp, each.timestamp + 1)}
        search = TimeSearch(self.disk, self.log.segments, 0, self.log.end)
        for time in times:
            assert search.first(time) == next((each for each in found if each.timestamp >= time), None), time
        largest = max((each.timestamp for each in found), default=-1)
        assert search.largest() == next((each for each in found if each.timestamp == largest != -1), None)
        assert len(self.disk.opened) <= _OPEN_MAX

    def compare_read(self, offset: int, max_bytes: int) -> None:
        segment = self.log.segment_of(offset)
        inside = [each for each in self.expected if segment.base_offset <= each.offset < segment.next_offset]
        rest = [each for each in inside if each.end > offset]
        for self.disk.cold in (False, True):
            for at_least_one in (False, True):
                expected, left = b"", max_bytes
                for each in rest:
                    if each.size > left and not (at_least_one and not expected):
                        break
                    expected, left = expected + each.data, left - each.size
                pieces: list[bytes] = result(self.reader.read(offset, self.log.end, max_bytes, at_least_one))
                assert b"".join(pieces) == expected


@settings(max_examples=_EXAMPLES)
@given(STEPS, st.sampled_from([1, 200, 500, 100_000]), st.sampled_from([0, 150, 100_000]))
def test_log_is_what_was_written(steps: list[tuple[str, Any]], segment_bytes: int, interval: int) -> None:
    """
    What is read, and found by its time, is what was appended and not cut off, through rolls, restarts and crashes with
    indexes that are behind, missing, or anything else; epochs and segments fit to it.
    """
    with TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as name:
        compared = Compared(Path(name) / "t-0", Limits(segment_bytes, LONG_MAX, interval))
        for what, given_to in steps:
            if what in CRASHES:
                compared.crash(what, *given_to)
            else:
                act: Callable[..., None] = getattr(compared, what.replace(" ", "_"))
                act() if given_to is None else act(given_to)
                compared.compare()
        compared.compare()
        compared.close()


def test_times_after_a_cut(tmp_path: Path) -> None:
    """
    Times are found in what is appended behind a cut.
    """
    compared = Compared(tmp_path / "t-0", Limits(100_000, LONG_MAX, 0))
    for times in ([10], [20, 20, 20]):
        compared.append(at_times(*times))
    compared.log.truncate(1)
    compared.expected.pop()
    for times in ([5], [30], [5]):
        compared.append(at_times(*times))
    try:
        compared.compare_times()
    finally:
        compared.close()


@pytest.mark.parametrize(("offset", "first"), [(0, 20), (1, 40), (2, 40), (3, 20), (4, 50)])
def test_a_segment_goes_on_behind_a_cut(offset: int, first: int, tmp_path: Path) -> None:
    """
    The last segment that is left, be it one of an earlier process, goes on as though nothing had been behind the cut.
    """
    compared = Compared(tmp_path / "t-0", Limits(100_000, LONG_MAX, 0))
    for times in ([40], [10], [30]):
        compared.append(at_times(*times))
    compared.roll()
    for times in ([50], [10]):
        compared.append(at_times(*times))
    compared.clean()
    (tmp_path / "t-0" / file_name(3, ".snapshot")).touch()  # it tells of what is before
    compared.truncate(offset)
    for _ in range(4):
        compared.append(at_times(20))
    try:
        compared.compare()
        assert sorted(int(path.stem) for path in compared.folder.glob("*.log")) == [0, 3][: 1 + (offset >= 3)]
        assert (compared.folder / file_name(3, ".index")).exists() == (offset >= 3)
        assert (compared.folder / file_name(3, ".snapshot")).exists()
        assert compared.log.segments[-1].first_timestamp == first
    finally:
        compared.close()


def test_the_largest_time_behind_a_lie(tmp_path: Path) -> None:
    """
    Where a header claims what no record has, all are looked at that may have more than what was found.
    """
    compared = Compared(tmp_path / "t-0", Limits(1, LONG_MAX, 0))
    for sent in (sealed(at_times(5), max_timestamp=99), at_times(4), at_times(6), at_times(-1)):
        compared.append(sent)
    compared.compare_times()
    compared.close()


def test_a_full_segment_of_one_batch_that_is_cut(tmp_path: Path) -> None:
    """
    What its time index told of the batch is not told of the one in its place.
    """
    compared = Compared(tmp_path / "t-0", Limits(1, LONG_MAX, 0))
    for time in (5, 6):
        compared.append(at_times(time))
    compared.truncate(0)
    for time in (7, 4, 3):
        compared.append(at_times(time))
    compared.compare()
    compared.close()
