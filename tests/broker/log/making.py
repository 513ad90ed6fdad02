"""
Log brokers for tests, and the pieces they are made of: everything that goes to threads or by turns happens at once,
unless a test says otherwise.
"""

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, execute, succeed
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kgateway.broker.log.broker import LogBroker
from kgateway.broker.log.disk import Disk, LocalDisk
from kgateway.broker.log.folder import DataFolder
from kgateway.broker.log.open_files import OpenFiles
from kgateway.broker.log.partition import LogPartition
from kgateway.broker.log.partition_log import Limits, PartitionLog
from kgateway.broker.log.parts import LogParts
from kgateway.broker.log.recovery import Recovered, Recovery, Trust
from kgateway.broker.producers import EXPIRY_MS, ProducerTable
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.interfaces import IBroker
from kgateway.records.batch import Batch, placed
from tests.broker.behaviour import World, result
from tests.broker.log.noted_disk import NotedDisk

T = TypeVar("T")

START_MS = 1_800_000_000_000
NOTHING_KNOWN = Trust(synced=0, settled=0, process_only=False)
ROOMY = Limits(segment_bytes=1 << 30, segment_ms=LONG_MAX, index_interval_bytes=4096)


def at_once(call: Callable[[], T]) -> Deferred[T]:
    """
    A thread that is done before anybody can look.
    """
    return execute(call)


def without_turns(steps: Iterator[None]) -> Deferred[object]:
    """
    All steps at once.
    """
    return execute(lambda: [None for _ in steps]) if steps else succeed(None)


def log_broker(path: Path, **options: Any) -> LogBroker:
    """
    A broker on this folder, not started.
    """
    given: dict[str, Any] = {
        "node_id": 1,
        "now_ms": lambda: START_MS,
        "clock": Clock(),
        "in_thread": at_once,
        "in_turns": without_turns,
        "disk": LocalDisk(),
    }
    return LogBroker(path, **given | options)


class Threads:
    """
    Threads that are slow once they are told to be: then they do what they are given when the test says so, in order.
    """

    def __init__(self) -> None:
        self.slow = False
        self._waiting: list[tuple[Callable[[], Any], Deferred[Any]]] = []

    def __call__(self, call: Callable[[], T], /) -> Deferred[T]:
        if not self.slow:
            return execute(call)
        done: Deferred[T] = Deferred()
        self._waiting.append((call, done))
        return done

    def __len__(self) -> int:
        return len(self._waiting)

    def work(self) -> None:
        """
        Do the first of what waits.
        """
        call, done = self._waiting.pop(0)
        execute(call).chainDeferred(done)


class Turns:
    """
    Takes a step when the test says so.
    """

    def __init__(self) -> None:
        self.waiting: list[tuple[Iterator[None], Deferred[object]]] = []

    def __call__(self, steps: Iterator[None], /) -> Deferred[object]:
        ended: Deferred[object] = Deferred()
        self.waiting.append((steps, ended))
        return ended

    def step(self) -> None:
        """
        One step of what waits the longest.
        """
        steps, ended = self.waiting[0]
        try:
            next(steps)
        except StopIteration:
            del self.waiting[0]
            ended.callback(None)
        except Exception:
            del self.waiting[0]
            ended.errback(Failure())


class NoLock:
    """
    There is nobody else.
    """

    def __init__(self, folder: Path) -> None:
        pass

    def release(self) -> None:
        pass


class LogWorld(World):
    """
    A folder, and one log broker after the other on it.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        self.path, self.disk, self.threads, self.clock = path, NotedDisk(), Threads(), Clock()
        self.boot = "a boot"
        self._options = options
        super().__init__(self._make)
        result(self.broker.start())

    def _make(self, now_ms: Callable[[], int], expiry_ms: int) -> IBroker:
        given = {"disk": self.disk, "in_thread": self.threads, "clock": self.clock, "open_folder": self._open}
        return log_broker(self.path, now_ms=now_ms, producer_expiry_ms=expiry_ms, **given | self._options)

    def _open(self, path: Path, disk: Disk, node_id: int) -> DataFolder:
        return DataFolder.open(path, disk, node_id, boot_id=lambda: self.boot, lock=NoLock)

    def restart(self, **options: Any) -> None:
        """
        Stop, and start again.
        """
        result(self.broker.stop())
        self.start(**options)

    def kill(self) -> None:
        """
        The process dies.
        """
        for file in list(self.disk.opened):
            file.close()
        self.clock = Clock()  # what was to come does not

    def killed(self) -> None:
        """
        Be killed, and start again.
        """
        self.kill()
        self.start()

    def start(self, **options: Any) -> None:
        """
        Another process.
        """
        self._options |= options
        self.broker = self._make(lambda: self.now_ms, EXPIRY_MS)
        result(self.broker.start())

    def again(self, name: str = "t", index: int = 0) -> LogPartition:
        """
        A partition, as it is now.
        """
        found = self.broker.partition(self.broker.view().topics[name].id, index)
        assert isinstance(found, LogPartition)
        return found

    def log_partition(self, name: str = "t", **config: Any) -> LogPartition:
        """
        The partition of a new topic.
        """
        self.topic(name, **config)
        return self.again(name)


def log_parts(disk: Disk, in_thread: Any = at_once) -> LogParts:
    """
    What a partition needs, without a broker.
    """
    return LogParts(OpenFiles(disk, 100), lambda: START_MS, Clock(), in_thread, without_turns)


def recovered(
    files: OpenFiles, folder: Path, trust: Trust = NOTHING_KNOWN, config: TopicConfig | None = None
) -> Recovered:
    """
    The log in this folder, opened.
    """
    folder.mkdir(exist_ok=True)
    return ended(Recovery(files, folder, trust, ProducerTable(), START_MS, config or TopicConfig()).run())


def ended(steps: Generator[None, None, T]) -> T:
    """
    What a generator returns.
    """
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: T = done.value
            return found


def put(log: PartitionLog, batch: Batch, *, epoch: int = 0, limits: Limits = ROOMY) -> bytes:
    """
    Append a batch as a partition does; what is in the file then.
    """
    if log.is_full_for(batch.header, limits):
        log.roll()
    buffers = placed(batch, log.end_offset, epoch)
    log.append(buffers, batch.header, log.end_offset, limits)
    return b"".join(buffers)


def laid(*batches: Batch, first: int = 0, epoch: int = 0) -> list[bytes]:
    """
    The bytes of these batches as they are in a segment, one behind the other.
    """
    found = list[bytes]()
    for batch in batches:
        found.append(b"".join(placed(batch, first, epoch)))
        first += batch.header.last_offset_delta + 1
    return found
