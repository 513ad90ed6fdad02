"""
Compaction of transactions, by Kafka's rules.
"""

from collections.abc import Iterable
from typing import Any

import pytest

from kgateway.broker.log.compaction.compaction_round import FullSegment
from kgateway.broker.log.compaction.record_filter import LastBatch
from kgateway.broker.log.segments.cleaned_segment import cleaned_name
from kgateway.broker.log.segments.file_names import LOG, file_name
from kgateway.broker.partition.transactions import ABORTED_INDEX, AbortedTransaction, checked_aborted
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.records.batch import Batch, batches
from kgateway.records.control import Marker, marker_batch, read_marker
from tests.broker.log.compaction.jobs import TOKEN, Jobs, keyed
from tests.records.crc_batches import sealed

NOW_MS, RETENTION_MS = 1_000_000, 500


def written(producer_id: int, *keys: bytes, sequence: int = 0, epoch: int = 0) -> Batch:
    options = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
    return keyed(*keys, is_transactional=True, **options)


def ended(producer_id: int, commits: bool, epoch: int = 0) -> Batch:
    return marker_batch(producer_id, epoch, Marker(commits, 3), 5)


def aborted(producer_id: int, first: int, last: int) -> AbortedTransaction:
    return AbortedTransaction(producer_id, first, last, last + 1)


class Rounds:
    """
    Successive rounds.
    """

    def __init__(self, jobs: Jobs, *segments: Iterable[Batch]) -> None:
        jobs.write(*segments)
        self.jobs = jobs
        self.told: list[AbortedTransaction] = []
        self.segments = jobs.full

    def go(self, aborted: list[AbortedTransaction], **changes: Any) -> list[int]:
        """
        Compact; return the base offsets of the batches left, without those that cover removed ones.
        """
        given: dict[str, Any] = {
            "now_ms": NOW_MS,
            "delete_retention_ms": RETENTION_MS,
            "segments": self.segments,
        }
        for one in self.jobs.compact(aborted=aborted, **given | changes).rewritten:
            self.told, self.segments = one.aborted, [FullSegment(one.base, one.end, one.size)]
            cleaned = self.jobs.folder / cleaned_name(one.base, LOG, TOKEN)
            cleaned.replace(self.jobs.folder / file_name(one.base, LOG))
        return [batch.header.base_offset for batch in self.left]

    @property
    def left(self) -> list[Batch]:
        (segment,) = self.segments
        data = (self.jobs.folder / file_name(segment.base, LOG)).read_bytes()
        return [batch for batch in batches(data) if batch.header.producer_id >= 0 or batch.header.records_count]


def horizon(batch: Batch) -> int | None:
    return batch.header.base_timestamp if batch.header.has_delete_horizon else None


def test_records_of_aborted_transactions_go(jobs: Jobs) -> None:
    """
    They are never the last of their key. The marker and the index entry are kept as long as any of them is there.
    """
    told = aborted(7, 1, 3)
    rounds = Rounds(jobs, [keyed(b"a"), written(7, b"a", b"b"), ended(7, commits=False), keyed(b"c")], [keyed(b"d")])
    assert rounds.go([told]) == [0, 3, 4, 5]
    assert rounds.told == [told]
    assert [horizon(batch) for batch in rounds.left] == [None] * 4


def test_committed_records_are_like_others(jobs: Jobs) -> None:
    """
    Later ones replace earlier ones. The marker is kept as long as any of them is there.
    """
    rounds = Rounds(
        jobs, [written(7, b"a"), written(7, b"b", sequence=1), ended(7, commits=True), keyed(b"a")], [keyed(b"c")]
    )
    assert rounds.go([]) == [1, 2, 3, 4]
    assert [horizon(batch) for batch in rounds.left] == [None] * 4


@pytest.mark.parametrize("commits", [True, False])
def test_markers_go_when_nothing_is_left(jobs: Jobs, commits: bool) -> None:
    """
    The first round that finds nothing of the transaction sets the time, and one after that time removes the marker.
    """
    told = [] if commits else [aborted(7, 0, 1)]
    rounds = Rounds(jobs, [written(7, b"a"), ended(7, commits), keyed(b"a")], [keyed(b"b")])
    assert rounds.go(told) == [1, 2, 3]
    assert (rounds.told, horizon(rounds.left[0])) == (told, None)
    again = {"now_ms": NOW_MS + 5}
    assert rounds.go(told, **again) == [1, 2, 3]
    assert (rounds.told, horizon(rounds.left[0])) == ([], NOW_MS + 5 + RETENTION_MS)
    assert read_marker(rounds.left[0]) == Marker(commits, 3)
    assert rounds.go([], now_ms=NOW_MS + 4 + RETENTION_MS) == [1, 2, 3]
    assert rounds.go([], now_ms=NOW_MS + 5 + RETENTION_MS) == [2, 3]


def test_markers_that_are_the_last_of_their_producers(jobs: Jobs) -> None:
    """
    Its header is kept if no batch with a sequence number is remembered in the producer's epoch.
    """
    rounds = Rounds(
        jobs, [ended(7, commits=True, epoch=4), ended(8, commits=True, epoch=4), keyed(b"a")], [keyed(b"b")]
    )
    last = {7: LastBatch(4, None), 8: LastBatch(5, None)}
    late = {"delete_retention_ms": 0, "last_batches": last}
    assert rounds.go([], **late) == [0, 1, 2, 3]
    assert rounds.go([], **late) == [0, 2, 3]
    header = rounds.left[0].header
    assert (header.producer_id, header.producer_epoch, header.records_count, header.is_control) == (7, 4, 0, True)
    assert not header.has_delete_horizon


def test_last_batches_of_aborted_transactions(jobs: Jobs) -> None:
    """
    The header, from which sequence numbers continue, is kept with the marker.
    """
    told = [aborted(7, 0, 2)]
    last = {7: LastBatch(0, 1)}
    rounds = Rounds(jobs, [written(7, b"a", b"b"), ended(7, commits=False), keyed(b"a")], [keyed(b"b")])
    for _ in range(3):
        assert rounds.go(told, last_batches=last, delete_retention_ms=0) == [0, 2, 3, 4]
        assert [batch.header.records_count for batch in rounds.left] == [0, 1, 1, 1]
        assert (rounds.told, horizon(rounds.left[1])) == (told, None)


def test_one_producers_transactions(jobs: Jobs) -> None:
    """
    Each marker belongs to the batches since the previous one.
    """
    told = [aborted(7, 4, 5)]
    rounds = Rounds(
        jobs,
        [written(7, b"a"), ended(7, commits=True), written(7, b"b", sequence=1), ended(7, commits=True)],
        [written(7, b"b", sequence=2), ended(7, commits=False), keyed(b"a")],
        [keyed(b"c")],
    )
    assert rounds.go(told) == [1, 2, 3, 5, 6, 7]
    assert rounds.go(told) == [1, 2, 3, 5, 6, 7]
    assert [horizon(batch) is not None for batch in rounds.left] == [True, False, False, True, False, False]


def test_aborted_records_at_the_end_stay(jobs: Jobs) -> None:
    """
    They are kept until a later round knows what follows: readers reach the end of the decided part.
    """
    told = [aborted(7, 1, 3)]
    rounds = Rounds(jobs, [keyed(b"a"), written(7, b"a"), written(7, b"b")], [ended(7, commits=False), keyed(b"c")])
    first, second = rounds.segments
    rounds.segments = [first]
    assert rounds.go(told) == [0, 2]
    rounds.segments += [second]
    assert rounds.go(told) == [0, 3, 4]


def test_horizons_have_an_end(jobs: Jobs) -> None:
    """
    A horizon beyond the largest timestamp is the largest timestamp.
    """
    rounds = Rounds(jobs, [keyed((b"a", None)), ended(7, commits=True), keyed(b"b")], [keyed(b"c")])
    assert rounds.go([], delete_retention_ms=LONG_MAX) == [0, 1, 2, 3]
    assert [horizon(batch) for batch in rounds.left] == [LONG_MAX, LONG_MAX, None, None]


def test_what_a_round_does_not_know_of_stays(jobs: Jobs) -> None:
    """
    Behind the keys for which there was room, aborted records and their index entries are kept, too.
    """
    told = [aborted(7, 2, 3)]
    rounds = Rounds(
        jobs,
        [keyed(b"a"), keyed(b"b"), written(7, b"c"), ended(7, commits=False), ended(8, commits=True)],
        [keyed(b"a")],
    )
    outcome = jobs.compact(room=1, aborted=told, now_ms=NOW_MS)
    assert (outcome.cleaned_to, outcome.keys) == (1, 1)
    assert rounds.go(told, first_dirty=1) == [1, 3, 4, 5]


def test_transactions_that_began_before_the_dirty_part(jobs: Jobs) -> None:
    """
    The index of aborted transactions has them.
    """
    told = [aborted(7, 0, 3)]
    rounds = Rounds(
        jobs, [written(7, b"a"), keyed(b"b")], [written(7, b"b", sequence=1), ended(7, commits=False)], [keyed(b"z")]
    )
    assert rounds.go(told, first_dirty=2) == [1, 3, 4]


def test_transactions_that_ended_before_the_dirty_part(jobs: Jobs) -> None:
    """
    Records that their producers have committed since are the last of their keys.
    """
    told = [aborted(7, 1, 2), aborted(7, 3, 4)]
    before = [keyed(b"a"), written(7, b"x"), ended(7, commits=False), written(7, b"y"), ended(7, commits=False)]
    rounds = Rounds(jobs, before, [written(7, b"a", sequence=2), ended(7, commits=True)], [keyed(b"z")])
    assert rounds.go(told, first_dirty=5) == [2, 4, 5, 6, 7]


def test_markers_that_are_missing(jobs: Jobs) -> None:
    """
    A transaction without a marker ends where the index says.
    """
    rounds = Rounds(jobs, [written(7, b"x"), keyed(b"lost"), written(7, b"a")], [ended(7, commits=True)], [keyed(b"z")])
    assert rounds.go([aborted(7, 0, 1)]) == [1, 2, 3, 4]
    assert rounds.told == []


@pytest.mark.parametrize("had_file", [True, False])
def test_files(jobs: Jobs, had_file: bool) -> None:
    """
    The remaining aborted transactions are written beside the segment, if there was such a file before.
    """
    told = [aborted(7, 0, 1), aborted(8, 2, 3)]
    jobs.write([written(7, b"a"), ended(7, commits=False), written(8, b"b"), ended(8, commits=False)], [keyed(b"c")])
    if had_file:
        (jobs.folder / f"{0:020d}{ABORTED_INDEX}").touch()
    last = {8: LastBatch(0, 2)}
    (one,) = jobs.compact(aborted=told, last_batches=last).rewritten
    path = jobs.folder / cleaned_name(0, ABORTED_INDEX, TOKEN)
    assert path.exists() == had_file
    assert one.aborted == told
    if had_file:
        assert checked_aborted(path.read_bytes(), 0) == told


def test_markers_that_cannot_be_read(jobs: Jobs) -> None:
    """
    They are kept.
    """
    broken = sealed(keyed(b"ab", is_control=True, is_transactional=True, producer_id=7, producer_epoch=0))
    rounds = Rounds(jobs, [broken, keyed(b"a"), keyed(b"a")], [keyed(b"b")])
    assert rounds.go([]) == [0, 2, 3]
    assert horizon(rounds.left[0]) is None
