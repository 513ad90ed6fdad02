"""
A broker whose topics are compacted on request.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from twisted.logger import LogEvent

from kgateway.broker.log.compaction.compaction_round import MEMORY_BYTES, CompactionJob, CompactionOutcome, compact
from kgateway.broker.log.compaction.scheduler import BACKOFF_MS
from kgateway.broker.log.files.local_disk import LocalDisk
from kgateway.broker.log.partition.partition import LogPartition
from kgateway.broker.log.segments.file_names import COMPACTED
from kgateway.cluster.partition import Origin
from tests.broker.behaviour import ours, result
from tests.broker.log.compaction.jobs import Row, keyed
from tests.broker.log.compaction.topic_model import read_all
from tests.broker.log.log_world import LogWorld

SIZE = len(keyed(b"a").data)
CONFIG: dict[str, Any] = {
    "cleanup_policy": ("compact",),
    "segment_bytes": 2 * SIZE,
    "min_cleanable_dirty_ratio": 0.0,
}


class Meddled:
    """
    A compactor with an event after its work.
    """

    def __init__(self) -> None:
        self.jobs: list[CompactionJob] = []
        self.failure: Exception | None = None
        self.then: Callable[[], object] = lambda: None
        self.stopped = False
        self.rests = 0
        self.room = MEMORY_BYTES

    def compact(self, job: CompactionJob) -> CompactionOutcome:
        self.jobs.append(job)
        if self.failure:
            raise self.failure
        outcome = compact(job, LocalDisk(), self.room)
        then, self.then = self.then, lambda: None
        then()
        return outcome

    def rest(self) -> None:
        self.rests += 1

    def stop(self) -> None:
        self.stopped = True

    @property
    def folders(self) -> list[str]:
        """
        The compacted folders, in order.
        """
        return [Path(job.folder).name for job in self.jobs]


class Compacted(LogWorld):
    """
    Topics whose segments have two batches of one record each.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        self.work = Meddled()
        super().__init__(path, **{"compactor": self.work} | options)

    def made(self, name: str = "t", **config: Any) -> LogPartition:
        return self.log_partition(name, **CONFIG | config)

    def round(self, seconds: float = BACKOFF_MS / 1000) -> None:
        """
        Let the time of a round pass.
        """
        self.clock.advance(seconds)


def write(partition: LogPartition, *rows: Row | bytes, **options: Any) -> None:
    """
    Write each key in a batch of its own.
    """
    for row in rows:
        appended = partition.append(keyed(row, **options), Origin.CLIENT)
        if appended.committed is not None:
            result(appended.committed)


def altered(partition: LogPartition, **config: Any) -> None:
    topic = partition.topic
    partition.set_topic(replace(topic, config=replace(topic.config, **config)))


def offsets(partition: LogPartition) -> list[int]:
    """
    The offsets of all records that a consumer gets.
    """
    return [record.offset for record in read_all(partition)]


def bases(partition: LogPartition) -> list[int]:
    return [segment.base_offset for segment in partition.segment_list.segments]


def leftovers(partition: LogPartition) -> list[str]:
    """
    Files that only an interrupted compaction leaves.
    """
    names = [path.name for path in partition.folder.iterdir()]
    return [name for name in names if name.endswith(".cleaned") or name == COMPACTED]


def told(events: Sequence[LogEvent], level: str | None = None) -> list[str]:
    """
    The log lines of this level.
    """
    found = [event for event in ours(events) if level is None or event["log_level"].name == level]
    return [event["log_format"].format(**event) for event in found if event.get("log_format")]
