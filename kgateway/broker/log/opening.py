"""
Opens partitions when they are first asked for.

Mostly that is done at once. Where there is much to look through, as after a crash, it goes on by turns, and until it is
done clients are told to come again; then the operator is told what was found.
"""

from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from pathlib import Path

from twisted.internet.defer import Deferred, gatherResults, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.log.checkpoints import Checkpoints
from kgateway.broker.log.kept_offsets import KeptOffsets
from kgateway.broker.log.long_opening import LongOpening
from kgateway.broker.log.looking_through import Work
from kgateway.broker.log.partition import LogPartition
from kgateway.broker.log.partition_folder import prepare
from kgateway.broker.log.parts import LogParts, plain
from kgateway.broker.log.recovery import Recovered, Recovery
from kgateway.broker.log.trust import Trust
from kgateway.broker.log.walking import Damaged
from kgateway.broker.producers import ProducerTable
from kgateway.cluster.view import Topic
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

AT_ONCE_S = 0.02
_AGAIN_S = 5.0  # after a log could not be opened: to look through it costs as much each time

Key = tuple[Uuid, int]
Steps = Generator[Work | None, None, Recovered]


class Openings:
    """
    The partitions that are open, and those on their way.
    """

    _log = Logger()

    def __init__(
        self,
        data: Path,
        parts: LogParts,
        checkpoints: Checkpoints,
        starts: KeptOffsets,
        producer_expiry_ms: int,
        current: Callable[[Uuid], Topic | None],
        save_soon: Callable[[], None],
        save_at_once: Callable[[LogPartition], None],
    ) -> None:
        self.open: dict[Key, LogPartition] = {}
        self.changed: list[LogPartition] = []  # since they were settled
        self._data = data
        self._parts = parts
        self._checkpoints = checkpoints
        self._starts = starts
        self._producer_expiry_ms = producer_expiry_ms
        self._current = current  # the topic as it is by now
        self._save_soon = save_soon  # the checkpoints
        self._save_at_once = save_at_once
        self._recovering: dict[Key, LongOpening] = {}
        self._refused: dict[Key, tuple[float, KafkaError]] = {}  # until when nobody tries again, and why
        self._stopped = False

    def partition(self, topic: Topic, index: int) -> LogPartition:
        """
        The partition; a KafkaError that tells clients to come again where it cannot be opened at once.
        """
        key = topic.id, index
        if key in self._recovering or self._stopped:
            raise _not_yet(topic, index)
        until, refusal = self._refused.get(key, (0.0, None))
        if refusal and self._parts.clock.seconds() < until:
            raise KafkaError(refusal.code, refusal.message)
        steps = self._begin(topic, index)
        ends = self._parts.clock.seconds() + AT_ONCE_S
        try:
            work = next(steps)
            while work is None and self._parts.clock.seconds() <= ends:
                work = next(steps)
        except StopIteration as done:
            recovered = done.value
        except (OSError, Damaged) as error:
            raise self._unreadable(topic, index, error) from None
        else:
            self._go_on(topic, index, LongOpening(steps, work, self._parts.in_thread))
            if key in self.open:  # nothing had to be waited for
                return self.open[key]
            raise _not_yet(topic, index)
        return self._opened(topic, index, recovered)

    def has(self, partition: LogPartition) -> bool:
        """
        Whether it is there still.
        """
        return self.open.get((partition.topic.id, partition.index)) is partition

    def open_all(self, places: Iterable[tuple[Topic, int]]) -> Generator[None, None, None]:
        """
        Open these partitions one after the other, as far as they are still there.
        """
        for topic, index in places:
            yield
            if self._stopped:
                return
            now = self._current(topic.id)
            if now and (topic.id, index) not in self.open:
                with suppress(KafkaError):  # it goes on by turns, or the log has the reason
                    self.partition(now, index)

    def stop(self) -> Deferred[list[None]]:
        """
        Open nothing any more; fires when no thread is busy with any of it.
        """
        self._stopped = True
        recovering, self._recovering = self._recovering, {}
        return gatherResults([opening.end() for opening in recovering.values()])

    def forget(self, topic: Topic, index: int) -> tuple[LogPartition | None, Deferred[None]]:
        """
        The partition is there no more; what it was, and when no thread is busy with opening it.
        """
        self._checkpoints.forget((topic.name, index))
        self._starts.forget((topic.name, index))
        self._refused.pop((topic.id, index), None)
        opening = self._recovering.pop((topic.id, index), None)
        return self.open.pop((topic.id, index), None), opening.end() if opening else succeed(None)

    def _begin(self, topic: Topic, index: int) -> Steps:
        place = topic.name, index
        checkpoints = self._checkpoints
        synced = checkpoints.synced.get(place, 0)
        known = place in checkpoints.settled
        trust = Trust(synced, checkpoints.settled.get(place, synced), known, known and checkpoints.clean)
        trust = trust.beginning_at(self._starts.of(place))
        producers = ProducerTable(self._producer_expiry_ms)
        try:
            folder = prepare(self._parts.files.disk, self._data, topic, index)
        except OSError as error:
            raise self._unreadable(topic, index, error) from None
        epoch, now_ms = topic.partitions[index].leader_epoch, self._parts.now_ms()
        return Recovery(self._parts.files, folder, trust, producers, now_ms, epoch, topic.config).run()

    def _go_on(self, topic: Topic, index: int, opening: LongOpening) -> None:
        key = topic.id, index
        self._recovering[key] = opening
        self._log.info("{topic}-{index} is looked through", topic=topic.name, index=index)

        def by_turns() -> Generator[Deferred[object] | None, None, None]:
            recovered = yield from opening.by_turns()
            if self._recovering.get(key) is opening:  # neither was the topic deleted meanwhile, nor the broker stopped
                self._opened(topic, index, recovered)

        def failed(failure: Failure) -> None:
            error = failure.value
            if self._recovering.get(key) is not opening:
                return
            if isinstance(error, OSError | Damaged):
                self._unreadable(topic, index, error)
            elif not isinstance(error, KafkaError):  # which has been told
                self._log.failure("{topic}-{index} cannot be opened", failure, topic=topic.name, index=index)

        def ended(_: object) -> None:
            if self._recovering.get(key) is opening:
                del self._recovering[key]

        self._parts.in_turns(by_turns()).addErrback(failed).addCallback(ended)

    def _opened(self, topic: Topic, index: int, recovered: Recovered) -> LogPartition:
        for fault in recovered.faults:
            self._log.warn("{fault}", fault=fault)
        now = self._current(topic.id) or topic
        try:
            partition = LogPartition(now, index, recovered, self._parts, self._note, self._starts.put)
        except OSError as error:
            raise self._unreadable(topic, index, error) from None
        if not partition.settled:
            self.changed.append(partition)
        self.open[topic.id, index] = partition
        if not partition.log_end and (topic.name, index) not in self._checkpoints.settled:
            # Nothing of it can be missing for as long as the machine runs; that is told by all that was there before.
            self._checkpoints.settled[topic.name, index] = 0
            self._save_soon()
        return partition

    def _note(self, partition: LogPartition) -> None:
        """
        It has changed, or gone offline. Of that the next process has to know, for the system still shows what it could
        not write.
        """
        self.changed.append(partition)
        if partition.offline:
            self._save_at_once(partition)

    def _unreadable(self, topic: Topic, index: int, error: OSError | Damaged) -> KafkaError:
        reason = f"{topic.name}-{index} cannot be opened: {plain(error)}"
        self._log.error("{reason}", reason=reason)
        refusal = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason)
        self._refused[topic.id, index] = self._parts.clock.seconds() + _AGAIN_S, refusal
        return refusal


def _not_yet(topic: Topic, index: int) -> KafkaError:
    reason = f"{topic.name}-{index} is being looked through; it will be there soon"
    return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, reason)
