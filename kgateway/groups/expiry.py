"""
The expiry of offsets (KIP-211), and of groups with neither members nor offsets.

The offsets of a classic group age from when it became empty; while it has members, those of topics that no member reads
age from their commit. Clients that commit and never join are no members: their offsets age from their commit, too. The
offsets of a deleted topic are deleted at once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.broker.rounds import Rounds
from kgateway.cluster.view import Topic
from kgateway.context import GatewayParts
from kgateway.coordination.slicing import batched, by_turns
from kgateway.groups.group import Group, GroupType
from kgateway.groups.offsets import GroupOffsets, is_of
from kgateway.groups.records import NEVER
from kgateway.groups.shard import GroupEntry, GroupShard
from kgateway.log_messages import OFFSET_EXPIRY_FAILED, OFFSET_ROUND_FAILED, OFFSETS_NOT_EXPIRED
from kgateway.messages.stored.offset_commit import OffsetCommitValue
from kgateway.plurals import counted
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import KafkaError

CONSUMERS = "consumer"  # the protocol type whose subscriptions can be read
_STABLE = "Stable"
_PIECE = 100  # groups in one turn of the reactor
_MINUTE_MS = 60_000


def expired_offsets(group: Group, offsets: GroupOffsets, now_ms: int, retention_ms: int) -> Iterator[TopicPartition]:
    if not _may_expire(group):
        return
    empty_since_ms = group.empty_since_ms if _ages_from_emptiness(group) else None
    for topic, partitions in offsets.by_topic.items():
        if group.reads(topic):
            continue
        for index, committed in partitions.items():
            partition = TopicPartition(topic, index)
            if _expired(committed, empty_since_ms, now_ms, retention_ms) and not offsets.is_unstable(partition):
                yield partition


def offsets_of_deleted_topics(offsets: GroupOffsets, topics: Mapping[str, Topic]) -> Iterator[TopicPartition]:
    for partition, committed in offsets:
        topic = topics.get(partition.topic)
        if (topic is None or not is_of(committed, topic.id)) and not offsets.is_unstable(partition):
            yield partition


def _may_expire(group: Group) -> bool:
    """
    Whether any of its offsets may expire now: of a classic group with members, the topics it reads must be known.
    """
    if group.type is GroupType.CONSUMER or not group.protocol_type or group.is_empty:
        return True
    return group.protocol_type == CONSUMERS and group.state == _STABLE


def _ages_from_emptiness(group: Group) -> bool:
    return group.type is GroupType.CLASSIC and bool(group.protocol_type) and group.is_empty


def _expired(committed: OffsetCommitValue, empty_since_ms: int | None, now_ms: int, retention_ms: int) -> bool:
    if committed.expire_timestamp != NEVER:  # an old client has said how long to keep it
        return now_ms >= committed.expire_timestamp
    since_ms = committed.commit_timestamp if empty_since_ms is None else empty_since_ms
    return now_ms - since_ms >= retention_ms


class OffsetExpiry:
    """
    Deletes expired offsets of all groups in periodic rounds, and those of a topic when it is deleted.
    """

    _log = Logger()

    def __init__(self, gateway: GatewayParts, shards: Callable[[], Iterable[GroupShard]]) -> None:
        settings = gateway.settings
        interval_ms = settings.offsets_retention_check_interval_ms
        self._retention_ms = settings.offsets_retention_minutes * _MINUTE_MS
        self._gateway = gateway
        self._shards = shards
        self._topics = gateway.broker.view().topics_by_id
        self._unwatch = gateway.broker.watch(self._view_changed)
        self._rounds = Rounds(gateway.clock, interval_ms, interval_ms, self._run, OFFSET_ROUND_FAILED)

    def stop(self) -> None:
        self._unwatch()
        self._rounds.stop()

    async def _run(self) -> None:
        for shard in list(self._shards()):
            async for piece in by_turns(batched(list(shard.groups.values()), _PIECE), self._gateway.clock):
                for entry in piece:
                    if shard.is_serving and shard.groups.get(entry.offsets.group_id) is entry:
                        self._expire(shard, entry)

    def _expire(self, shard: GroupShard, entry: GroupEntry) -> None:
        group, offsets = entry.group, entry.offsets
        old = list(expired_offsets(group, offsets, self._gateway.now_ms(), self._retention_ms))
        self._forget(entry, old, "expired")
        self._forget(
            entry,
            list(offsets_of_deleted_topics(offsets, self._gateway.broker.view().topics)),
            "their topics are deleted",
        )
        if group.is_empty and not offsets and self._try(offsets.group_id, lambda: shard.delete(entry)):
            self._log.info("group {group}: deleted, without members and offsets", group=offsets.group_id)

    def _view_changed(self) -> None:
        before, self._topics = self._topics, self._gateway.broker.view().topics_by_id
        for topic_id in before.keys() - self._topics.keys():
            self._topic_deleted(before[topic_id])

    def _topic_deleted(self, topic: Topic) -> None:
        for shard in list(self._shards()):
            for entry in list(shard.groups.values()):
                committed = entry.offsets.by_topic.get(topic.name, {})
                partitions = [TopicPartition(topic.name, index) for index in committed]
                self._forget(entry, partitions, f"topic {topic.name} is deleted")

    def _forget(self, entry: GroupEntry, partitions: list[TopicPartition], why: str) -> None:
        group_id = entry.offsets.group_id
        if partitions and self._try(group_id, lambda: entry.offsets.forget(partitions)):
            self._log.info(
                "group {group}: deleted {offsets}: {why}",
                group=group_id,
                offsets=counted(len(partitions), "offset"),
                why=why,
            )

    def _try(self, group_id: str, write: Callable[[], Deferred[None] | None]) -> bool:
        """
        Try to write. Returns whether that succeeded; otherwise the next round tries again.
        """
        try:
            committed = write()
        except KafkaError as error:
            self._log.warn(OFFSETS_NOT_EXPIRED, group=group_id, error=error)
            return False
        if committed:
            committed.addErrback(lambda failure: self._log.failure(OFFSET_EXPIRY_FAILED, failure))
        return True
