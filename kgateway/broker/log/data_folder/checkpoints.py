"""
Offsets of all partitions in files of Kafka's format: a version, the number of lines, and lines of a topic, a partition
and an offset.

    recovery-point-offset-checkpoint    everything before it is synced: it survives a crash of the machine
    kgateway.settled                    everything before it is written, and the side files match: it survives a crash
                                        of the process. Partitions that were not opened since the machine was started
                                        are not in it.

These two are written every few seconds, and when the gateway stops. They may be behind the truth, never ahead of it; a
damaged one costs only time.

    log-start-offset-checkpoint         where logs begin, if not with their first segment: no crash may bring deleted
                                        records back
    cleaner-offset-checkpoint           up to where logs are compacted

The offsets in these only grow, and are synced before anybody sees them. Those that arrive while a file is written share
the next write.
"""

import re
from collections.abc import Collection
from functools import partial
from pathlib import Path

from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.runtime import LogRuntime
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.topic_partition import TopicPartition

SYNCED = "recovery-point-offset-checkpoint"
SETTLED = "kgateway.settled"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"
_VERSION = "0"
_ROW = re.compile("(.+) ([0-9]{1,10}) ([0-9]{1,19})")  # nothing else can be a row

Offsets = dict[TopicPartition, int]


class Checkpoints:
    """
    The recovery point and the settled offset of each partition.
    """

    def __init__(self, folder: Path, disk: Disk, *, trust_settled: bool, clean: bool = False) -> None:
        self.clean = clean  # whether everything was synced when the last process ended
        self._folder = folder
        self._disk = disk
        self.synced = read_offsets(folder / SYNCED, disk) or {}
        self.settled = (trust_settled and read_offsets(folder / SETTLED, disk)) or {}
        self._gone = set[str]()  # topics that the files may still list

    def forget_all_but(self, partitions: Collection[TopicPartition]) -> None:
        for partition in [partition for partition in self.synced | self.settled if partition not in partitions]:
            self.forget(partition)

    def forget(self, partition: TopicPartition) -> None:
        self.synced.pop(partition, None)
        self.settled.pop(partition, None)
        self._gone.add(partition.topic)

    def forget_earlier(self, name: str) -> None:
        """
        Make sure that the files list nothing of an earlier topic of this name.
        """
        if name in self._gone:
            self.save(sync=True)

    def save(self, *, sync: bool = False) -> None:
        self._disk.write(self._folder / SYNCED, encode_offsets(self.synced), sync=sync)
        self._disk.write(self._folder / SETTLED, encode_offsets(self.settled), sync=sync)
        if sync:
            self._gone.clear()


def read_offsets(path: Path, disk: Disk) -> Offsets | None:
    """
    The offsets in a file of this format, no offsets if it is missing; `None` if it is damaged.
    """
    try:
        version, count, *rows = disk.read(path).decode().split("\n")
    except FileNotFoundError:
        return {}
    except ValueError:
        return None
    found = [_ROW.fullmatch(row) for row in rows if row]
    fields = [row.groups() for row in found if row]
    if version != _VERSION or count != str(len(found)) or len(fields) != len(found):
        return None
    return {TopicPartition(topic, int(index)): int(offset) for topic, index, offset in fields}


def encode_offsets(offsets: Offsets) -> bytes:
    rows = [f"{topic} {index} {offset}\n" for (topic, index), offset in offsets.items()]
    return f"{_VERSION}\n{len(rows)}\n{''.join(rows)}".encode()


class OffsetCheckpoint:
    def __init__(self, path: Path, runtime: LogRuntime) -> None:
        self._path = path
        self._runtime = runtime
        found = read_offsets(self._path, runtime.files.disk)
        self.is_damaged = found is None  # then no offset is known
        self._known = found or {}
        self._wanted: Offsets = {}
        self._gone = set[str]()  # topics that the file may still list
        self._waiting: list[Deferred[None]] = []
        self._writing = False

    def of(self, partition: TopicPartition) -> int:
        return self._known.get(partition, EARLIEST_OFFSET)

    def forget_all_but(self, partitions: Collection[TopicPartition]) -> None:
        for partition in [partition for partition in self._known if partition not in partitions]:
            self.forget(partition)

    def forget(self, partition: TopicPartition) -> None:
        self._wanted.pop(partition, None)
        if self._known.pop(partition, None) or self._writing:
            self._gone.add(partition.topic)

    def forget_earlier(self, name: str) -> Deferred[None]:
        """
        Make sure that the file lists nothing of an earlier topic of this name; fires once that is synced.
        """
        return self._write_soon() if name in self._gone or self._writing else succeed(None)

    def put(self, partition: TopicPartition, offset: int) -> Deferred[None]:
        """
        Raise the offset; fires once it is synced.
        """
        self._wanted[partition] = max(offset, self._wanted.get(partition, EARLIEST_OFFSET))
        return self._write_soon()

    def stop(self) -> Deferred[None]:
        """
        Fires once no thread writes the file.
        """
        ended = self._write_soon() if self._writing else succeed(None)
        return ended.addErrback(lambda _: None)

    def _write_soon(self) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        self._waiting.append(done)
        if not self._writing:
            self._write()
        return done

    def _write(self) -> None:
        self._writing = True
        known, waiting, gone = self._known, self._waiting, self._gone
        wanted = {partition: max(offset, self.of(partition)) for partition, offset in self._wanted.items()}
        self._waiting, self._gone, self._wanted = [], set(), {}
        write = partial(self._runtime.files.disk.write, self._path, encode_offsets(known | wanted), sync=True)
        writing = self._runtime.in_thread(write)
        writing.addCallbacks(lambda _: self._write_succeeded(wanted), lambda failure: self._write_failed(failure, gone))
        writing.addCallback(self._write_ended, waiting)

    def _write_succeeded(self, wanted: Offsets) -> None:
        self._known |= {partition: offset for partition, offset in wanted.items() if partition.topic not in self._gone}
        self._runtime.health.worked(self._path.name)

    def _write_failed(self, failure: Failure, gone: set[str]) -> OSError:
        self._gone |= gone
        error = failure.value
        if not isinstance(error, OSError):
            failure.raiseException()
        self._runtime.health.failed(self._path.name, error)
        return error

    def _write_ended(self, error: OSError | None, waiting: list[Deferred[None]]) -> None:
        self._writing = False
        if self._waiting:
            self._write()
        for done in waiting:
            if error is None:
                done.callback(None)
            else:
                done.errback(error)
