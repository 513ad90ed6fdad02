"""
One round of compaction of one log, on files.
"""

from errno import EIO

import pytest

from kgateway.broker.log.compaction.compaction_round import FullSegment, RewrittenSegment
from kgateway.broker.log.compaction.record_filter import LastBatch
from kgateway.broker.log.segments.batch_scan import Damaged
from kgateway.broker.log.segments.cleaned_segment import cleaned_name
from kgateway.broker.log.segments.file_names import LOG, file_name
from kgateway.broker.log.segments.index import FIRST
from kgateway.broker.log.segments.segment import OFFSETS_MAX
from kgateway.records.batch import DELETE_HORIZON_BIT, HEADER_SIZE, Batch, batches
from kgateway.records.batch_rewrite import hole
from kgateway.records.compression import Codec
from tests.broker.log.compaction.jobs import TOKEN, Jobs, keyed, read
from tests.broker.log.log_brokers import START_MS
from tests.broker.log.recording_disk import RecordingDisk
from tests.records.crc_batches import sealed
from tests.records.handmade_batches import body, holding
from tests.records.values import batch_of


def names(jobs: Jobs) -> list[str]:
    return [name for name in jobs.disk.names(jobs.folder) if name.endswith(".cleaned")]


def test_last_of_each_key(jobs: Jobs) -> None:
    """
    The last record of each key in all segments is kept at its offset, and the outcome has the counts.
    """
    jobs.write([keyed(b"a", b"b"), keyed(b"a")], [keyed(b"c", b"b", codec=Codec.LZ4)], [keyed(b"a", b"d")])
    outcome = jobs.compact()
    assert jobs.left(outcome) == [3, 4, 5, 6]
    assert (outcome.cleaned_to, outcome.keys, outcome.unreadable) == (7, 4, 0)
    assert (outcome.records_seen, outcome.records_kept) == (7, 4)


def test_the_very_last_record_stays(jobs: Jobs) -> None:
    """
    Readers reach the end of the compacted part, even if the last record has no key.
    """
    jobs.write([keyed(b"a", (None, b"1"))], [keyed((None, b"2"))])
    assert jobs.left(jobs.compact()) == [0, 2]


def test_nothing_to_change(jobs: Jobs) -> None:
    """
    A segment that keeps everything is not changed, and the attempt leaves no files.
    """
    jobs.write([keyed(b"a", b"b")])
    outcome = jobs.compact()
    assert (outcome.rewritten, outcome.cleaned_to) == ([], 2)
    assert not names(jobs)


def test_only_what_changes_is_written(jobs: Jobs) -> None:
    """
    Segments that keep everything are not rewritten.
    """
    jobs.write([keyed(b"a", b"b")], [keyed(b"c", b"x")], [keyed(b"c", b"d")])
    outcome = jobs.compact(segment_bytes=1)
    assert [(one.base, one.end) for one in outcome.rewritten] == [(2, 4)]
    assert jobs.left(outcome) == [0, 1, 3, 4, 5]


def test_small_segments_become_one(jobs: Jobs) -> None:
    """
    Neighbours that fit into `segment.bytes` together become one, even if everything is kept.
    """
    jobs.write([keyed(b"a")], [keyed(b"b")], [keyed(b"c")], [keyed(b"d")])
    size = jobs.full[0].size
    assert jobs.compact(segment_bytes=2 * size - 1).rewritten == []
    outcome = jobs.compact(segment_bytes=3 * size)
    assert outcome.rewritten == [RewrittenSegment(0, 3, 3 * size, [])]
    assert jobs.left(outcome) == [0, 1, 2, 3]
    assert [one.end for one in jobs.compact(segment_bytes=2 * size).rewritten] == [2, 4]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_indexes_stay_small(suffix: str, jobs: Jobs) -> None:
    """
    Neighbours whose joint index could exceed `segment.index.bytes` are not joined.
    """
    jobs.write([keyed(b"a")], [keyed(b"b")], [keyed(b"c")])
    for one in jobs.full:
        (jobs.folder / file_name(one.base, suffix)).write_bytes(bytes(24))
    assert jobs.compact(segment_index_bytes=47).rewritten == []
    assert [(one.base, one.end) for one in jobs.compact(segment_index_bytes=48).rewritten] == [(0, 2)]


def test_holes_are_nothing_new(jobs: Jobs) -> None:
    """
    A segment is not rewritten for a batch without records, which would only be written again.
    """
    jobs.write([hole(0, 4, 0), keyed(b"a")], [keyed(b"b"), hole(7, 7, 0)])
    assert jobs.compact(segment_bytes=1).rewritten == []


def test_segments_keep_their_age(jobs: Jobs) -> None:
    """
    A rewritten segment is as old as the newest of its sources.
    """
    jobs.write([keyed(b"a")], [keyed(b"a")], [keyed(b"b")])
    for one, changed_ms in zip(jobs.full, (3_000, 2_000, 1_000), strict=True):
        jobs.disk.set_changed_ms(jobs.folder / file_name(one.base, LOG), changed_ms)
    [made] = jobs.compact().rewritten
    assert jobs.disk.changed_ms(jobs.folder / cleaned_name(made.base, LOG, TOKEN)) == 3_000


def test_indexes_tell_offsets_in_32_bits(jobs: Jobs) -> None:
    """
    Segments too far apart for that are not joined.
    """
    far = sealed(keyed(b"b"), last_offset_delta=OFFSETS_MAX - 2)
    jobs.write([keyed(b"a")], [far], [keyed(b"c")])
    assert jobs.full[2] == FullSegment(OFFSETS_MAX, OFFSETS_MAX + 1, jobs.full[0].size)
    assert [(one.base, one.end) for one in jobs.compact().rewritten] == [(0, OFFSETS_MAX)]


def test_what_is_missing_between_segments(jobs: Jobs) -> None:
    """
    Segments with missing records between them, as after damage, are not joined, so that the gap is not hidden.
    """
    jobs.write([keyed(b"a")], [keyed(b"a")], [keyed(b"a")], [keyed(b"a")])
    gap = [segment for segment in jobs.full if segment.base != 1]
    outcome = jobs.compact(segments=gap)
    assert [(one.base, one.end) for one in outcome.rewritten] == [(0, 1), (2, 4)]
    for one in outcome.rewritten:
        first, *rest = [batch.header for batch in batches(jobs.data(one))]
        assert first.base_offset == one.base
        assert (rest[-1] if rest else first).last_offset == one.end - 1


def test_what_is_missing_within_a_segment(jobs: Jobs) -> None:
    """
    A gap inside a segment is still one afterwards.
    """
    jobs.write([keyed(b"a"), keyed(b"a"), keyed(b"a"), keyed(b"b")], [keyed(b"a")])
    path = jobs.segment_list.segments[0].path
    data, size = path.read_bytes(), len(keyed(b"a").data)
    path.write_bytes(data[:size] + data[2 * size :])
    segments = [FullSegment(0, 4, 3 * size), jobs.full[1]]
    (one,) = jobs.compact(segments=segments).rewritten
    spans = [(batch.header.base_offset, batch.header.last_offset) for batch in batches(jobs.data(one))]
    assert spans == [(0, 0), (2, 2), (3, 3), (4, 4)]


def test_every_offset_has_a_batch(jobs: Jobs) -> None:
    """
    Batches without records cover removed offsets, and the index of the segment finds the following ones.
    """
    jobs.write([keyed(b"a") for _ in range(9)] + [keyed(b"k")], [keyed(b"a"), keyed(b"b")])
    (one,) = jobs.compact(index_interval_bytes=0).rewritten
    headers = [batch.header for batch in batches(jobs.data(one))]
    assert [(header.base_offset, header.last_offset) for header in headers] == [(0, 8), (9, 9), (10, 10), (11, 11)]
    fresh = jobs.fresh(one)
    assert len(fresh.indexes.offsets) == 3
    assert fresh.largest() == START_MS
    assert fresh.indexes.offsets.at_most(FIRST, 10)[0] == 10


def test_seen_before(jobs: Jobs) -> None:
    """
    A later round reads the keys of the dirty part, and removes old records from the clean part too.
    """
    jobs.write([keyed(b"a", b"b")], [keyed(b"c")], [keyed(b"a")])
    assert isinstance(jobs.disk, RecordingDisk)
    jobs.disk.done.clear()
    outcome = jobs.compact(first_dirty=3)
    assert (outcome.keys, outcome.cleaned_to) == (1, 4)
    assert jobs.left(outcome) == [1, 2, 3]
    assert jobs.disk.count("open", "0.log") == jobs.disk.count("open", "2.log") == 1
    assert jobs.disk.count("open", "3.log") == 2


def test_dirty_from_the_middle_of_a_batch(jobs: Jobs) -> None:
    """
    The clean part may end inside a batch.
    """
    jobs.write([keyed(b"a", b"b", b"c")], [keyed(b"d")])
    assert jobs.compact(first_dirty=2).keys == 2
    assert jobs.compact(first_dirty=3).keys == 1


def test_memory_ends_a_round(jobs: Jobs) -> None:
    """
    A round ends before the record without room, even inside a batch or segment, and the next one continues until
    everything is clean.
    """
    jobs.write([keyed(b"a", b"b", b"a", b"c"), keyed(b"a")], [keyed(b"b", b"c")], [keyed(b"a", b"d")])
    first = jobs.compact(2)
    assert (first.cleaned_to, first.keys) == (3, 2)
    assert jobs.left(first) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [(one.base, one.end) for one in first.rewritten] == [(0, 5)]
    second = jobs.compact(2, first_dirty=3)
    assert (second.cleaned_to, second.keys) == (5, 2)
    ends = [5]
    while ends[-1] < 9:
        ends.append(jobs.compact(2, first_dirty=ends[-1]).cleaned_to)
    assert ends == [5, 7, 9]


def test_segments_behind_the_end_of_a_round(jobs: Jobs) -> None:
    """
    They are neither changed nor opened.
    """
    jobs.write([keyed(b"a"), keyed(b"b")], [keyed(b"a")])
    outcome = jobs.compact(1)
    assert (outcome.cleaned_to, outcome.rewritten) == (1, [])
    assert isinstance(jobs.disk, RecordingDisk)
    assert not jobs.disk.count("open", "2.log.token.cleaned")
    opened = jobs.disk.count("open", "2.log")
    jobs.compact(1)
    assert jobs.disk.count("open", "2.log") == opened


def test_control_batches(jobs: Jobs) -> None:
    """
    They are kept, and their content is no key.
    """
    jobs.write([keyed(b"a"), keyed(b"a", is_control=True)], [keyed(b"b")])
    outcome = jobs.compact()
    assert jobs.left(outcome) == [0, 1, 2]
    assert outcome.keys == 2


def half(key: bytes) -> Batch:
    """
    A batch whose first record alone can be read.
    """
    return sealed(holding(body(0, key) + b"no record", 2), last_offset_delta=1)


def test_unreadable_batches(jobs: Jobs) -> None:
    """
    They are kept and counted, and replace no earlier record, because nobody can read them.
    """
    jobs.write([keyed(b"a", b"b"), keyed(b"b")], [half(b"a")], [keyed(b"c")])
    outcome = jobs.compact()
    assert outcome.unreadable == 1
    (one,) = outcome.rewritten
    counts = {batch.header.base_offset: batch.header.records_count for batch in batches(jobs.data(one))}
    assert counts == {0: 1, 2: 1, 3: 2, 5: 1}


UNREADABLE = {
    "a record that ends with its key": sealed(holding(b"\x0a\0\0\0\2k" + body(1, b"k"), 2), last_offset_delta=1),
    "an offset before the batch": sealed(holding(b"\x0e\0\0\1\2k\1\0", 1), last_offset_delta=0),
    "a negative number of records": holding(body(0, b"k"), -1),
    "a codec that does not exist": sealed(holding(body(0, b"k"), 1), attributes=7),
}


@pytest.mark.parametrize("unreadable", UNREADABLE.values(), ids=UNREADABLE)
def test_impossible_records(unreadable: Batch, jobs: Jobs) -> None:
    """
    Their batch is kept as it is, whatever is impossible about them.
    """
    jobs.write([keyed(b"k"), sealed(unreadable)], [keyed(b"k")])
    outcome = jobs.compact()
    assert (outcome.unreadable, outcome.records_kept, outcome.keys) == (1, 1, 1)
    (one,) = outcome.rewritten
    _, kept, _ = batches(jobs.data(one))
    assert kept.data[HEADER_SIZE:] == unreadable.data[HEADER_SIZE:]


def test_impossible_timestamps(jobs: Jobs) -> None:
    """
    A batch with a timestamp beyond 64 bits is kept as it is, if that timestamp is needed.
    """
    jobs.write([sealed(keyed(b"a", b"b"), base_timestamp=(1 << 63) - 1)], [keyed(b"a")])
    outcome = jobs.compact(segment_bytes=1)
    assert (outcome.unreadable, outcome.records_seen, outcome.rewritten) == (1, 1, [])


def test_timestamps_of_the_broker(jobs: Jobs) -> None:
    """
    With LogAppendTime, all records keep the timestamp of their batch.
    """
    jobs.write([keyed(b"a", b"b", b"c", timestamp=7, log_append_time_ms=900)], [keyed(b"c")])
    (one,) = jobs.compact().rewritten
    assert [record.timestamp for record in read(jobs.data(one))] == [900, 900, START_MS]


def test_records_without_a_key(jobs: Jobs) -> None:
    """
    They are removed, and are not the last records of an empty key.
    """
    jobs.write([keyed(b"", (None, b"1"), b"a", (None, b"2"), b"b")])
    assert jobs.left(jobs.compact()) == [0, 2, 4]
    assert jobs.compact().keys == 3


def test_producers(jobs: Jobs) -> None:
    """
    The header of each producer's last batch is kept.
    """
    jobs.write(
        [keyed(b"a", producer_id=7, producer_epoch=0, base_sequence=n) for n in range(2)],
        [keyed(b"a", producer_id=8, producer_epoch=0, base_sequence=5)],
        [keyed(b"a")],
    )
    last = {7: LastBatch(0, 1), 8: LastBatch(0, 2)}
    (one,) = jobs.compact(last_batches=last).rewritten
    found = [(batch.header.producer_id, batch.header.records_count) for batch in batches(jobs.data(one))]
    assert found == [(-1, 0), (7, 0), (8, 0), (-1, 1)]


def test_tombstones(jobs: Jobs) -> None:
    """
    A tombstone is kept as long as the job says, from its horizon on.
    """
    jobs.write([keyed((b"a", None)), keyed(b"b")])
    (one,) = jobs.compact(now_ms=500, delete_retention_ms=7).rewritten
    first = next(batches(jobs.data(one))).header
    assert (first.has_delete_horizon, first.base_timestamp) == (True, 507)


@pytest.mark.parametrize(("now_ms", "left"), [(499, [0, 1]), (500, [1])])
def test_tombstones_are_removed(now_ms: int, left: list[int], jobs: Jobs) -> None:
    """
    A tombstone is removed when the horizon of its batch has come.
    """
    tombstone = keyed((b"a", None))
    attributes = tombstone.header.attributes | DELETE_HORIZON_BIT
    jobs.write([sealed(tombstone, attributes=attributes, base_timestamp=500), keyed(b"b")])
    assert jobs.left(jobs.compact(now_ms=now_ms)) == left


def test_log_start(jobs: Jobs) -> None:
    """
    Records below it are removed, even the last of a key.
    """
    jobs.write([keyed(b"a"), keyed(b"b"), keyed(b"c")])
    assert jobs.left(jobs.compact(log_start=1)) == [1, 2]


@pytest.mark.parametrize("segment", [0, 1])
def test_damage(segment: int, jobs: Jobs) -> None:
    """
    A log with damage anywhere is not changed, in its dirty or its clean part.
    """
    jobs.write([keyed(b"a"), keyed(b"a")], [keyed(b"a")])
    jobs.files.close_all()
    path = jobs.segment_list.segments[segment].path
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(Damaged, match=f"{path.name}: the CRC of the batch does not match its contents") as damaged:
        jobs.compact(first_dirty=2)
    assert damaged.value.position == (0 if segment else len(data) // 2)
    assert isinstance(jobs.disk, RecordingDisk)
    assert not jobs.disk.opened


def test_what_is_behind_a_segment(jobs: Jobs) -> None:
    """
    A crash may leave bytes behind the end of a segment, which are not read.
    """
    jobs.write([keyed(b"a"), keyed(b"a")], [keyed(b"a")])
    jobs.files.close_all()
    with jobs.segment_list.segments[0].path.open("ab") as file:
        file.write(bytes(100))
    assert jobs.left(jobs.compact()) == [2]


def test_what_cannot_be_read(jobs: Jobs) -> None:
    """
    Errors of the disk are raised unchanged, and so is a missing segment.
    """
    jobs.write([keyed(b"a")])
    assert isinstance(jobs.disk, RecordingDisk)
    jobs.disk.failing["read_at"] = EIO
    with pytest.raises(OSError, match="Input/output error"):
        jobs.compact()
    jobs.disk.failing.clear()
    jobs.segment_list.segments[0].path.unlink()
    with pytest.raises(FileNotFoundError):
        jobs.compact()


def test_names_outlast_the_machine(jobs: Jobs) -> None:
    """
    The folder is synced once everything is written, and only if something was.
    """
    jobs.write([keyed(b"a")])
    assert isinstance(jobs.disk, RecordingDisk)
    jobs.disk.done.clear()
    jobs.compact()
    assert not jobs.disk.count("sync_folder")
    jobs.write([keyed(b"a")])
    jobs.disk.done.clear()
    jobs.compact()
    assert [done for done, _ in jobs.disk.done if done.startswith("sync")] == ["sync", "sync", "sync", "sync_folder"]
    assert jobs.disk.done[-1] == ("sync_folder", "t-0")


def test_other_rounds(jobs: Jobs) -> None:
    """
    Their files have different names.
    """
    jobs.write([keyed(b"a")], [keyed(b"a")])
    jobs.compact()
    jobs.compact(token="other")
    assert sorted({name.split(".")[-2] for name in names(jobs)}) == ["other", TOKEN]


def test_records_are_what_they_were(jobs: Jobs) -> None:
    """
    Keys, values and timestamps are the same, byte for byte.
    """
    jobs.write([keyed((b"a", b"1"), (b"b", b"2"), timestamp=50)], [keyed((b"a", b"3"))])
    (one,) = jobs.compact().rewritten
    assert [tuple(record)[:4] for record in read(jobs.data(one))] == [
        (1, 51, b"b", b"2"),
        (2, START_MS, b"a", b"3"),
    ]
    assert batch_of([]).header.records_count == 0
