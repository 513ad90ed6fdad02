"""
Which partitions of a data folder are compacted, when, and in which order.
"""

from collections.abc import Iterator
from errno import EIO
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from kgateway.broker.log.compaction.cleaner import BACKOFF_MS, is_compacted
from kgateway.broker.log.compaction.latest import ENTRY_BYTES
from kgateway.broker.log.kept_offsets import CLEANED_OFFSETS
from kgateway.broker.log.partition import LogPartition
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import NewTopic, Topic
from kgateway.records.batch import NO_TIMESTAMP
from kgateway.wire.uuids import Uuid
from tests.broker.behaviour import START_MS, ours, result
from tests.broker.log.compaction.compacted import read_all
from tests.broker.log.compaction.worlds import SIZE, Compacted, leftovers, offsets, told, write
from tests.broker.log.making import without_turns

KEYS = [b"a", b"b"] * 3 + [b"c"]
BACKOFF_S = BACKOFF_MS / 1000


def cleaned(world: Compacted) -> list[str]:
    """
    What the file of cleaned offsets says.
    """
    return (world.path / CLEANED_OFFSETS).read_text().splitlines()


def test_rounds(world: Compacted) -> None:
    """
    There is one every so often, the first after as long, and what has come since the last one is compacted in the next.
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
    As often as the broker was told.
    """
    world = Compacted(tmp_path, compaction_backoff_ms=500)
    write(world.made(), *KEYS)
    world.round(0.5)
    assert len(world.work.jobs) == 1


def test_dirtiest_first(world: Compacted) -> None:
    """
    Of several partitions that one comes first of which the largest part is dirty, whatever their order.
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
    What was left over for want of memory is taken up at once.
    """
    partition = world.made()
    write(partition, *KEYS)
    world.work.room = ENTRY_BYTES
    world.round()
    assert [job.first_dirty for job in world.work.jobs] == [0, 1, 2, 3, 4, 5]
    assert offsets(partition) == [4, 5, 6]
    assert cleaned(world)[2:] == ["t 0 6"]


def test_ratio_of_the_topic(world: Compacted) -> None:
    """
    A partition that is not dirty enough waits until it is.
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
    Topics without `compact` are left alone, and so are partitions that have one segment, or no record.
    """
    write(world.made("a", cleanup_policy=("delete",)), *KEYS)
    write(world.made("b", segment_bytes=100 * SIZE), *KEYS)
    world.made("c")
    write(world.made("d", cleanup_policy=("compact", "delete")), *KEYS)
    world.round()
    assert world.work.folders == ["d-0"]


def test_partitions_are_opened_for_it(world: Compacted) -> None:
    """
    Those of the last process are compacted too, though nobody has asked for them; unless they never had a record.
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
    They outlast the process, and the next round goes on from there; a topic that goes takes its own with it.
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
    What a process that was killed has left of a topic that went is not believed of the next one of its name.
    """
    world.kill()
    (world.path / CLEANED_OFFSETS).write_text("0\n1\nt 0 6\n")
    world.start()
    write(world.made(), *KEYS)
    world.round()
    assert [job.first_dirty for job in world.work.jobs] == [0]


def test_partitions_that_cannot_be_opened(world: Compacted) -> None:
    """
    They do not hinder the others, and are compacted when they can be had.
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
    Its offsets are given again, so nothing of it is believed to be clean.
    """
    partition = world.made()
    write(partition, *KEYS)
    world.round()
    assert cleaned(world)[2:] == ["t 0 6"]
    partition.log.truncate(2)
    partition.log_end = partition.high_watermark = 2
    partition.become(partition.topic)
    write(partition, *KEYS[:2])
    world.work.jobs.clear()
    world.round()
    write(partition, *KEYS)
    world.round()
    assert [job.first_dirty for job in world.work.jobs] == [0, 2]


def test_cleaned_offsets_cannot_be_kept(world: Compacted) -> None:
    """
    The operator is told, and the round goes on with other partitions; the next does it once more.
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
    path = partition.log.segments[1].path
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def test_damaged_partitions(world: Compacted) -> None:
    """
    One is not compacted any more, as a whole, and that is told once; all others are.
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
        f"a-0 is not compacted, for it is damaged: at byte {SIZE}: {2:020d}.log: the CRC of the batch is not that of "
        "its bytes. `kgateway log check` tells more."
    )
    assert not told(events, "warn")
    assert [world.work.folders.count(name) for name in ("a-0", "b-0")] == [1, 3]
    assert not leftovers(partition)
    assert len(partition.log.segments) == 4


def test_damage_on_a_disk_that_fails(world: Compacted) -> None:
    """
    What is told is the damage, even where nothing can be tidied up after it.
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
    It is told, does not hinder the others, and is tried again in the next round.
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
    The timestamps of a segment that the disk does not give hinder nobody else, and are asked for again in the next
    round.
    """
    lag_ms = 10 * BACKOFF_MS
    for name in ("a", "b"):
        write(world.made(name, max_compaction_lag_ms=lag_ms), *KEYS)
    path = world.again("a").log.segments[0].path
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
    What nobody has thought of ends the round, is logged, and does not end the rounds.
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
    Nothing begins any more.
    """
    write(world.made(), *KEYS)
    result(world.broker.stop())
    assert world.work.stopped
    world.round()
    assert not world.work.jobs


def test_stop_waits_for_what_was_begun(world: Compacted) -> None:
    """
    What is being compacted gets to an end, the next partition is not begun, and only then are the files closed.
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
    That the work was ended on the way is no news to anybody.
    """
    write(world.made(), *KEYS)
    world.threads.slow = True
    world.round()
    world.threads.work()
    with capturedLogs() as events:
        stopped = world.broker.stop()
        world.work.failure = OSError("the process that compacts ended with -9, and told nothing")
        while len(world.threads):
            world.threads.work()
    result(stopped)
    assert len(world.work.jobs) == 1
    assert not [event for event in ours(events) if event["log_level"].name != "info"]


def test_deleted_topics_are_passed_over(world: Compacted) -> None:
    """
    A topic that goes before its turn comes is not compacted, and nothing is told of it.
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
    A partition that goes while its round looks at another one is not looked at any more.
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
    Nothing is kept of how far it was clean.
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
    Those whose `cleanup.policy` says so, and the states of coordinators, whatever it says there.
    """
    topic = Topic(Uuid.random(), "t", (), TopicConfig(cleanup_policy=policy), internal)
    assert is_compacted(topic) == expected


def test_turns(tmp_path: Path) -> None:
    """
    Others have their turn before each partition is opened, and before each segment is put in place.
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
    A segment of which no record is left is as old as it was, and keeps nothing behind it from going.
    """
    partition = world.made(cleanup_policy=("compact", "delete"), retention_ms=10_000)
    write(partition, *[b"a"] * 4, *[b"%d" % number for number in range(4)])
    old_ms = START_MS - 60_000
    for segment in partition.log.segments:
        world.disk.set_changed_ms(segment.path, old_ms)
    world.round()
    first = partition.log.segments[0]
    assert first.largest() == NO_TIMESTAMP
    assert world.disk.changed_ms(first.path) == old_ms
    result(partition.expire())
    assert partition.log.start_offset > first.base_offset


def test_records_without_timestamps_are_as_old_as_their_file(world: Compacted) -> None:
    """
    `min.compaction.lag.ms` keeps them for as long as any others.
    """
    partition = world.made(min_compaction_lag_ms=10_000)
    write(partition, *KEYS, timestamp=-1)
    count = len(read_all(partition))
    for segment in partition.log.segments:
        world.disk.set_changed_ms(segment.path, START_MS - 9_999)
    world.round()
    assert len(read_all(partition)) == count
    for segment in partition.log.segments:
        world.disk.set_changed_ms(segment.path, START_MS - 10_000)
    world.round()
    assert len(read_all(partition)) < count


def test_the_same_reason_is_told_once(world: Compacted) -> None:
    """
    What fails in every round is told when it begins, and again when it has worked between.
    """
    write(world.made(), *KEYS)
    world.work.failure = OSError(EIO, "no such luck", "somewhere")
    with capturedLogs() as events:
        for _ in range(3):
            world.round()
    assert len(told(events, "warn")) == 1
