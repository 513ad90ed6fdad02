"""
What a coordinator keeps in one state log.

A shard keeps an image of its log: the last value of each key, as compaction would leave it. A snapshot is that image;
a load makes the image first and replays what is left of it, so what was overwritten is never decoded.
"""

from collections.abc import Callable, Sequence
from functools import partial

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.cluster.partition import Appended
from kgateway.coordinating.refusals import as_coordinator, coordinators_failure
from kgateway.coordinating.turns import by_turns, in_pieces
from kgateway.interfaces import Cancel, IStateLog, KeyValue, ProducerEpoch
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.malformed import Malformed

SNAPSHOT_RECORDS = 10_000  # at least so many records are between two snapshots
PIECE = 500  # rows, or what they are of; a few milliseconds

Ended = Callable[["StateShard"], None]


class StateShard:
    """
    The coordinator of what one log has the state of, from when that is loaded until it is stopped or has lost the log.
    """

    things: str  # that are coordinated, in a word

    _log = Logger()

    def __init__(self, log: IStateLog, clock: IReactorTime, ended: Ended) -> None:
        self.log = log
        self._clock = clock
        self._ended = ended
        self._image: dict[bytes, bytes] = {}
        self._undecided_from: dict[int, int] = {}  # by producer, where what does not count yet begins
        self._since_snapshot = 0
        self._snapshot: Deferred[None] | None = None
        self._waiting: list[Deferred[None]] = []
        self._why_not: KafkaError | None = KafkaError(
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.things} are being loaded"
        )
        self._forget_loss: Cancel | None = None
        self._loading: Deferred[None] | None = None

    def start(self) -> None:
        """
        Load what is in the log.
        """
        self._forget_loss = self.log.on_lost(self.stop)
        if not self._is_over:
            self._loading = Deferred.fromCoroutine(self._load()).addErrback(self._failed)

    def check(self) -> None:
        """
        Refuse who asks for anything as long as it is not there.
        """
        if self._why_not:
            raise KafkaError(self._why_not.code, self._why_not.message)

    @property
    def is_serving(self) -> bool:
        """
        Whether it can be asked.
        """
        return self._why_not is None

    def when_loaded(self) -> Deferred[None]:
        """
        Fires when it can be asked, or never will.
        """
        loaded: Deferred[None] = Deferred()
        if self._is_loading:
            self._waiting.append(loaded)
        else:
            loaded.callback(None)
        return loaded

    def append(self, records: Sequence[KeyValue], producer: ProducerEpoch | None = None) -> Deferred[None] | None:
        """
        Write records at once, as one batch. `None` when they are safe by then, else a Deferred that fires or fails
        (KafkaError) as they become so; a KafkaError is raised where they cannot be written at all. What is written in
        the transaction of a producer counts when that is said.
        """
        self.check()
        try:
            appended = self.log.append(records, producer)
        except KafkaError as error:
            raise as_coordinator(error) from None
        if producer is None:
            self.count_in(records)
        else:
            self._undecided_from.setdefault(producer[0], appended.base_offset)
        return _safe(appended)

    def decided(self, producer_id: int) -> None:
        """
        All that the transaction of this producer has written counts by now, or never will.
        """
        self._undecided_from.pop(producer_id, None)

    def count_in(self, records: Sequence[KeyValue]) -> None:
        """
        These are in the log, and count.
        """
        for key, value in records:
            self._overwrite(key, value)
        self._since_snapshot += len(records)
        if self._since_snapshot >= max(SNAPSHOT_RECORDS, len(self._image)) and self._snapshot is None:
            self._take_snapshot()

    def stop(self) -> None:
        """
        Be coordinator no more.
        """
        self._end(KafkaError(ErrorCode.NOT_COORDINATOR, f"this gateway coordinates these {self.things} no more"))

    def _count(self) -> int:
        """
        How many things there are.
        """
        raise NotImplementedError

    def _replay(self, key: bytes, value: bytes) -> bool:
        """
        Take what is the last word on a key; whether it is of a kind that is known here.
        """
        raise NotImplementedError

    def _replay_undecided(self, producer_id: int, key: bytes, value: bytes | None) -> bool:
        """
        Take what is in the transaction of a producer that has not ended, without a value where a later one counts
        already; whether it is of a kind that is known here.
        """
        return False

    async def _replayed(self) -> None:
        """
        All of it was taken, and can be asked for next.
        """

    def _loaded(self) -> None:
        """
        It can be asked now; nobody has yet.
        """

    def _let_go(self) -> None:
        """
        Forget everything, and have nothing under way any more.
        """
        raise NotImplementedError

    @property
    def _is_loading(self) -> bool:
        return self._why_not is not None and self._why_not.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    @property
    def _is_over(self) -> bool:
        return self._why_not is not None and not self._is_loading

    async def _load(self) -> None:
        replay = await self.log.replay()
        count = 0
        async for records in by_turns(replay, self._clock):
            count += len(records)
            for key, value in records:
                self._overwrite(key, value)
        self._since_snapshot = count - len(self._image)
        async for kept in by_turns(in_pieces(list(self._image.items()), PIECE), self._clock):
            for key, last in kept:
                self._take(key, partial(self._replay, key, last))
        self._undecided_from |= replay.began
        for producer_id, key, value in replay.undecided:
            self._take(key, partial(self._replay_undecided, producer_id, key, value))
        await self._replayed()
        if count:
            told = {"count": self._count(), "things": self.things, "records": count}
            self._log.info("{count} {things} are loaded, of {records} records", **told)
        self._why_not = None
        self._loaded()
        self._become(None)

    def _overwrite(self, key: bytes, value: bytes | None) -> None:
        self._image.pop(key, None)  # so that what is newer comes later
        if value is not None:
            self._image[key] = value

    def _take(self, key: bytes, replay: Callable[[], bool]) -> None:
        """
        What is not understood is kept for who will.
        """
        try:
            if not replay():
                self._log.debug("a record of a kind that is not known here is passed over: {key}", key=key)
        except Malformed as error:
            told = {"things": self.things, "error": error}
            self._log.warn("a record of {things} is damaged, and passed over: {error}", **told)
        except Exception:  # a bug costs one thing something, not the others everything
            self._log.failure("a record of {things} is passed over: {key}", things=self.things, key=key)

    def _take_snapshot(self) -> None:
        self._since_snapshot = 0
        undecided_from = min(self._undecided_from.values(), default=None)
        self._snapshot = self.log.snapshot(self._image.items(), undecided_from)
        self._snapshot.addErrback(self._no_snapshot).addBoth(self._snapshot_ended)

    def _no_snapshot(self, failure: Failure) -> None:
        if not self._is_over:
            told = "no snapshot of {things} could be kept; the next start takes longer"
            self._log.failure(told, failure, things=self.things)

    def _snapshot_ended(self, _: None) -> None:
        self._snapshot = None

    def _failed(self, failure: Failure) -> None:
        if self._is_over:
            return
        self._log.failure("{things} cannot be loaded", failure, things=self.things)
        self._end(KafkaError(ErrorCode.NOT_COORDINATOR, f"the {self.things} could not be loaded"))

    def _end(self, why: KafkaError) -> None:
        if self._is_over:
            return
        if self._forget_loss:
            self._forget_loss()
        self._become(why)
        for under_way in (self._loading, self._snapshot):
            if under_way:
                under_way.cancel()
        self._let_go()
        self._ended(self)

    def _become(self, why_not: KafkaError | None) -> None:
        self._why_not = why_not
        waiting, self._waiting = self._waiting, []
        for loaded in waiting:
            loaded.callback(None)


def _safe(appended: Appended) -> Deferred[None] | None:
    """
    What those wait for who are promised that it lasts.
    """
    appended.leave(appended.stored)  # if that fails, so does the other
    if appended.safe is not None:
        appended.safe.addErrback(coordinators_failure)
    return appended.safe
