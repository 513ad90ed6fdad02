"""
Compaction of a log with transactions leaves the same in one round as in several that end anywhere.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.log.compaction.compaction_round import FullSegment
from kgateway.broker.log.segments.cleaned_segment import cleaned_name
from kgateway.broker.log.segments.file_names import LOG, file_name
from kgateway.broker.partition.transactions import AbortedTransaction
from kgateway.records.batch import Batch
from kgateway.records.control import Marker, marker_batch
from tests.broker.log.compaction.jobs import TOKEN, Jobs, keyed, read
from tests.broker.log.recording_disk import RecordingDisk

PRODUCERS = (7, 8)
KEYS = (b"a", b"b", b"c")

_STEPS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from([None, *PRODUCERS]), st.sampled_from(KEYS)),
    st.tuples(st.sampled_from(["commit", "abort"]), st.sampled_from(PRODUCERS), st.none()),
    st.tuples(st.just("roll"), st.none(), st.none()),
)


@dataclass
class Script:
    """
    A log as it is written, with its segments and the expected rest. All transactions have ended.
    """

    segments: list[list[Batch]] = field(default_factory=lambda: [[]])
    aborted: list[AbortedTransaction] = field(default_factory=list)
    _rows: dict[int, bytes] = field(default_factory=dict)  # committed records by offset
    _open: dict[int, dict[int, bytes]] = field(default_factory=dict)
    _end: int = 0

    def write(self, producer: int | None, key: bytes) -> None:
        if producer is None:
            self._rows[self._end] = key
            self._add(keyed(key))
            return
        self._open.setdefault(producer, {})[self._end] = key
        options = {"producer_id": producer, "producer_epoch": 0, "base_sequence": self._end}
        self._add(keyed(key, is_transactional=True, **options))

    def finish(self, producer: int, *, commits: bool) -> None:
        rows = self._open.pop(producer, {})
        if commits:
            self._rows |= rows
        elif rows:
            self.aborted.append(AbortedTransaction(producer, min(rows), self._end, 0))
        self._add(marker_batch(producer, 0, Marker(commits, 3), 5))

    def roll(self) -> None:
        if self.segments[-1]:
            self.segments.append([])

    @property
    def kept(self) -> list[int]:
        last = {key: offset for offset, key in sorted(self._rows.items())}
        return sorted(last.values())

    def _add(self, batch: Batch) -> None:
        self.segments[-1].append(batch)
        self._end += 1


def _script(steps: Sequence[tuple[str, int | None, bytes | None]]) -> Script:
    script = Script()
    for what, producer, key in steps:
        if what == "write":
            script.write(producer, key or b"")
        elif producer is None:
            script.roll()
        else:
            script.finish(producer, commits=what == "commit")
    for producer in PRODUCERS:
        script.finish(producer, commits=False)
    return script


@contextmanager
def _jobs() -> Iterator[Jobs]:
    with TemporaryDirectory() as folder:
        jobs = Jobs(Path(folder) / "t-0", RecordingDisk())
        yield jobs
        jobs.files.close_all()


@given(st.lists(_STEPS, min_size=20, max_size=80), st.integers(1, 4))
def test_rounds(steps: list[tuple[str, int | None, bytes | None]], at_once: int) -> None:
    """
    Each round knows some more segments.
    """
    script = _script(steps)
    with _jobs() as jobs:
        jobs.write(*script.segments)
        ends = [segment.end for segment in jobs.full]
        known, ahead, clean = list[FullSegment](), jobs.full, 0
        while ahead:
            known, ahead = known + ahead[:at_once], ahead[at_once:]
            outcome = jobs.compact(segments=known, first_dirty=clean, aborted=script.aborted)
            clean = outcome.cleaned_to
            for one in outcome.rewritten:
                cleaned = jobs.folder / cleaned_name(one.base, LOG, TOKEN)
                cleaned.replace(jobs.folder / file_name(one.base, LOG))
                known = [full for full in known if not one.base <= full.base < one.end]
                known = sorted([*known, FullSegment(one.base, one.end, one.size)], key=lambda full: full.base)
        assert clean == ends[-1]
        left = b"".join((jobs.folder / file_name(one.base, LOG)).read_bytes() for one in known)
        assert [record.offset for record in read(left) if record.key in KEYS] == script.kept
