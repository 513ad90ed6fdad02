"""
The part of a coordinator whose state is in one partition of its internal topic.

A shard keeps an image of its log: the last value of each key, as compaction would leave it. A snapshot is that image; a
load builds the image first and replays what is left of it, so overwritten values are never decoded.
"""

from collections.abc import Callable, Sequence
from functools import partial

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.cluster.partition import Appended
from kgateway.coordination.slicing import batched, by_turns
from kgateway.interfaces import Cancel, IStateLog, KeyValue, ProducerEpoch
from kgateway.log_messages import CANNOT_LOAD, DAMAGED_RECORD, NO_SNAPSHOT, RECORD_SKIPPED
from kgateway.plurals import counted
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed

SNAPSHOT_RECORDS = 10_000  # at least this many between two snapshots
PIECE = 500  # records, or the objects made of them, in one turn of the reactor: a few milliseconds

Ended = Callable[["CoordinatorShard"], None]


_COORDINATOR_CODES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def coordinator_error(error: KafkaError) -> KafkaError:
    """
    Translate an error of the partition that keeps the state into one that clients expect of a coordinator.
    """
    return KafkaError(_COORDINATOR_CODES.get(error.code, error.code), error.message)


def coordinator_failure(failure: Failure) -> Failure:
    return Failure(coordinator_error(failure.value)) if isinstance(failure.value, KafkaError) else failure


class CoordinatorShard:
    """
    Loads the state of one log, and coordinates it until it is stopped or the log is lost.
    """

    noun: str  # what is coordinated, for log lines and errors

    _log = Logger()

    def __init__(self, log: IStateLog, clock: IReactorTime, ended: Ended) -> None:
        self.log = log
        self._clock = clock
        self._ended = ended
        self._image: dict[bytes, bytes] = {}
        self._open_since: dict[int, int] = {}  # by producer, where its open transaction begins in the log
        self._since_snapshot = 0
        self._snapshot: Deferred[None] | None = None
        self._waiting: list[Deferred[None]] = []
        self._unavailable: KafkaError | None = KafkaError(
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.noun} are being loaded"
        )
        self._forget_loss: Cancel | None = None
        self._loading: Deferred[None] | None = None

    def start(self) -> None:
        self._forget_loss = self.log.on_lost(self.stop)
        if not self._is_stopped:
            self._loading = Deferred.fromCoroutine(self._load()).addErrback(self._failed)

    def check(self) -> None:
        if self._unavailable:
            raise KafkaError(self._unavailable.code, self._unavailable.message)

    @property
    def is_serving(self) -> bool:
        return self._unavailable is None

    def when_loaded(self) -> Deferred[None]:
        """
        A Deferred that fires when the shard is serving, or never will.
        """
        loaded: Deferred[None] = Deferred()
        if self._is_loading:
            self._waiting.append(loaded)
        else:
            loaded.callback(None)
        return loaded

    def append(self, records: Sequence[KeyValue], producer: ProducerEpoch | None = None) -> Deferred[None] | None:
        """
        Write records immediately, as one batch. Returns `None` if they are committed by then, else a Deferred that
        fires when they are or fails with a KafkaError. Raises a KafkaError if they cannot be written at all. Records of
        a producer's transaction count once it is committed.
        """
        self.check()
        try:
            appended = self.log.append(records, producer)
        except KafkaError as error:
            raise coordinator_error(error) from None
        if producer is None:
            self.apply_records(records)
        else:
            self._open_since.setdefault(producer[0], appended.base_offset)
        return _committed(appended)

    def transaction_ended(self, producer_id: int) -> None:
        """
        Snapshots need no longer wait for the transaction of this producer: by now its records count, or never will.
        """
        self._open_since.pop(producer_id, None)

    def apply_records(self, records: Sequence[KeyValue]) -> None:
        """
        Put records that are in the log, and count, into the image.
        """
        for key, value in records:
            self._overwrite(key, value)
        self._since_snapshot += len(records)
        if self._since_snapshot >= max(SNAPSHOT_RECORDS, len(self._image)) and self._snapshot is None:
            self._take_snapshot()

    def stop(self) -> None:
        self._end(KafkaError(ErrorCode.NOT_COORDINATOR, f"this gateway no longer coordinates these {self.noun}"))

    def _count(self) -> int:
        raise NotImplementedError

    def _replay(self, key: bytes, value: bytes) -> bool:
        """
        Apply the last value of a key. Returns false if the kind of record is not known here.
        """
        raise NotImplementedError

    def _replay_open(self, producer_id: int, key: bytes, value: bytes | None) -> bool:
        """
        Apply a record of a transaction that has not ended. It has no value if a later one counts already. Returns false
        if the kind of record is not known here.
        """
        return False

    async def _replayed(self) -> None:
        """
        Called once all records are replayed, before the shard serves.
        """

    def _loaded(self) -> None:
        """
        Called when the shard begins to serve, before anybody can ask.
        """

    def _clear(self) -> None:
        """
        Drop all state, and cancel what is under way.
        """
        raise NotImplementedError

    @property
    def _is_loading(self) -> bool:
        return self._unavailable is not None and self._unavailable.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    @property
    def _is_stopped(self) -> bool:
        return self._unavailable is not None and not self._is_loading

    async def _load(self) -> None:
        replay = await self.log.replay()
        count = 0
        async for records in by_turns(replay, self._clock):
            count += len(records)
            for key, value in records:
                self._overwrite(key, value)
        self._since_snapshot = count - len(self._image)
        async for kept in by_turns(batched(list(self._image.items()), PIECE), self._clock):
            for key, last in kept:
                self._try_replay(key, partial(self._replay, key, last))
        self._open_since |= replay.began
        for producer_id, key, value in replay.undecided:
            self._try_replay(key, partial(self._replay_open, producer_id, key, value))
        await self._replayed()
        if count:
            values = {
                "things": counted(self._count(), self.noun.removesuffix("s")),
                "records": counted(count, "record"),
            }
            self._log.info("loaded {things} from {records}", **values)
        self._unavailable = None
        self._loaded()
        self._set_unavailable(None)

    def _overwrite(self, key: bytes, value: bytes | None) -> None:
        self._image.pop(key, None)  # so that newer records come later
        if value is not None:
            self._image[key] = value

    def _try_replay(self, key: bytes, replay: Callable[[], bool]) -> None:
        """
        Replay a record. One that is not understood stays in the image, for newer versions.
        """
        try:
            if not replay():
                self._log.debug("skipping a record of an unknown kind: {key}", key=key)
        except Malformed as error:
            values = {"things": self.noun, "error": error}
            self._log.warn(DAMAGED_RECORD, **values)
        except Exception:  # a bug costs one record, not all of them
            self._log.failure(RECORD_SKIPPED, things=self.noun, key=key)

    def _take_snapshot(self) -> None:
        self._since_snapshot = 0
        undecided_from = min(self._open_since.values(), default=None)
        self._snapshot = self.log.snapshot(self._image.items(), undecided_from)
        self._snapshot.addErrback(self._no_snapshot).addBoth(self._snapshot_ended)

    def _no_snapshot(self, failure: Failure) -> None:
        if not self._is_stopped:
            self._log.failure(NO_SNAPSHOT, failure, things=self.noun)

    def _snapshot_ended(self, _: None) -> None:
        self._snapshot = None

    def _failed(self, failure: Failure) -> None:
        if self._is_stopped:
            return
        self._log.failure(CANNOT_LOAD, failure, things=self.noun)
        self._end(KafkaError(ErrorCode.NOT_COORDINATOR, f"the {self.noun} could not be loaded"))

    def _end(self, why: KafkaError) -> None:
        if self._is_stopped:
            return
        if self._forget_loss:
            self._forget_loss()
        self._set_unavailable(why)
        for under_way in (self._loading, self._snapshot):
            if under_way:
                under_way.cancel()
        self._clear()
        self._ended(self)

    def _set_unavailable(self, unavailable: KafkaError | None) -> None:
        self._unavailable = unavailable
        waiting, self._waiting = self._waiting, []
        for loaded in waiting:
            loaded.callback(None)


def _committed(appended: Appended) -> Deferred[None] | None:
    appended.ignore(appended.stored)  # if that fails, so does the other
    if appended.committed is not None:
        appended.committed.addErrback(coordinator_failure)
    return appended.committed
