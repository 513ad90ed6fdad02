"""
Compaction with a killed process or a power loss at every disk operation, compared with a dictionary.

COMPACTION_SEEDS is the number of histories.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest
from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from kgateway.broker.log.broker import LogBroker
from kgateway.broker.log.compaction.scheduler import BACKOFF_MS
from kgateway.broker.log.data_folder.session import FolderSession
from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.partition.partition import LogPartition
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import integer
from kgateway.cluster.config_table import TOPIC_CONFIGS
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import NewTopic
from kgateway.records.batch import Batch, read_batch
from kgateway.records.builder import BatchBuilder
from kgateway.records.compression import Codec
from kgateway.records.record import records
from tests.broker.behaviour import START_MS, result
from tests.broker.log.compaction.topic_model import CONFIG, Expected, check_whole, read_all
from tests.broker.log.log_brokers import at_once, without_turns
from tests.broker.log.log_world import NoLock
from tests.broker.log.lossy_disk import LossyDisk, PowerLoss

pytestmark = pytest.mark.usefixtures("power_goes")

_SEEDS = range(6)
_CRASH_SEEDS = range(int(os.environ.get("COMPACTION_SEEDS", "1")))  # each has dozens of crashes
_PRODUCER = 7


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    row = TOPIC_CONFIGS["segment.bytes"]
    monkeypatch.setitem(TOPIC_CONFIGS, row.name, replace(row, kind=integer(1)))


class Life:
    """
    Successive processes on a lossy disk that write keys and compact them.
    """

    def __init__(self, seed: int, **changes: str) -> None:
        self.chance = Random(seed)
        self.disk = LossyDisk(self.chance)
        self.expected = Expected()
        self.now_ms = START_MS
        self.sequence = 0
        self.boot = 0
        self.start()
        given = {name.replace("_", "."): value for name, value in changes.items()}
        config = CONFIG | {"delete.retention.ms": str(10 * BACKOFF_MS)} | given
        result(self.broker.create_topic(NewTopic("t", 1, TopicConfig.of(config))))

    def start(self) -> None:
        self.clock = Clock()
        self.broker = LogBroker(
            Path("/data"),
            node_id=1,
            now_ms=lambda: self.now_ms,
            clock=self.clock,
            in_thread=at_once,
            in_turns=without_turns,
            disk=self.disk,
            open_session=self._open,
        )
        result(self.broker.start())

    def _open(self, path: Path, disk: Disk, node_id: int) -> FolderSession:
        return FolderSession.open(path, disk, node_id, boot_id=lambda: str(self.boot), lock=NoLock)

    @property
    def partition(self) -> LogPartition:
        return self.broker.partition(self.broker.view().topics["t"].id, 0)

    def write(self) -> None:
        """
        Append a batch of a few records and keys, in some codec, with or without a producer.
        """
        self.now_ms += 10
        self._append(self._batch(self.chance.randint(1, 4)))

    def delete(self, key: bytes) -> int:
        """
        Append the tombstone of a key that is never written again, and return its offset.
        """
        builder = BatchBuilder()
        builder.append(key, None, timestamp=self.now_ms)
        return self._append(read_batch(builder.build()))

    def _append(self, batch: Batch) -> int:
        base = self.partition.log_end
        appended = self.partition.append(batch, Origin.CLIENT)
        self.sequence += batch.header.records_count if batch.header.producer_id >= 0 else 0
        for record in records(batch):
            self.expected.written[base + record.offset] = record._replace(offset=base + record.offset)
        if appended.committed is not None:
            result(appended.committed)
        return base

    def _batch(self, count: int) -> Batch:
        options: dict[str, Any] = {"codec": self.chance.choice((Codec.NONE, Codec.LZ4))}
        if self.chance.random() < 0.5:
            options |= {"producer_id": _PRODUCER, "producer_epoch": 0, "base_sequence": self.sequence}
        builder = BatchBuilder(**options)
        for _ in range(count):
            key = b"%d" % self.chance.randrange(8) * self.chance.choice((1, 1, 30))
            value = None if self.chance.random() < 0.2 else b"%d" % self.chance.getrandbits(64)
            builder.append(key, value, timestamp=self.now_ms + self.chance.randint(-5, 5))
        return read_batch(builder.build())

    def compact(self) -> None:
        """
        Run one round of the cleaner.
        """
        self.now_ms += BACKOFF_MS
        self.clock.advance(BACKOFF_MS / 1000)

    def again(self, *, power: bool) -> None:
        """
        Restart after the death of the process or the machine.
        """
        self.disk = self.disk.crash() if power else self.disk.kill()
        self.boot += power
        self.start()

    def check(self) -> None:
        """
        Check that the expected records are there and that the producer can continue.
        """
        self.expected.check(read_all(self.partition))
        check_whole(self.partition)
        self.check_producer()

    def check_producer(self) -> None:
        known = self.partition.producers().producers.get(_PRODUCER)
        if self.sequence:
            assert known
            assert known.window[-1].last_sequence == self.sequence - 1


L = TypeVar("L", bound=Life)


def prepared(seed: int) -> Life:
    """
    A life ready for its first or second compaction.
    """
    life = Life(seed)
    for _ in range(life.chance.randint(1, 2)):
        for _ in range(25):
            life.write()
        life.check()
        if life.chance.random() < 0.5:
            life.compact()
            life.check()
            for _ in range(15):
                life.write()
    return life


def cut_off_everywhere(make: Callable[[int], L], seed: int, *, power: bool) -> Iterator[L]:
    """
    Lives whose compaction is cut off at each disk operation in turn, until one completes; each continues in the next
    process, compacts, and writes.
    """
    for operations in count():
        life = make(seed)
        life.chance.seed(seed + operations)  # each crash leaves something else
        life.disk.stop_after(operations)
        with capturedLogs(), suppress(PowerLoss):
            life.compact()
        is_whole = not life.disk.off
        life.again(power=power)
        life.check()
        life.compact()
        life.check()
        for _ in range(3):
            life.write()
        life.check()
        yield life
        if is_whole:
            assert operations > 20
            return


@pytest.mark.parametrize("seed", _SEEDS)
def test_compaction(seed: int) -> None:
    """
    Old records are removed, and the last of each key keeps its offset, also in the next process; a second round has
    nothing to do.
    """
    life = prepared(seed)
    before = read_all(life.partition)
    life.compact()
    after = read_all(life.partition)
    assert len(after) < len(before)
    border = life.partition.segment_list.segments[-1].base_offset
    latest = {record.key: record.offset for record in before if record.offset < border}
    stay = [record for record in before if record.offset >= latest.get(record.key, border)]
    assert after == stay
    life.check()
    done = dict(life.disk.done)
    life.compact()
    assert life.disk.done["append"] == done["append"]
    for power in (False, True):
        life.again(power=power)
        assert read_all(life.partition) == after
        life.check_producer()


@pytest.mark.parametrize("power", [False, True], ids=["kill", "power"])
@pytest.mark.parametrize("seed", _CRASH_SEEDS)
def test_crash_at_every_operation(seed: int, power: bool) -> None:
    """
    Wherever compaction is cut off, nothing is lost or reordered; the next process compacts again, and leaves no files
    behind.
    """
    for life in cut_off_everywhere(prepared, seed, power=power):
        for _ in range(6):
            life.compact()  # nothing is left to do except for what file.delete.delay.ms has put off
        names = life.disk.names(life.partition.folder)
        assert not [name for name in names if name.endswith((".cleaned", ".deleted", ".compacted"))]


@pytest.mark.parametrize("seed", _CRASH_SEEDS)
def test_failures(seed: int) -> None:
    """
    A disk error at any operation loses nothing either; if the log can still be served, the next round compacts it.
    """
    for name in ("append", "sync", "rename", "open", "sync_folder", "remove"):
        for number in range(1, 12):
            life = prepared(seed)
            life.disk.fail(name, number)
            with capturedLogs():
                life.compact()
            life.disk.heal()
            if life.partition.lost:
                life.again(power=False)
            life.check()
            life.compact()
            life.check()


@pytest.mark.parametrize("seed", _SEEDS)
def test_deletions_go(seed: int) -> None:
    """
    A tombstone is kept for `delete.retention.ms` after the first compaction that meets it, and is removed then.
    """
    life = prepared(seed)
    offset = life.delete(b"deleted for ever")

    def is_shown_after(rounds: int) -> bool:
        life.now_ms += (rounds - 1) * BACKOFF_MS
        for _ in range(10):
            life.write()
        life.compact()
        read = read_all(life.partition)
        life.expected.check(read, tombstones_may_go=True)
        return offset in {record.offset for record in read}

    assert is_shown_after(1)
    assert is_shown_after(9)
    assert not is_shown_after(2)
