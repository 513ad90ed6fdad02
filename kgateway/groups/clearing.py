"""
What nobody needs any more goes: offsets that are too old or whose topic is deleted, and groups that have neither
members nor offsets.
"""

from collections.abc import Callable, Iterable

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.cluster.view import Topic
from kgateway.context import GatewayParts
from kgateway.coordinating.turns import by_turns, in_pieces
from kgateway.groups.expiry import left_behind, too_old
from kgateway.groups.offsets import Place
from kgateway.groups.shard import Held, Shard
from kgateway.wire.errors import KafkaError

_PIECE = 100  # groups
_MINUTE_MS = 60_000


class Clearing:
    """
    Looks through all groups now and then, and when topics are deleted.
    """

    _log = Logger()

    def __init__(self, gateway: GatewayParts, shards: Callable[[], Iterable[Shard]]) -> None:
        settings = gateway.settings
        self._interval_s = settings.offsets_retention_check_interval_ms / 1000
        self._retention_ms = settings.offsets_retention_minutes * _MINUTE_MS
        self._gateway = gateway
        self._shards = shards
        self._topics = gateway.broker.view().topics_by_id
        self._unwatch = gateway.broker.watch(self._look)
        self._round: Deferred[None] | None = None
        self._timer = gateway.clock.callLater(self._interval_s, self._begin)

    def stop(self) -> None:
        """
        Leave everything as it is.
        """
        self._unwatch()
        if self._timer.active():
            self._timer.cancel()
        if self._round:
            self._round.cancel()

    def _begin(self) -> None:
        self._round = Deferred.fromCoroutine(self._look_through())
        self._round.addErrback(self._failed).addCallback(self._again)

    def _again(self, stopped: bool | None) -> None:
        self._round = None
        if not stopped:
            self._timer = self._gateway.clock.callLater(self._interval_s, self._begin)

    def _failed(self, failure: Failure) -> bool:
        if failure.check(CancelledError):
            return True
        self._log.failure("not all groups could be looked through", failure)
        return False

    async def _look_through(self) -> None:
        for shard in list(self._shards()):
            async for piece in by_turns(in_pieces(list(shard.groups.values()), _PIECE), self._gateway.clock):
                for held in piece:
                    if shard.is_serving and shard.groups.get(held.offsets.group_id) is held:
                        self._clear(shard, held)

    def _clear(self, shard: Shard, held: Held) -> None:
        group, offsets = held.group, held.offsets
        old = list(too_old(group, offsets, self._gateway.now_ms(), self._retention_ms))
        self._forget(held, old, "they are too old")
        self._forget(held, list(left_behind(offsets, self._gateway.broker.view().topics)), "their topics are gone")
        if group.is_empty and not offsets and self._try(offsets.group_id, lambda: shard.delete(held)):
            self._log.info("group {group}: deleted, for it has neither members nor offsets", group=offsets.group_id)

    def _look(self) -> None:
        """
        There is a new view.
        """
        before, self._topics = self._topics, self._gateway.broker.view().topics_by_id
        for topic_id in before.keys() - self._topics.keys():
            self._deleted(before[topic_id])

    def _deleted(self, topic: Topic) -> None:
        for shard in list(self._shards()):
            for held in list(shard.groups.values()):
                committed = held.offsets.by_topic.get(topic.name, {})
                places = [Place(topic.name, index) for index in committed]
                self._forget(held, places, f"topic {topic.name} is deleted")

    def _forget(self, held: Held, places: list[Place], why: str) -> None:
        group_id = held.offsets.group_id
        if places and self._try(group_id, lambda: held.offsets.forget(places)):
            self._log.info("group {group}: {count} offsets go, for {why}", group=group_id, count=len(places), why=why)

    def _try(self, group_id: str, write: Callable[[], Deferred[None] | None]) -> bool:
        """
        Whether it is written. What cannot be is seen again the next time.
        """
        try:
            safe = write()
        except KafkaError as error:
            self._log.warn("group {group}: nothing could be cleared away: {error}", group=group_id, error=error)
            return False
        if safe:
            safe.addErrback(lambda failure: self._log.failure("not cleared away for good", failure))
        return True
