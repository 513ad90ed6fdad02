"""
Log brokers and their parts, in which threads and turns run at once unless a test says otherwise.
"""

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, execute, succeed
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kgateway.broker.log.broker import LogBroker
from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.files.file_cache import FileCache
from kgateway.broker.log.files.local_disk import LocalDisk
from kgateway.broker.log.recovery.recovery import Recovered, Recovery
from kgateway.broker.log.recovery.segment_recovery import KnownGood, Work
from kgateway.broker.log.runtime import LogRuntime
from kgateway.broker.log.segments.segment_list import SegmentLimits, SegmentList
from kgateway.broker.partition.producer_state import ProducerTable
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.records.batch import Batch, placed

T = TypeVar("T")
START_MS = 1_800_000_000_000
NOTHING_KNOWN = KnownGood(synced=0, settled=0, nothing_missing=False)
ROOMY = SegmentLimits(segment_bytes=1 << 30, segment_ms=LONG_MAX, index_interval_bytes=4096)


def at_once(call: Callable[[], T]) -> Deferred[T]:
    """
    A thread that is done at once.
    """
    return execute(call)


def without_turns(steps: Iterator[Deferred[object] | None]) -> Deferred[object]:
    """
    Run all steps at once, as far as they need not wait.
    """

    async def run() -> None:
        for waits in steps:
            if waits is not None:
                await waits

    return Deferred.fromCoroutine(run())


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
    Threads that, once slow, do their jobs in order when the test says so.
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

    def work(self, number: int = 0) -> None:
        """
        Run the first waiting job, or another.
        """
        call, done = self._waiting.pop(number)
        execute(call).chainDeferred(done)


class Turns:
    """
    Runs steps when the test says so.
    """

    def __init__(self) -> None:
        self.waiting: list[tuple[Iterator[Deferred[object] | None], Deferred[object]]] = []

    def __call__(self, steps: Iterator[Deferred[object] | None], /) -> Deferred[object]:
        ended: Deferred[object] = Deferred()
        self.waiting.append((steps, ended))
        return ended

    def until(self, ended: Deferred[Any]) -> None:
        """
        Run as many steps as something takes.
        """
        while not ended.called:
            self.step()
        ended.addErrback(lambda failure: failure.raiseException())

    def step(self) -> None:
        """
        Run a step of the task that has waited longest.
        """
        steps, ended = self.waiting.pop(0)
        try:
            waits = next(steps)
        except StopIteration:
            ended.callback(None)
        except Exception:
            ended.errback(Failure())
        else:
            (waits or succeed(None)).addCallbacks(lambda _: self.waiting.insert(0, (steps, ended)), ended.errback)


def log_runtime(disk: Disk, in_thread: Any = at_once) -> LogRuntime:
    """
    What a partition needs, without a broker.
    """
    return LogRuntime(FileCache(disk, 100), lambda: START_MS, Clock(), in_thread, without_turns)


def recovered(
    files: FileCache, folder: Path, known_good: KnownGood = NOTHING_KNOWN, config: TopicConfig | None = None
) -> Recovered:
    """
    Recover the log in this folder.
    """
    folder.mkdir(exist_ok=True)
    return ended(Recovery(files, folder, known_good, ProducerTable(), START_MS, 100, config or TopicConfig()).run())


def ended(steps: Generator[Work | None, None, T]) -> T:
    """
    The result of a generator whose work is done at once.
    """
    while True:
        try:
            work = next(steps)
            if work:
                work()
        except StopIteration as done:
            found: T = done.value
            return found


def put(log: SegmentList, batch: Batch, *, epoch: int = 0, limits: SegmentLimits = ROOMY) -> bytes:
    """
    Append a batch as a partition does, and return the file's bytes.
    """
    if log.is_full_for(batch.header, limits):
        log.roll()
    buffers = placed(batch, log.end_offset, epoch)
    log.append(buffers, batch.header, log.end_offset, limits)
    return b"".join(buffers)


def laid(*batches: Batch, first: int = 0, epoch: int = 0) -> list[bytes]:
    """
    The bytes of these batches as in a segment, one behind the other.
    """
    found = list[bytes]()
    for batch in batches:
        found.append(b"".join(placed(batch, first, epoch)))
        first += batch.header.last_offset_delta + 1
    return found
