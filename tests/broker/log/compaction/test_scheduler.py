"""
Which partitions of a data folder are compacted, when, and in which order.
"""

from collections.abc import Iterator
from errno import EIO
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from kgateway.broker.log.compaction.scheduler import BACKOFF_MS, is_compacted
from kgateway.broker.log.data_folder.checkpoints import CLEANED_OFFSETS
from kgateway.broker.log.partition.partition import LogPartition
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import NewTopic, Topic
from kgateway.records.batch import NO_TIMESTAMP
from kgateway.wire.uuids import Uuid
from tests.broker.behaviour import START_MS, ours, result
from tests.broker.log.compaction.topic_model import read_all
from tests.broker.log.compaction.worlds import SIZE, Compacted, leftovers, offsets, told, write
from tests.broker.log.log_brokers import without_turns

KEYS = [b"a", b"b"] * 3 + [b"c"]
BACKOFF_S = BACKOFF_MS / 1000


def cleaned(world: Compacted) -> list[str]:
    """
    The lines of the file of cleaned offsets.
    """
    return (world.path / CLEANED_OFFSETS).read_text().splitlines()


def test_rounds(world: Compacted) -> None:
    """
    Rounds begin at intervals, the first after one interval, and each compacts what was written since the last.
    """
    partition = world.made()
    write(partition, *KEYS)
    world.round(BACKOFF_S - 0.1)
    assert not world.work.jobs
    world.round(0.1)
    assert world.work.folders == ["t-0"]
    write(partition, *KEYS)
    world.round(BACKOFF_S - 0.1)
    assert len(world.work.jobs) == 1
    world.round(0.1)
    assert world.work.folders == ["t-0"] * 2
    assert offsets(partition) == [6, 10, 11, 12, 13]


def test_how_often(tmp_path: Path) -> None:
    """
    The interval is a setting of the broker.
    """
    world = Compacted(tmp_path, compaction_backoff_ms=500)
    write(world.made(), *KEYS)
    world.round(0.5)
    assert len(world.work.jobs) == 1


def test_dirtiest_first(world: Compacted) -> None:
    """
    The partition with the largest dirty ratio comes first, whatever the order of partitions.
    """
    counts = {"a": 2, "b": 6, "c": 4}
    for name in counts:
        write(world.made(name, segment_bytes=SIZE), *(b"%d" % n for n in range(5)))
    world.round()
    world.work.jobs.clear()
    for name, count in counts.items():
        write(world.again(name), *[b"k"] * count)
    world.round()
    assert world.work.folders == ["b-0", "c-0", "a-0"]


def test_a_round_goes_on_until_all_is_clean(world: Compacted) -> None:
    """
    Records left over for lack of memory are compacted at once.
    """
    partition = world.made()
    write(partition, *KEYS)
    world.work.room = 1  # byte: one key fits
    world.round()
    assert [job.first_dirty for job in world.work.jobs] == [0, 1, 2, 3, 4, 5]
    assert offsets(partition) == [4, 5, 6]
    assert cleaned(world)[2:] == ["t 0 6"]


def test_ratio_of_the_topic(world: Compacted) -> None:
    """
    A partition waits until it is dirty enough.
    """
    partition = world.made(min_cleanable_dirty_ratio=0.6, segment_bytes=SIZE)
    write(partition, *(b"%d" % n for n in range(4)))
    world.round()
    write(partition, b"0", b"1", b"2")
    world.round()
    assert len(world.work.jobs) == 1
    write(partition, b"0", b"1")
    world.round()
    assert len(world.work.jobs) == 2


def test_other_topics(world: Compacted) -> None:
    """
    Topics without `compact` are skipped, and so are partitions with one segment or no record.
    """
    write(world.made("a", cleanup_policy=("delete",)), *KEYS)
    write(world.made("b", segment_bytes=100 * SIZE), *KEYS)
    world.made("c")
    write(world.made("d", cleanup_policy=("compact", "delete")), *KEYS)
    world.round()
    assert world.work.folders == ["d-0"]


def test_partitions_are_opened_for_it(world: Compacted) -> None:
    """
    Partitions of the last process are compacted without any request, unless they never had a record.
    """
    config = TopicConfig.of({"cleanup.policy": "compact", "segment.bytes": str(1 << 20)})
    result(world.broker.create_topic(NewTopic("t", 2, config)))
    partition = world.again("t", 1)
    write(partition, *[(b"k", bytes(600_000))] * 3)
    world.restart()
    world.round()
    assert world.work.folders == ["t-1"]
    assert offsets(world.again("t", 1)) == [1, 2]
    assert not (world.path / "t-0").exists()


def test_cleaned_offsets_are_kept(world: Compacted) -> None:
    """
    They survive the process, and the next round continues there; those of a deleted topic are removed.
    """
    partition = world.made()
    write(partition, *KEYS)
    write(world.made("other"), *KEYS)
    world.round()
    assert sorted(cleaned(world)) == ["0", "2", "other 0 6", "t 0 6"]
    old = partition.topic
    result(world.broker.delete_topic(old.id))
    partition = world.made()
    assert cleaned(world) == ["0", "1", "other 0 6"]
    write(partition, *KEYS)
    world.work.jobs.clear()
    world.round()
    assert [job.first_dirty for job in world.work.jobs] == [0]


def test_cleaned_offsets_of_earlier_topics(world: Compacted) -> None:
    """
    What a killed process has left of a deleted topic does not count for the next one of its name.
    """
    world.kill()
    (world.path / CLEANED_OFFSETS).write_text("0\n1\nt 0 6\n")
    world.start()
    write(world.made(), *KEYS)
    world.round()
    assert [job.first_dirty for job in world.work.jobs] == [0]


def test_partitions_that_cannot_be_opened(world: Compacted) -> None:
    """
    They do not hinder others, and are compacted once they can be opened.
    """
    config = TopicConfig.of({"cleanup.policy": "compact", "segment.bytes": str(1 << 20)})
    for name in ("a", "b"):
        result(world.broker.create_topic(NewTopic(name, 1, config)))
        write(world.again(name), *[(b"k", bytes(600_000))] * 3)
    world.restart()
    world.disk.failing["names a-0"] = EIO
    with capturedLogs() as events:
        world.round()
    assert world.work.folders == ["b-0"]
    assert not [event for event in events if "log_failure" in event]
    world.disk.failing.clear()
    world.round()
    assert world.work.folders == ["b-0", "a-0"]


def test_a_log_that_has_lost_its_end(world: Compacted) -> None:
    """
    Its offsets are assigned again, so none counts as clean.
    """
    partition = world.made()
    write(partition, *KEYS)
    world.round()
    assert cleaned(world)[2:] == ["t 0 6"]
    partition.segment_list.truncate(2)
    partition.log_end = partition.high_watermark = 2
    partition.set_topic(partition.topic)
    write(partition, *KEYS[:2])
    world.work.jobs.clear()
    world.round()
    write(partition, *KEYS)
    world.round()
    assert [job.first_dirty for job in world.work.jobs] == [0, 2]


def test_cleaned_offsets_cannot_be_kept(world: Compacted) -> None:
    """
    The operator is told, and the round continues with other partitions; the next one repeats the work.
    """
    write(world.made("a"), *KEYS)
    write(world.made("b"), *KEYS)
    world.disk.failing[f"write {CLEANED_OFFSETS}"] = EIO
    with capturedLogs() as events:
        world.round()
    assert sorted(world.work.folders) == ["a-0", "b-0"]
    assert len(told(events, "warn")) == 2
    world.disk.failing.clear()
    world.round()
    assert sorted(cleaned(world)[2:]) == ["a 0 6", "b 0 6"]


def damage(partition: LogPartition) -> None:
    path = partition.segment_list.segments[1].path
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def test_damaged_partitions(world: Compacted) -> None:
    """
    They are not compacted any more, which is logged once; all others are.
    """
    partition, other = world.made("a"), world.made("b")
    for each in (partition, other):
        write(each, *KEYS)
    damage(partition)
    with capturedLogs() as events:
        for _ in range(3):
            world.round()
            write(other, *KEYS)
    (error,) = told(events, "error")
    assert error == (
        f"a-0 is not compacted, because it is damaged: at byte {SIZE}: {2:020d}.log: the CRC of the batch does not "
        "match its contents. Run `kgateway log check` for details."
    )
    assert not told(events, "warn")
    assert [world.work.folders.count(name) for name in ("a-0", "b-0")] == [1, 3]
    assert not leftovers(partition)
    assert len(partition.segment_list.segments) == 4


def test_damage_on_a_disk_that_fails(world: Compacted) -> None:
    """
    The damage is logged, even if its files cannot be removed.
    """
    partition = world.made()
    write(partition, *KEYS)
    damage(partition)
    world.disk.failing["names t-0"] = EIO
    with capturedLogs() as events:
        world.round()
    assert len(told(events, "error")) == 1
    assert not told(events, "warn")


def test_what_cannot_be_compacted_now(world: Compacted) -> None:
    """
    The reason is logged; others are not hindered, and the next round retries.
    """
    partition = world.made("a")
    write(partition, *KEYS)
    world.work.failure = OSError(EIO, "no such luck", "somewhere")
    with capturedLogs() as events:
        world.round()
    assert told(events, "warn") == ["a-0 is not compacted: no such luck (somewhere)"]
    assert world.work.folders == ["a-0"]
    write(world.made("b"), *KEYS)
    with capturedLogs():
        world.round()
    assert sorted(world.work.folders[1:]) == ["a-0", "b-0"]
    world.work.failure = None
    world.round()
    assert offsets(partition) == [4, 5, 6]


def test_what_cannot_be_looked_at(world: Compacted) -> None:
    """
    A segment whose timestamps cannot be read hinders no other partition, and is read again in the next round.
    """
    lag_ms = 10 * BACKOFF_MS
    for name in ("a", "b"):
        write(world.made(name, max_compaction_lag_ms=lag_ms), *KEYS)
    path = world.again("a").segment_list.segments[0].path
    path.rename(path.with_suffix(".aside"))
    with capturedLogs() as events:
        world.round()
    assert world.work.folders == ["b-0"]
    assert told(events, "warn") == [f"a-0 is not compacted: No such file or directory ({path})"]
    assert not [event for event in events if "log_failure" in event]
    path.with_suffix(".aside").rename(path)
    world.round()
    assert world.work.folders == ["b-0", "a-0"]


def test_bugs(world: Compacted) -> None:
    """
    An unexpected failure ends the round and is logged, but does not end the rounds.
    """
    write(world.made(), *KEYS)
    world.work.failure = ZeroDivisionError("a bug")
    with capturedLogs() as events:
        world.round()
    (failure,) = [event["log_failure"] for event in events if "log_failure" in event]
    assert failure.check(ZeroDivisionError)
    world.work.failure = None
    world.round()
    assert len(world.work.jobs) == 2


def test_stop_between_rounds(world: Compacted) -> None:
    """
    No partition is compacted any more.
    """
    write(world.made(), *KEYS)
    result(world.broker.stop())
    assert world.work.stopped
    world.round()
    assert not world.work.jobs


def test_stop_waits_for_what_was_begun(world: Compacted) -> None:
    """
    The current partition is finished, the next one is not begun, and then the files are closed.
    """
    for name in ("a", "b"):
        write(world.made(name), *KEYS)
    world.threads.slow = True
    world.round()
    while not world.work.jobs:
        world.threads.work()
    with capturedLogs() as events:
        stopped = world.broker.stop()
        assert world.work.stopped
        assert not stopped.called
        while len(world.threads):
            world.threads.work()
    result(stopped)
    assert len(world.work.jobs) == 1
    assert not told(events, "warn")
    assert not world.disk.opened
    world.threads.slow = False
    world.start()
    (done,) = cleaned(world)[2:]
    assert offsets(world.again(done[0])) == [4, 5, 6]


def test_stop_ends_what_was_begun(world: Compacted) -> None:
    """
    A cancelled compaction logs nothing.
    """
    write(world.made(), *KEYS)
    world.threads.slow = True
    world.round()
    world.threads.work()
    with capturedLogs() as events:
        stopped = world.broker.stop()
        world.work.failure = OSError("the compaction process ended with -9 and reported nothing")
        while len(world.threads):
            world.threads.work()
    result(stopped)
    assert len(world.work.jobs) == 1
    assert not [event for event in ours(events) if event["log_level"].name != "info"]


def test_deleted_topics_are_passed_over(world: Compacted) -> None:
    """
    A topic deleted before its turn is skipped without a log line.
    """
    for name, count in (("a", 7), ("b", 5)):
        write(world.made(name), *KEYS[:count])
    gone = world.again("b").topic.id
    world.work.then = lambda: result(world.broker.delete_topic(gone))
    with capturedLogs() as events:
        world.round()
    assert len(world.work.folders) == 1
    assert not told(events, "warn")


def test_deleted_while_others_are_looked_at(world: Compacted) -> None:
    """
    A partition deleted while its round examines another one is not examined.
    """
    lag_ms = 10 * BACKOFF_MS
    write(world.made("a", max_compaction_lag_ms=lag_ms, min_cleanable_dirty_ratio=1.0), *KEYS)
    gone = world.made("b")
    write(gone, *KEYS)
    world.threads.slow = True
    world.round()
    world.threads.work()
    deleted = world.broker.delete_topic(gone.topic.id)
    while not deleted.called:
        world.threads.work(len(world.threads) - 1)
    while len(world.threads):
        world.threads.work()
    assert not world.work.jobs


def test_deleted_while_it_is_compacted(world: Compacted) -> None:
    """
    Its cleaned offset is not stored.
    """
    partition = world.made()
    write(partition, *(b"%d" % n for n in range(7)))  # nothing to swap
    world.work.then = lambda: result(world.broker.delete_topic(partition.topic.id))
    world.round()
    assert not (world.path / CLEANED_OFFSETS).exists()


@pytest.mark.parametrize(
    ("policy", "internal", "expected"),
    [(("delete",), False, False), (("compact",), False, True), (("delete",), True, True), (("compact",), True, True)],
)
def test_which_topics(policy: tuple[str, ...], internal: bool, expected: bool) -> None:
    """
    Those whose `cleanup.policy` says so, and coordinators' state whatever its policy.
    """
    topic = Topic(Uuid.random(), "t", (), TopicConfig(cleanup_policy=policy), internal)
    assert is_compacted(topic) == expected


def test_turns(tmp_path: Path) -> None:
    """
    Other work runs before each partition is opened, and before each segment is swapped.
    """
    turns = list[object]()

    def in_turns(steps: Iterator[Deferred[object] | None]) -> Deferred[object]:
        turns.append(steps)
        return without_turns(steps)

    world = Compacted(tmp_path, in_turns=in_turns)
    write(world.made(), *KEYS)
    turns.clear()
    world.round()
    opened, placed = 1, 2
    assert sum(isinstance(steps, type(iter([]))) for steps in turns) == opened + placed


def test_what_compaction_has_emptied_goes_by_its_age(world: Compacted) -> None:
    """
    A segment without records keeps its age, and does not prevent the deletion of later ones.
    """
    partition = world.made(cleanup_policy=("compact", "delete"), retention_ms=10_000)
    write(partition, *[b"a"] * 4, *[b"%d" % number for number in range(4)])
    old_ms = START_MS - 60_000
    for segment in partition.segment_list.segments:
        world.disk.set_changed_ms(segment.path, old_ms)
    world.round()
    first = partition.segment_list.segments[0]
    assert first.largest() == NO_TIMESTAMP
    assert world.disk.changed_ms(first.path) == old_ms
    result(partition.expire())
    assert partition.segment_list.start_offset > first.base_offset


def test_records_without_timestamps_are_as_old_as_their_file(world: Compacted) -> None:
    """
    `min.compaction.lag.ms` protects them as long as others.
    """
    partition = world.made(min_compaction_lag_ms=10_000)
    write(partition, *KEYS, timestamp=-1)
    count = len(read_all(partition))
    for segment in partition.segment_list.segments:
        world.disk.set_changed_ms(segment.path, START_MS - 9_999)
    world.round()
    assert len(read_all(partition)) == count
    for segment in partition.segment_list.segments:
        world.disk.set_changed_ms(segment.path, START_MS - 10_000)
    world.round()
    assert len(read_all(partition)) < count


def test_the_same_reason_is_told_once(world: Compacted) -> None:
    """
    A failure of every round is logged when it begins, and again after a success.
    """
    write(world.made(), *KEYS)
    world.work.failure = OSError(EIO, "no such luck", "somewhere")
    with capturedLogs() as events:
        for _ in range(3):
            world.round()
    assert len(told(events, "warn")) == 1
