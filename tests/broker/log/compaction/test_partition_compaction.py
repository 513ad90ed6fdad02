"""
Compaction of a partition of a running broker, with other events meanwhile.
"""

from collections.abc import Callable
from errno import EIO, ENOSPC
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from kgateway.broker.log.compaction.partition_compaction import _ages
from kgateway.broker.log.compaction.record_filter import LastBatch
from kgateway.broker.log.compaction.scheduler import BACKOFF_MS
from kgateway.broker.log.segments.batch_scan import Damaged
from kgateway.broker.log.segments.file_names import COMPACTED
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import NewTopic
from kgateway.records.batch import batches
from kgateway.records.batch_rewrite import emptied
from kgateway.wire.errors import ErrorCode
from tests.broker.behaviour import EXPIRY_MS, START_MS, fetched, refusal, result
from tests.broker.log.compaction.jobs import Jobs, keyed
from tests.broker.log.compaction.topic_model import check_whole
from tests.broker.log.compaction.worlds import SIZE, Compacted, altered, bases, leftovers, offsets, told, write
from tests.broker.transaction_model import marked, transact
from tests.records.crc_batches import sealed
from tests.records.handmade_batches import holding

KEYS = [b"a", b"b"] * 3 + [b"c"]


def work(world: Compacted, count: int | None = None) -> None:
    """
    Let the threads finish all their jobs, or `count` of them.
    """
    while len(world.threads) and count != 0:
        world.threads.work()
        count = None if count is None else count - 1


def test_it_takes_the_place_of_what_was_there(world: Compacted) -> None:
    """
    There are fewer segments and records, kept ones have their offsets, appends succeed, and no file is left over
    after the deletion of the old ones.
    """
    partition = world.made(segment_bytes=3 * SIZE, file_delete_delay_ms=1_000)
    write(partition, *KEYS)
    assert bases(partition) == [0, 3, 6]
    altered(partition, segment_bytes=10 * SIZE)
    before = {path.name for path in partition.folder.iterdir()}
    with capturedLogs() as events:
        world.round()
    world.clock.advance(1)
    after = {path.name for path in partition.folder.iterdir()}
    assert bases(partition) == [0, 6]
    assert offsets(partition) == [4, 5, 6]
    check_whole(partition)
    write(partition, b"a")
    assert offsets(partition) == [4, 5, 6, 7]
    assert "t-0 is compacted up to offset 6: 2 of 6 records stay, 2 new keys, 0.0 s" in told(events, "info")
    assert not told(events, "warn")
    assert before - after == {f"{3:020d}{suffix}" for suffix in (".log", ".index", ".timeindex", ".snapshot")}
    assert not [name for name in after if name.endswith((".cleaned", ".deleted", ".compacted"))]


def test_old_files_stay_a_while(world: Compacted) -> None:
    """
    Open files can be read until they are removed after `file.delete.delay.ms`.
    """
    partition = world.made(file_delete_delay_ms=7_000)
    write(partition, *KEYS)
    world.round()
    count = sum(path.name.endswith(".deleted") for path in partition.folder.iterdir())
    assert count
    world.clock.advance(6.9)
    assert sum(path.name.endswith(".deleted") for path in partition.folder.iterdir()) == count
    world.clock.advance(0.1)
    assert not list(partition.folder.glob("*.deleted"))


def test_what_the_job_is_told(world: Compacted) -> None:
    """
    It has the topic's configs, the full segments, the remembered producers, and a name of its own.
    """
    config: dict[str, Any] = {"segment_bytes": 3 * SIZE, "delete_retention_ms": 77, "index_interval_bytes": 99}
    partition = world.made(**config)
    write(partition, *KEYS[:5])
    write(partition, b"x", producer_id=7, producer_epoch=0, base_sequence=0)
    write(partition, b"x", producer_id=8, producer_epoch=0, base_sequence=0)
    result(partition.delete_before(1))
    world.now_ms += 5
    world.round()
    job = world.work.jobs[0]
    assert [(one.base, one.end, one.size) for one in job.segments] == [(0, 3, 3 * SIZE), (3, 6, 3 * SIZE)]
    assert (job.first_dirty, job.log_start, job.now_ms) == (1, 1, START_MS + 5)
    assert (job.delete_retention_ms, job.segment_bytes, job.index_interval_bytes) == (77, 3 * SIZE, 99)
    assert job.last_batches == {7: LastBatch(0, 5), 8: LastBatch(0, 6)}
    write(partition, *KEYS)
    world.round()
    assert len({job.token for job in world.work.jobs}) == len(world.work.jobs) >= 2


def test_forgotten_producers(world: Compacted) -> None:
    """
    Nothing is kept for a producer that was forgotten.
    """
    partition = world.made()
    write(partition, b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    world.now_ms += EXPIRY_MS
    write(partition, *KEYS)
    partition.producers().expire(world.now_ms, 7)
    world.round()
    assert world.work.jobs[0].last_batches == {}


def test_producers_of_whom_only_markers_are_known(world: Compacted) -> None:
    """
    They have no last batch; others have one, even without a sequence number.
    """
    partition = world.made()
    transact(partition, marked(7, commits=True), keyed(b"a", producer_id=8, producer_epoch=0))
    write(partition, *KEYS)
    world.round()
    assert world.work.jobs[0].last_batches == {7: LastBatch(0, None), 8: LastBatch(0, 1)}
    assert offsets(partition) == [0, 5, 6, 7, 8]


def test_markers_of_what_coordinators_write(world: Compacted) -> None:
    """
    A producer commits offsets in one epoch, without sequence numbers. Only the last batch is kept, as a header, with
    its marker.
    """
    partition = world.made(segment_bytes=500, min_cleanable_dirty_ratio=0, delete_retention_ms=0)
    options = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    for _ in range(20):
        transact(partition, keyed(b"a", **options), marked(7, commits=True))
    for _ in range(4):
        write(partition, b"b")
        partition.segment_list.roll()
        world.now_ms += 1_000
        world.round()
    headers = [batch.header for data in fetched(partition, 0, 1 << 20).batches for batch in batches(data)]
    assert sum(header.producer_id == 7 for header in headers) == 2


def test_what_was_read_will_outlast_the_machine(world: Compacted) -> None:
    """
    All records of the job are synced before the decision, and the decision before the first rename.
    """
    partition = world.made()
    world.threads.slow = True
    write(partition, *KEYS)
    world.round()
    while not world.disk.count("write", COMPACTED):
        world.threads.work()
    assert partition.synced_offset >= 6
    work(world)
    done = world.disk.done
    decided = done.index(("sync", COMPACTED))
    first = min(n for n, (operation, name) in enumerate(done) if operation == "rename" and name.endswith(".log"))
    assert done.index(("sync_folder", "t-0")) < decided < first
    assert done.index(("remove", COMPACTED)) > first


def test_decision_waits_for_what_was_read(world: Compacted) -> None:
    """
    A round that is faster than the disk waits until its records are synced.
    """
    partition = world.made()
    world.threads.slow = True
    write(partition, *KEYS)
    assert len(world.threads) == 1
    world.round()
    while len(world.threads) > 1:
        world.threads.work(1)
    assert world.work.jobs
    assert not world.disk.count("write", COMPACTED)
    work(world)
    assert world.disk.count("write", COMPACTED) == 1
    world.threads.slow = False
    assert offsets(partition) == [4, 5, 6]


def test_nothing_is_synced_again(world: Compacted) -> None:
    """
    Nobody waits for another sync if everything is synced already, as with `kgateway.acks.fsync`.
    """
    partition = world.made(acks_fsync=True)
    write(partition, *KEYS)
    syncs = world.disk.count("sync", ".log")
    world.round()
    assert offsets(partition) == [4, 5, 6]
    assert world.disk.count("sync", ".log") == syncs


def test_nothing_to_take_away(world: Compacted) -> None:
    """
    The log is unchanged, and is clean.
    """
    partition = world.made()
    write(partition, *(b"%d" % n for n in range(7)))
    world.round()
    assert bases(partition) == [0, 2, 4, 6]
    assert not world.disk.count("write", COMPACTED)
    world.round()
    assert len(world.work.jobs) == 1


def test_unreadable_batches_are_told(world: Compacted) -> None:
    """
    The batches are kept for ever, which is logged as a warning.
    """
    partition = world.made()
    unreadable = sealed(holding(b"these are no records", 2), last_offset_delta=1)
    for sent in (keyed(b"a"), unreadable, keyed(b"a"), unreadable, keyed(b"a"), keyed(b"b")):
        partition.append(sent, Origin.COORDINATOR)  # clients cannot write these to a compacted topic
    with capturedLogs() as events:
        world.round()
    reason = "t-0: the records of 2 batches cannot be read and stay as they are"
    assert told(events, "warn") == [reason]


DELETIONS = pytest.mark.parametrize("offset", [2, 3, 4])


@DELETIONS
def test_records_are_deleted_meanwhile(offset: int, world: Compacted) -> None:
    """
    If segments of the job were deleted, everything is kept, without a log line; the next round compacts what is left.
    """
    partition = world.made()
    write(partition, *KEYS)
    world.work.then = lambda: result(partition.delete_before(offset))
    with capturedLogs() as events:
        world.round()
    assert bases(partition) == ([2, 4, 6] if offset < 4 else [4, 6])
    assert offsets(partition) == list(range(offset, 7))
    assert not leftovers(partition)
    assert not told(events, "warn")
    world.round()
    assert offsets(partition) == [4, 5, 6]
    check_whole(partition)


def test_log_start_moves_meanwhile(world: Compacted) -> None:
    """
    If no segment was deleted, the outcome is used, without the deleted records.
    """
    partition = world.made()
    write(partition, *KEYS)
    world.work.then = lambda: result(partition.delete_before(1))
    world.round()
    assert (partition.log_start, bases(partition)) == (1, [0, 2, 4, 6])
    assert offsets(partition) == [4, 5, 6]


def test_retention_comes_between(world: Compacted) -> None:
    """
    Segments that expire during the swap are deleted before or after it.
    """
    partition = world.made(cleanup_policy=("compact", "delete"), retention_ms=1_000)
    write(partition, *KEYS)

    def expire() -> None:
        world.now_ms += 10_000
        result(partition.expire())

    world.work.then = expire
    world.round()
    assert partition.log_start == 7
    assert not leftovers(partition)


def test_it_waits_for_deletions(world: Compacted) -> None:
    """
    Nothing is decided while others delete segments.
    """
    partition = world.made()
    write(partition, *KEYS)
    result(partition.segments_lock.acquire())
    world.round()
    assert world.work.jobs
    assert not world.disk.count("write", COMPACTED)
    partition.segments_lock.release()
    assert offsets(partition) == [4, 5, 6]
    assert not partition.segments_lock.locked


def test_deletions_wait_while_segments_are_swapped(world: Compacted) -> None:
    """
    After the decision, DeleteRecords waits until all segments are in place.
    """
    partition = world.made()
    write(partition, *KEYS)
    world.threads.slow = True
    world.round()
    while not world.disk.count("sync", COMPACTED):
        world.threads.work()
    deleted = partition.delete_before(4)
    work(world)
    assert result(deleted) == 4
    assert offsets(partition) == [4, 5, 6]
    assert not leftovers(partition)
    check_whole(partition)


@pytest.mark.parametrize("steps", range(9))
def test_the_topic_is_deleted_meanwhile(steps: int, world: Compacted) -> None:
    """
    Compaction of a deleted topic ends silently, and does not affect the next topic of the name.
    """
    world.made("other")
    partition = world.made()
    write(partition, *KEYS)
    world.threads.slow = True
    with capturedLogs() as events:
        world.round()
        work(world, steps)
        deleted = world.broker.delete_topic(partition.topic.id)
        while not deleted.called:
            world.threads.work()
        created = world.broker.create_topic(NewTopic("t", 1, TopicConfig(segment_bytes=2 * SIZE)))
        while not created.called:
            world.threads.work(len(world.threads) - 1)
        fresh = world.again()
        write(fresh, *KEYS)
        before = {path.name: path.read_bytes() for path in fresh.folder.iterdir()}
        work(world)
        after = {path.name: path.read_bytes() for path in fresh.folder.iterdir()}
    assert {name: after.get(name) for name in before} == before
    assert not leftovers(fresh)
    assert not told(events, "warn") + told(events, "error") + told(events, "critical")
    assert offsets(fresh) == list(range(7))


def test_the_topic_is_deleted_while_it_is_decided(world: Compacted) -> None:
    """
    Nothing is swapped any more.
    """
    partition = world.made()
    write(partition, *KEYS)
    result(partition.sync())
    world.threads.slow = True
    world.round()
    while not world.work.jobs:
        world.threads.work()
    deleted = world.broker.delete_topic(partition.topic.id)
    while partition.lost is None:
        world.threads.work(len(world.threads) - 1)
    work(world)
    assert deleted.called
    assert world.disk.count("write", COMPACTED) == 1
    assert not world.disk.count("rename", ".cleaned")


def test_what_was_written_is_known_to_be_good(world: Compacted) -> None:
    """
    The helper has checked its sources, so readers need not check again.
    """
    partition = world.made()
    write(partition, *KEYS)
    world.round()
    assert not any(segment.is_unchecked(0, segment.size) for segment in partition.segment_list.segments)


def test_first_timestamp(tmp_path: Path) -> None:
    """
    It is the largest of the first batch if that has records; without any timestamp the file's age counts.
    """
    jobs = Jobs(tmp_path / "t-0")
    first = keyed(b"a", b"b", timestamp=500)
    jobs.write([first, keyed(b"c")], [emptied(first.header), keyed(b"c")], [keyed(b"c", timestamp=-1)])
    full = jobs.segment_list.segments[:-1]
    jobs.disk.set_changed_ms(full[2].path, 77)
    aged = _ages(jobs.disk, full, jobs.full)
    assert [one.first_timestamp for one in aged] == [501, -1, -1]
    assert [one.newest_ms for one in aged] == [START_MS, START_MS, 77], "it is as old as its file"


def test_damage_of_a_topic_that_has_gone(world: Compacted) -> None:
    """
    Damage found in files of the next topic of the name is nobody's damage.
    """
    partition = world.made()
    write(partition, *KEYS)

    def go() -> None:
        result(world.broker.delete_topic(partition.topic.id))
        raise Damaged(0, "it ends too early")

    world.work.then = go
    with capturedLogs() as events:
        world.round()
    assert not told(events, "error")


REFUSED: dict[str, tuple[str, int]] = {
    "decision": (f"write {COMPACTED}", ENOSPC),
    "its sync": (f"sync {COMPACTED}", EIO),
}


@pytest.mark.parametrize("which", REFUSED)
def test_decision_cannot_be_written(which: str, world: Compacted) -> None:
    """
    Nothing changes, the operator is told why, and the next round compacts.
    """
    operation, code = REFUSED[which]
    partition = world.made()
    write(partition, *KEYS)
    world.disk.failing[operation] = code
    with capturedLogs() as events:
        world.round()
    (warning,) = told(events, "warn")
    assert warning.startswith("t-0 is not compacted: ")
    assert COMPACTED in warning
    assert offsets(partition) == list(range(7))
    assert partition.lost is None
    world.disk.failing.clear()
    world.round()
    assert offsets(partition) == [4, 5, 6]
    assert COMPACTED not in leftovers(partition)


def test_segments_cannot_be_put_in_place(world: Compacted) -> None:
    """
    The partition goes offline, because its files are unknown; the next process repairs it.
    """
    partition = world.made()
    write(partition, *KEYS)
    world.disk.failing["rename"] = EIO
    with capturedLogs() as events:
        world.round()
    (critical,) = told(events, "critical")
    assert critical.startswith("t-0 is offline, because its compacted segments could not be put in place: ")
    assert refusal(lambda: offsets(partition)).code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not told(events, "warn")
    assert COMPACTED in leftovers(partition)
    world.disk.failing.clear()
    world.killed()
    assert offsets(world.again()) == [4, 5, 6]
    assert not leftovers(world.again())


def test_decision_cannot_be_forgotten(world: Compacted) -> None:
    """
    The swapped segments are served; the next round or process has the same result.
    """
    partition = world.made()
    write(partition, *KEYS)
    world.disk.failing[f"remove {COMPACTED}"] = EIO
    with capturedLogs() as events:
        world.round()
    assert len(told(events, "warn")) == 1
    assert offsets(partition) == [4, 5, 6]
    world.disk.failing.clear()
    write(partition, *KEYS)
    world.killed()
    partition = world.again()
    assert not leftovers(partition)
    assert offsets(partition) == [4, 5, *range(6, 14)]
    check_whole(partition)


def test_records_cannot_be_synced(world: Compacted) -> None:
    """
    The partition goes offline as after any failed sync, and nothing is swapped.
    """
    partition = world.made()
    world.threads.slow = True
    write(partition, *KEYS)
    world.disk.failing["sync .log"] = EIO
    with capturedLogs() as events:
        world.round()
        world.threads.work(len(world.threads) - 1)
        work(world)
    assert partition.offline
    assert not told(events, "warn")
    assert not world.disk.count("write", COMPACTED)


def test_young_records_stay(world: Compacted) -> None:
    """
    With `min.compaction.lag.ms` a round compacts what is old enough by the records' timestamps.
    """
    partition = world.made(min_compaction_lag_ms=1_000)
    write(partition, *KEYS[:4], timestamp=START_MS - 2_000)
    write(partition, *KEYS[:3])
    world.round()
    assert [one.base for one in world.work.jobs[0].segments] == [0, 2]
    assert offsets(partition) == [2, 3, 4, 5, 6]
    world.now_ms += 1_001
    world.round()
    assert offsets(partition) == [4, 5, 6]


def test_dirt_that_is_due(world: Compacted) -> None:
    """
    With `max.compaction.lag.ms` old dirty records are compacted whatever the ratio, by the timestamp of the first
    dirty batch; clean segments may begin with batches without one.
    """
    partition = world.made(max_compaction_lag_ms=100_000, min_cleanable_dirty_ratio=1.0, segment_bytes=100 * SIZE)
    write(partition, *KEYS)
    world.round()
    assert not world.work.jobs
    world.now_ms += 100_001
    write(partition, b"a", timestamp=world.now_ms)
    assert bases(partition) == [0, 7]
    world.round()
    assert offsets(partition) == [4, 5, 6, 7]
    world.round()
    assert len(world.work.jobs) == 1


CLEANED_SUFFIX: dict[str, tuple[int, int]] = {
    "before the log start": (0, 2),
    "as it is": (3, 3),
    "behind the end": (99, 2),
}


@pytest.mark.parametrize("which", CLEANED_SUFFIX)
def test_what_was_cleaned(which: str, world: Compacted) -> None:
    """
    A round continues where the last one ended, or at the log start if that is no offset of the log.
    """
    cleaned_to, first_dirty = CLEANED_SUFFIX[which]
    partition = world.made()
    write(partition, *KEYS)
    result(partition.delete_before(2))
    cleaned: Any = world.broker._folder.cleaned_offsets  # type: ignore[attr-defined]  # of a LogBroker
    result(cleaned.put(partition.topic_partition, cleaned_to))
    world.round()
    assert world.work.jobs[0].first_dirty == first_dirty
    assert cleaned.of(partition.topic_partition) == 6


def test_dirt_behind_the_end(world: Compacted) -> None:
    """
    A cleaned offset beyond the log means the log start, too.
    """
    partition = world.made()
    write(partition, *KEYS)
    compacting: Any = world.broker._maintenance._scheduler._compacting  # type: ignore[attr-defined]  # of a LogBroker
    looks = [Deferred.fromCoroutine(compacting.look(partition, offset)) for offset in (7, 8)]
    assert [result(dirt).first_dirty for dirt in looks] == [7, 0]


@pytest.mark.parametrize("steps", [1, 2])
def test_other_partitions_are_looked_at_meanwhile(steps: int, world: Compacted) -> None:
    """
    Segments deleted while a partition is examined, or before its turn, are skipped.
    """
    config: dict[str, Any] = {"max_compaction_lag_ms": 10 * BACKOFF_MS}
    partition, other = world.made("a", **config), world.made("b", **config)
    write(partition, *KEYS)
    write(other, *KEYS[:3])
    world.threads.slow = True
    world.round()
    work(world, steps)
    deleted = partition.delete_before(2)
    with capturedLogs() as events:
        while not deleted.called:
            world.threads.work(len(world.threads) - 1)
        work(world)
    assert result(deleted) == 2
    asked_for = [job.segments[0].base for job in world.work.jobs if job.folder == str(partition.folder)]
    assert asked_for == [2] * (steps - 1)
    assert not told(events, "warn")
    assert not leftovers(partition)
    world.threads.slow = False
    world.round()
    assert offsets(partition) == [4, 5, 6]


Again = Callable[[Compacted], None]


@pytest.mark.parametrize("again", [Compacted.restart, Compacted.killed], ids=["stopped", "killed"])
def test_restart(again: Again, world: Compacted) -> None:
    """
    The next process finds the same records, and repeats nothing.
    """
    partition = world.made()
    write(partition, *KEYS)
    write(partition, b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    world.round()
    seen, count = offsets(partition), len(world.work.jobs)
    again(world)
    partition = world.again()
    assert offsets(partition) == seen
    check_whole(partition)
    write(partition, b"a", producer_id=7, producer_epoch=0, base_sequence=1)
    assert refusal(lambda: write(partition, b"a", producer_id=7, producer_epoch=0, base_sequence=9))
    world.round()
    assert len(world.work.jobs) == count
