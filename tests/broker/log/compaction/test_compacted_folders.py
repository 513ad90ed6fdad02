"""
The files of compacted topics, as the log check and the next process see them.
"""

from collections.abc import Callable
from errno import EIO
from pathlib import Path
from random import Random

import pytest
from twisted.logger import capturedLogs

from kgateway.broker.log.data_folder.checkpoints import CLEANED_OFFSETS
from kgateway.broker.log.files.local_disk import LocalDisk
from kgateway.broker.log.inspection.findings import Finding
from kgateway.broker.log.inspection.log_check import check_log
from kgateway.broker.log.partition.partition import LogPartition
from kgateway.broker.log.segments.file_names import COMPACTED
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import NewTopic
from kgateway.records.compression import Codec
from tests.broker.behaviour import START_MS, result
from tests.broker.log.compaction.jobs import keyed
from tests.broker.log.compaction.topic_model import check_whole, read_all
from tests.broker.log.compaction.worlds import Compacted, offsets, told, write
from tests.broker.log.log_world import LogWorld

# The smallest size that a client may set, and a record that fills half of it.
CONFIG = TopicConfig.of({"cleanup.policy": "compact", "segment.bytes": str(1 << 20), "min.cleanable.dirty.ratio": "0"})
HALF = bytes(500_000)
EITHER = pytest.mark.parametrize("again", [LogWorld.restart, LogWorld.killed], ids=["stopped", "killed"])


def made(world: Compacted) -> LogPartition:
    result(world.broker.create_topic(NewTopic("t", 1, CONFIG)))
    while result(world.broker.new_producer_id()) < 7:
        pass
    return world.again()


def findings(path: Path, holder: str | None = None) -> list[Finding]:
    _, steps = check_log(path, LocalDisk(), holder=holder)
    return [finding for finding in steps if finding]


def various(partition: LogPartition) -> None:
    """
    Batches with and without a producer, with tombstones and values, in several codecs, with timestamps that go up and
    down.
    """
    known = partition.producers().producers.get(7)
    chance, sequence = Random(3), known.window[-1].last_sequence + 1 if known else 0
    for n in range(60):
        options = {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence} if n % 3 == 0 else {}
        rows = [
            (b"%d" % chance.randrange(9), chance.choice((None, HALF[:60_000]))) for _ in range(chance.randint(1, 3))
        ]
        sequence += len(rows) if options else 0
        codec = chance.choice((Codec.NONE, Codec.NONE, Codec.LZ4))
        timestamp = START_MS + chance.randint(-100, 100) * 1_000
        partition.append(keyed(*rows, timestamp=timestamp, codec=codec, **options), Origin.CLIENT)
    partition.segment_list.roll()
    write(partition, b"last")


def test_check_finds_nothing_wrong(world: Compacted) -> None:
    """
    It is as good as any folder, while the gateway runs and afterwards, and after the next process has compacted more
    of it.
    """
    partition = made(world)
    for _ in range(2):
        various(partition)
        before = len(read_all(partition))
        world.round()
        assert len(read_all(partition)) < before
        assert findings(world.path, holder="it") == []
        world.clock.advance(60)
        world.restart()
        partition = world.again()
        check_whole(partition)
    result(world.broker.stop())
    assert findings(world.path) == []
    assert findings(world.path / "t-0") == []


@EITHER
def test_next_process(again: Callable[[LogWorld], None], world: Compacted) -> None:
    """
    The same records are at the same offsets and times, and compaction and producers continue.
    """
    partition = made(world)
    various(partition)
    world.round()
    seen, known = read_all(partition), partition.producers().producers[7].window[-1]
    latest = result(partition.find_max_time())
    again(world)
    partition = world.again()
    assert read_all(partition) == seen
    assert partition.producers().producers[7].window[-1][:3] == known[:3]
    assert result(partition.find_max_time()) == latest
    jobs = len(world.work.jobs)
    world.round()
    assert len(world.work.jobs) == jobs
    cleaned_to = world.work.jobs[-1].segments[-1].end
    write(partition, *[(b"k", HALF)] * 3)
    world.round()
    assert [job.first_dirty for job in world.work.jobs[jobs:]] == [cleaned_to]


def test_producers_after_the_files_beside_are_gone(world: Compacted) -> None:
    """
    The rest of the log has the producer's next sequence number.
    """
    partition = made(world)
    for n in range(3):
        write(partition, (b"k", HALF), producer_id=7, producer_epoch=2, base_sequence=n)
    write(partition, *[(b"k", HALF)] * 3)
    world.round()
    world.kill()
    for path in partition.folder.iterdir():
        if path.suffix in (".snapshot", ".index", ".timeindex"):
            path.unlink()
    (world.path / "kgateway.settled").unlink()
    world.start()
    producer = world.again().producers().producers[7]
    assert (producer.epoch, producer.window[-1].last_sequence, producer.last_offset) == (2, 2, 2)


def left(world: Compacted) -> Path:
    """
    A folder whose process died during compaction.
    """
    partition = made(world)
    write(partition, *[(b"k", HALF)] * 5)
    world.kill()
    return partition.folder


def test_files_written_in_vain(world: Compacted) -> None:
    """
    The check names them and says that no action is needed; the next process ignores and removes them.
    """
    folder = left(world)
    for name in (f"{0:020d}.log.1-2.cleaned", f"{0:020d}.index.1-2.cleaned"):
        (folder / name).write_bytes(b"junk")
    (finding,) = [one for one in findings(world.path) if one.path == folder]
    assert not finding.is_fault
    assert finding.what.startswith("2 files are left over from ")
    assert finding.remedy.startswith("no action is needed")
    world.start()
    assert offsets(world.again()) == [0, 1, 2, 3, 4]
    world.clock.advance(0)
    assert not [path for path in folder.iterdir() if path.name.endswith((".cleaned", ".deleted"))]


def test_swap_that_was_not_finished(world: Compacted) -> None:
    """
    The check says that the next start finishes it, not that a file may be removed, and the next start does.
    """
    partition = made(world)
    write(partition, *[(b"k", HALF)] * 5)
    world.disk.failing["rename"] = EIO
    with capturedLogs():
        world.round()
    world.kill()
    assert (partition.folder / COMPACTED).exists()
    found = [one for one in findings(world.path) if one.path.is_relative_to(partition.folder)]
    told_of = [one for one in found if one.path.name == COMPACTED]
    assert [one.is_fault for one in told_of] == [False]
    assert told_of[0].remedy.startswith("no action is needed")
    assert not [one for one in findings(world.path, holder="it") if one.path.name == COMPACTED]
    world.disk.failing.clear()
    world.start()
    assert offsets(world.again()) == [3, 4]
    check_whole(world.again())
    assert not (partition.folder / COMPACTED).exists()


def test_decision_that_cannot_be_read(world: Compacted) -> None:
    """
    It was never written completely, so the log is unchanged.
    """
    folder = left(world)
    (folder / COMPACTED).write_bytes(b"0\n1-2\n2\n0 4\n")
    (folder / f"{0:020d}.log.1-2.cleaned").write_bytes(b"junk")
    world.start()
    world.clock.advance(0)
    assert offsets(world.again()) == [0, 1, 2, 3, 4]
    assert not (folder / COMPACTED).exists()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"0\n1\nt 0 4\n", None),
        (b"0\n2\nt 0 4\n", "it is damaged"),
        (b"0\n1\nt 0 99\n", "it has partition t-0 up to offset 99, but the log ends at 5"),
    ],
)
def test_cleaned_offsets_are_checked(data: bytes, what: str | None, world: Compacted) -> None:
    """
    The file may be damaged, or name offsets beyond the log.
    """
    partition = made(world)
    write(partition, *[(b"%d" % n, HALF) for n in range(5)])
    result(world.broker.stop())
    (world.path / CLEANED_OFFSETS).write_bytes(data)
    assert [one.what for one in findings(world.path)] == ([what] if what else [])
    if what == "it is damaged":
        assert findings(world.path)[0].remedy.startswith("no action is needed")
        world.start()
        world.round()
        assert world.work.jobs[-1].first_dirty == 0


def test_damaged_partition_after_a_restart(world: Compacted) -> None:
    """
    Each process refuses to compact it, and logs that once.
    """
    partition = made(world)
    write(partition, *[(b"k", HALF)] * 5)
    world.restart()
    path = partition.folder / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[1_000] ^= 1
    path.write_bytes(data)
    for _ in range(2):
        with capturedLogs() as events:
            world.round()
            world.round()
        assert len(told(events, "error")) == 1
        world.restart()
    assert world.work.folders == ["t-0"] * 2
