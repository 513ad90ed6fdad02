"""
The open partitions. A partition is opened when it is first asked for, usually in one go; after a crash all are opened.

If recovery takes long, as after a crash, it continues in turns of the reactor, with the disk in a thread. Until it ends
clients get NOT_LEADER_OR_FOLLOWER and try again, and the operator reads in the log what was found.
"""

from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from pathlib import Path

from twisted.internet.defer import Deferred, gatherResults, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.log.data_folder.checkpoints import Checkpoints, OffsetCheckpoint
from kgateway.broker.log.data_folder.partition_folder import prepare_folder
from kgateway.broker.log.partition.partition import LogPartition
from kgateway.broker.log.recovery.recovery import Recovered, Recovery
from kgateway.broker.log.recovery.segment_recovery import KnownGood, Work
from kgateway.broker.log.runtime import InThread, LogRuntime, describe_error
from kgateway.broker.log.segments.batch_scan import Damaged
from kgateway.broker.partition.producer_state import ProducerTable
from kgateway.cluster.view import Topic
from kgateway.log_messages import CANNOT_OPEN_PARTITION, OPENING_FAILED, RECOVERED
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

AT_ONCE_S = 0.02
_AGAIN_S = 5.0  # after a log could not be opened, because each try costs as much

Key = tuple[Uuid, int]  # a PartitionId as a plain tuple: each request looks one up
Steps = Generator[Work | None, None, Recovered]


class PartitionRegistry:
    _log = Logger()

    def __init__(
        self,
        data: Path,
        runtime: LogRuntime,
        checkpoints: Checkpoints,
        starts: OffsetCheckpoint,
        producer_expiry_ms: int,
        current: Callable[[Uuid], Topic | None],
        save_soon: Callable[[], None],
        save_at_once: Callable[[LogPartition], None],
    ) -> None:
        self.open: dict[Key, LogPartition] = {}
        self.changed: list[LogPartition] = []  # since they were settled
        self._data = data
        self._runtime = runtime
        self._checkpoints = checkpoints
        self._starts = starts
        self._producer_expiry_ms = producer_expiry_ms
        self._current = current  # the topic as it is now
        self._save_soon = save_soon  # the checkpoints
        self._save_at_once = save_at_once
        self._recovering: dict[Key, LongRecovery] = {}
        self._refused: dict[Key, tuple[float, KafkaError]] = {}  # until when it is not tried again, and why
        self._stopped = False

    def partition(self, topic: Topic, index: int) -> LogPartition:
        """
        Open a partition. If that takes time, a KafkaError makes clients try again.
        """
        key = topic.id, index
        if key in self._recovering or self._stopped:
            raise _not_yet(topic, index)
        until, refusal = self._refused.get(key, (0.0, None))
        if refusal and self._runtime.clock.seconds() < until:
            raise KafkaError(refusal.code, refusal.message)
        steps = self._begin(topic, index)
        ends = self._runtime.clock.seconds() + AT_ONCE_S
        try:
            work = next(steps)
            while work is None and self._runtime.clock.seconds() <= ends:
                work = next(steps)
        except StopIteration as done:
            recovered = done.value
        except (OSError, Damaged) as error:
            raise self._unreadable(topic, index, error) from None
        else:
            self._continue_in_turns(topic, index, LongRecovery(steps, work, self._runtime.in_thread))
            if key in self.open:  # nothing had to be waited for
                return self.open[key]
            raise _not_yet(topic, index)
        return self._register_opened(topic, index, recovered)

    def has(self, partition: LogPartition) -> bool:
        return self.open.get((partition.topic.id, partition.index)) is partition

    def open_all(self, partitions: Iterable[tuple[Topic, int]]) -> Generator[None, None, None]:
        """
        Open these partitions one after the other, unless they are deleted meanwhile.
        """
        for topic, index in partitions:
            yield
            if self._stopped:
                return
            now = self._current(topic.id)
            if now and (topic.id, index) not in self.open:
                with suppress(KafkaError):  # it continues in turns, or the reason is logged
                    self.partition(now, index)

    def stop(self) -> Deferred[list[None]]:
        """
        Open no more; fires once no thread is busy with a recovery.
        """
        self._stopped = True
        recovering, self._recovering = self._recovering, {}
        return gatherResults([opening.end() for opening in recovering.values()])

    def forget(self, topic: Topic, index: int) -> tuple[LogPartition | None, Deferred[None]]:
        """
        Drop a deleted partition. Returns it, and a Deferred that fires once no thread recovers it any more.
        """
        self._refused.pop((topic.id, index), None)
        opening = self._recovering.pop((topic.id, index), None)
        return self.open.pop((topic.id, index), None), opening.end() if opening else succeed(None)

    def _begin(self, topic: Topic, index: int) -> Steps:
        topic_partition, checkpoints = TopicPartition(topic.name, index), self._checkpoints
        synced = checkpoints.synced.get(topic_partition, 0)
        nothing_missing = topic_partition in checkpoints.settled
        settled = checkpoints.settled.get(topic_partition, synced)
        known_good = KnownGood(synced, settled, nothing_missing, nothing_missing and checkpoints.clean)
        known_good = known_good.beginning_at(self._starts.of(topic_partition))
        producers = ProducerTable(self._producer_expiry_ms)
        try:
            folder = prepare_folder(self._runtime.files.disk, self._data, topic, index)
        except OSError as error:
            raise self._unreadable(topic, index, error) from None
        epoch, now_ms = topic.partitions[index].leader_epoch, self._runtime.now_ms()
        return Recovery(self._runtime.files, folder, known_good, producers, now_ms, epoch, topic.config).run()

    def _continue_in_turns(self, topic: Topic, index: int, opening: "LongRecovery") -> None:
        key = topic.id, index
        self._recovering[key] = opening
        self._log.info("recovering {topic}-{index}", topic=topic.name, index=index)

        def in_turns() -> Generator[Deferred[object] | None, None, None]:
            recovered = yield from opening.in_turns()
            if self._recovering.get(key) is opening:  # unless the topic was deleted or the broker stopped
                self._register_opened(topic, index, recovered)

        def failed(failure: Failure) -> None:
            error = failure.value
            if self._recovering.get(key) is not opening:
                return
            if isinstance(error, OSError | Damaged):
                self._unreadable(topic, index, error)
            elif not isinstance(error, KafkaError):  # which is logged already
                self._log.failure(OPENING_FAILED, failure, topic=topic.name, index=index)

        def ended(_: object) -> None:
            if self._recovering.get(key) is opening:
                del self._recovering[key]

        self._runtime.in_turns(in_turns()).addErrback(failed).addCallback(ended)

    def _register_opened(self, topic: Topic, index: int, recovered: Recovered) -> LogPartition:
        for fault in recovered.faults:
            self._log.warn(RECOVERED, fault=fault)
        now = self._current(topic.id) or topic
        try:
            partition = LogPartition(now, index, recovered, self._runtime, self._partition_changed, self._starts.put)
        except OSError as error:
            raise self._unreadable(topic, index, error) from None
        if not partition.settled:
            self.changed.append(partition)
        self.open[topic.id, index] = partition
        if recovered.ends_in_gap:
            with suppress(KafkaError):  # which is logged already
                partition.end_gap()
        topic_partition = TopicPartition(topic.name, index)
        if not partition.log_end and topic_partition not in self._checkpoints.settled:
            # Checkpointed at once: as long as the machine runs, nothing of an empty log can be missing.
            self._checkpoints.settled[topic_partition] = 0
            self._save_soon()
        return partition

    def _partition_changed(self, partition: LogPartition) -> None:
        """
        A partition has changed, or gone offline. The next process has to know the latter, because the page cache still
        shows what could not be written.
        """
        self.changed.append(partition)
        if partition.offline:
            self._save_at_once(partition)

    def _unreadable(self, topic: Topic, index: int, error: OSError | Damaged) -> KafkaError:
        named = {"partition": f"{topic.name}-{index}", "error": describe_error(error)}
        self._log.error(CANNOT_OPEN_PARTITION, **named)
        refusal = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, CANNOT_OPEN_PARTITION.format(**named))
        self._refused[topic.id, index] = self._runtime.clock.seconds() + _AGAIN_S, refusal
        return refusal


class LongRecovery:
    """
    A recovery that is continued in turns of the reactor, its slow steps in a thread.
    """

    def __init__(self, steps: Steps, work: Work | None, in_thread: InThread) -> None:
        self._steps = steps
        self._work = work
        self._in_thread = in_thread
        self._thread_ended: Deferred[None] | None = None
        self._is_busy = False

    def in_turns(self) -> Generator[Deferred[object] | None, None, Recovered]:
        work = self._work
        try:
            while True:
                yield self._run_in_thread(work) if work else None
                work = next(self._steps)
        except StopIteration as done:
            recovered: Recovered = done.value
            return recovered

    def end(self) -> Deferred[None]:
        """
        Stop; fires once no thread touches the files any more.
        """
        self._steps.close()
        if not self._is_busy:
            return succeed(None)
        self._thread_ended = Deferred()
        return self._thread_ended

    def _run_in_thread(self, work: Work) -> Deferred[object]:
        self._is_busy = True
        return self._in_thread(work).addBoth(self._thread_done)

    def _thread_done(self, result: object) -> object:
        self._is_busy = False
        if self._thread_ended:
            self._thread_ended.callback(None)
        return result


def _not_yet(topic: Topic, index: int) -> KafkaError:
    reason = f"{topic.name}-{index} is being recovered; try again"
    return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, reason)
