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
from kgateway.broker.log.disk import Disk
from kgateway.broker.log.local_disk import LocalDisk
from kgateway.broker.log.looking_through import Work
from kgateway.broker.log.open_files import OpenFiles
from kgateway.broker.log.partition_log import Limits, PartitionLog
from kgateway.broker.log.parts import LogParts
from kgateway.broker.log.recovery import Recovered, Recovery
from kgateway.broker.log.trust import Trust
from kgateway.broker.producers import ProducerTable
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.records.batch import Batch, placed

T = TypeVar("T")
START_MS = 1_800_000_000_000
NOTHING_KNOWN = Trust(synced=0, settled=0, process_only=False)
ROOMY = Limits(segment_bytes=1 << 30, segment_ms=LONG_MAX, index_interval_bytes=4096)


def at_once(call: Callable[[], T]) -> Deferred[T]:
    """
    A thread that is done before anybody can look.
    """
    return execute(call)


def without_turns(steps: Iterator[Deferred[object] | None]) -> Deferred[object]:
    """
    All steps at once, as far as they need not wait.
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

    def work(self, number: int = 0) -> None:
        """
        Do the first of what waits, or another.
        """
        call, done = self._waiting.pop(number)
        execute(call).chainDeferred(done)


class Turns:
    """
    Takes a step when the test says so.
    """

    def __init__(self) -> None:
        self.waiting: list[tuple[Iterator[Deferred[object] | None], Deferred[object]]] = []

    def __call__(self, steps: Iterator[Deferred[object] | None], /) -> Deferred[object]:
        ended: Deferred[object] = Deferred()
        self.waiting.append((steps, ended))
        return ended

    def until(self, ended: Deferred[Any]) -> None:
        """
        As many steps as something takes.
        """
        while not ended.called:
            self.step()
        ended.addErrback(lambda failure: failure.raiseException())

    def step(self) -> None:
        """
        One step of what waits the longest.
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
    return ended(Recovery(files, folder, trust, ProducerTable(), START_MS, 100, config or TopicConfig()).run())


def ended(steps: Generator[Work | None, None, T]) -> T:
    """
    What a generator returns, when what it gives away is done.
    """
    while True:
        try:
            work = next(steps)
            if work:
                work()
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
