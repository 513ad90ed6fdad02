"""
The log of a partition compared with a list of batches, through any operations and restarts.
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

from kgateway.broker.log.files.file_cache import FileCache
from kgateway.broker.log.partition.reader import Reader
from kgateway.broker.log.partition.time_search import TimeSearch
from kgateway.broker.log.recovery.segment_recovery import KnownGood
from kgateway.broker.log.runtime import LoadedIndexes
from kgateway.broker.log.segments.file_names import file_name
from kgateway.broker.log.segments.index import INDEX, TIME_INDEX
from kgateway.broker.log.segments.segment_list import SegmentLimits
from kgateway.broker.partition.leader_epochs import EPOCH_FILE
from kgateway.broker.partition.producer_snapshot import encode_snapshot
from kgateway.broker.partition.producer_state import ProducerTable
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.records.batch import Batch
from tests.broker.behaviour import PLENTY, at_times, result
from tests.broker.log.batches import CRASHES, Written, batches, damage, epochs_of
from tests.broker.log.log_brokers import log_runtime, put, recovered
from tests.broker.log.recording_disk import RecordingDisk
from tests.records.crc_batches import sealed

_EXAMPLES = 6 * settings().max_examples
_MEMORY = Path("/dev/shm")  # most of the time is spent on files
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
    A log and its expected content.
    """

    def __init__(self, folder: Path, limits: SegmentLimits) -> None:
        self.folder, self.limits = folder, limits
        self.disk = RecordingDisk()
        self.expected: list[Written] = []
        self.epoch = 0
        self.settled = 0
        self.open(KnownGood(0, 0, nothing_missing=False))

    @property
    def end(self) -> int:
        return self.expected[-1].end if self.expected else 0

    def open(self, known_good: KnownGood) -> None:
        self.runtime = log_runtime(self.disk)
        self.runtime.files = FileCache(self.disk, _OPEN_MAX)
        self.runtime.loaded = LoadedIndexes(limit=1)
        config = TopicConfig(index_interval_bytes=self.limits.index_interval_bytes)
        found = recovered(self.runtime.files, self.folder, known_good, config)
        assert found.faults == []
        self.segment_list, self.epochs = found.segment_list, found.epochs
        self.reader = Reader(self.segment_list, self.runtime, lambda _: None)
        self.compare()

    def close(self) -> None:
        for file in list(self.disk.opened):
            file.close()

    def reopen(self, known_good: KnownGood) -> None:
        self.close()
        self.epoch += 1
        self.open(known_good)

    def append(self, batch: Batch) -> None:
        self.epochs.assign(self.epoch, self.end)
        data = put(self.segment_list, batch, epoch=self.epoch, limits=self.limits)
        self.expected.append(Written(batch, self.end, self.epoch, data))

    def truncate(self, offset: int) -> None:
        offset = min(max(offset, 0), self.end)
        self.segment_list.truncate(offset)
        self.expected = [written for written in self.expected if written.end <= offset]
        self.epochs.cut(self.end)
        (self.folder / EPOCH_FILE).write_bytes(self.epochs.encoded())  # otherwise the old one might be trusted
        self.settled = min(self.settled, self.end)
        self.compare()

    def roll(self) -> None:
        if self.segment_list.segments[-1].size:
            self.segment_list.roll()

    def settle(self) -> None:
        self.segment_list.save_indexes()
        snapshot = self.folder / file_name(self.end, ".snapshot")
        snapshot.write_bytes(encode_snapshot(ProducerTable()))
        (self.folder / EPOCH_FILE).write_bytes(self.epochs.encoded())
        self.settled = self.end

    def half_settle(self) -> None:
        """
        Let the process die between the two indexes, or the disk be full.
        """
        self.disk.failing["append .index"] = ENOSPC
        with suppress(OSError):
            self.segment_list.save_indexes()
        self.disk.failing.clear()

    def clean(self) -> None:
        self.settle()
        self.reopen(KnownGood(self.end, self.end, nothing_missing=True, clean=True))

    def machine(self) -> None:
        """
        Let the machine die without losing more than side files.
        """
        for path in self.folder.iterdir():
            if path.suffix in (INDEX, TIME_INDEX):
                path.write_bytes(b"lost")
        self.settled = 0
        self.reopen(KnownGood(0, 0, nothing_missing=False))

    def crash(self, how: str, which: int, junk: bytes) -> None:
        """
        Let the process die with damaged indexes of a segment that was not settled as a full one.
        """
        bases = [segment.base_offset for segment in self.segment_list.segments]
        doubtful = [
            base for base, following in zip(bases, [*bases[1:], LONG_MAX], strict=True) if following > self.settled
        ]
        base = doubtful[which % len(doubtful)]
        damage(self.folder / file_name(base, INDEX), self.folder / file_name(base, TIME_INDEX), how, which, junk)
        self.reopen(KnownGood(0, self.settled, nothing_missing=True))

    def compare(self) -> None:
        self.compare_reads()
        self.compare_segments()
        self.compare_times()

    def compare_reads(self) -> None:
        assert self.segment_list.end_offset == self.end
        for offset in range(self.end):
            for max_bytes in (PLENTY, 0, 200):
                self.compare_read(offset, max_bytes)

    def compare_segments(self) -> None:
        assert self.epochs.encoded() == epochs_of(self.expected).encoded()
        bases = [segment.base_offset for segment in self.segment_list.segments]
        for segment, following in zip(self.segment_list.segments, [*bases[1:], self.end], strict=True):
            inside = [each for each in self.expected if segment.base_offset <= each.offset < following]
            assert segment.next_offset == following
            assert segment.size == sum(each.size for each in inside)
            assert segment.size <= self.limits.segment_bytes or len(inside) == 1
            assert all(segment.indexes.check())

    def compare_times(self) -> None:
        found = [found for written in self.expected for found in written.found]
        times = {time for each in found for time in (each.timestamp, each.timestamp + 1)}
        search = TimeSearch(self.disk, self.segment_list.segments, 0, self.segment_list.end)
        for time in times:
            assert search.first(time) == next((each for each in found if each.timestamp >= time), None), time
        largest = max((each.timestamp for each in found), default=-1)
        assert search.largest() == next((each for each in found if each.timestamp == largest != -1), None)
        assert len(self.disk.opened) <= _OPEN_MAX

    def compare_read(self, offset: int, max_bytes: int) -> None:
        segment = self.segment_list.segment_of(offset)
        inside = [each for each in self.expected if segment.base_offset <= each.offset < segment.next_offset]
        rest = [each for each in inside if each.end > offset]
        for self.disk.cold in (False, True):
            for at_least_one in (False, True):
                expected, left = b"", max_bytes
                for each in rest:
                    if each.size > left and not (at_least_one and not expected):
                        break
                    expected, left = expected + each.data, left - each.size
                pieces: list[bytes] = result(self.reader.read(offset, self.segment_list.end, max_bytes, at_least_one))
                assert b"".join(pieces) == expected


@settings(max_examples=_EXAMPLES)
@given(STEPS, st.sampled_from([1, 200, 500, 100_000]), st.sampled_from([0, 150, 100_000]))
def test_log_is_what_was_written(steps: list[tuple[str, Any]], segment_bytes: int, interval: int) -> None:
    """
    Reads and searches find what was appended and not truncated, through rolls, restarts and crashes whose indexes are
    behind, missing, or garbage; epochs and segments match.
    """
    with TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as name:
        compared = Compared(Path(name) / "t-0", SegmentLimits(segment_bytes, LONG_MAX, interval))
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
    Searches find batches appended behind a truncation.
    """
    compared = Compared(tmp_path / "t-0", SegmentLimits(100_000, LONG_MAX, 0))
    for times in ([10], [20, 20, 20]):
        compared.append(at_times(*times))
    compared.segment_list.truncate(1)
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
    The last segment left, even one of an earlier process, continues as if nothing had been behind it.
    """
    compared = Compared(tmp_path / "t-0", SegmentLimits(100_000, LONG_MAX, 0))
    for times in ([40], [10], [30]):
        compared.append(at_times(*times))
    compared.roll()
    for times in ([50], [10]):
        compared.append(at_times(*times))
    compared.clean()
    (tmp_path / "t-0" / file_name(3, ".snapshot")).touch()  # it has the batches before
    compared.truncate(offset)
    for _ in range(4):
        compared.append(at_times(20))
    try:
        compared.compare()
        assert sorted(int(path.stem) for path in compared.folder.glob("*.log")) == [0, 3][: 1 + (offset >= 3)]
        assert (compared.folder / file_name(3, ".index")).exists() == (offset >= 3)
        assert (compared.folder / file_name(3, ".snapshot")).exists()
        assert compared.segment_list.segments[-1].first_timestamp == first
    finally:
        compared.close()


def test_the_largest_time_behind_a_lie(tmp_path: Path) -> None:
    """
    If a header has a timestamp that no record has, all batches that may have a larger one are read.
    """
    compared = Compared(tmp_path / "t-0", SegmentLimits(1, LONG_MAX, 0))
    for sent in (sealed(at_times(5), max_timestamp=99), at_times(4), at_times(6), at_times(-1)):
        compared.append(sent)
    compared.compare_times()
    compared.close()


def test_a_full_segment_of_one_batch_that_is_cut(tmp_path: Path) -> None:
    """
    The time index entry of the truncated batch does not apply to its successor.
    """
    compared = Compared(tmp_path / "t-0", SegmentLimits(1, LONG_MAX, 0))
    for time in (5, 6):
        compared.append(at_times(time))
    compared.truncate(0)
    for time in (7, 4, 3):
        compared.append(at_times(time))
    compared.compare()
    compared.close()
