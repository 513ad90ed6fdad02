"""
The coordinator of groups: finds each group by its id.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.cluster.view import Node
from kgateway.context import Context, GatewayParts
from kgateway.coordination.placement import STATE_TOPICS
from kgateway.coordination.shards import CoordinatorShards
from kgateway.groups.classic.group import ClassicGroup
from kgateway.groups.classic.requests import JoinRequest, JoinResult, LeavingMember, SyncRequest, SyncResult
from kgateway.groups.consumer.classic_members import ClassicMembers
from kgateway.groups.consumer.group import ConsumerGroup
from kgateway.groups.expiry import OffsetExpiry
from kgateway.groups.group import Group, GroupType
from kgateway.groups.migration import Migration
from kgateway.groups.offsets import GroupOffsets
from kgateway.groups.records import Write
from kgateway.groups.shard import FirstWrite, GroupEntry, GroupShard, tombstones
from kgateway.interfaces import ProducerEpoch
from kgateway.log_messages import GROUP_NOT_CREATED
from kgateway.messages.stored.offset_commit import OffsetCommitValue
from kgateway.security.permissions import Resource
from kgateway.topic_partition import TopicPartition
from kgateway.transactions.markers import MarkerWriter
from kgateway.wire.errors import ErrorCode, KafkaError

G = TypeVar("G", bound=Group)
Maker = Callable[[str, Write], Group]


class GroupCoordinator:
    """
    All groups of this gateway. The groups of one state log are loaded when somebody first asks for any of them.
    """

    _log = Logger()

    def __init__(self, gateway: GatewayParts) -> None:
        self._gateway = gateway
        migration = self._migration = Migration(gateway, self.replace)
        self._makers: dict[GroupType, Maker] = {
            GroupType.CLASSIC: migration.classic_group,
            GroupType.CONSUMER: migration.consumer_group,
        }
        self._shards: CoordinatorShards[GroupShard] = CoordinatorShards(
            gateway.broker, Resource.GROUP, lambda log, ended: GroupShard(log, self._make, gateway.clock, ended)
        )
        self._expiry = OffsetExpiry(gateway, self._shards.available)
        gateway.service(MarkerWriter).listen(self._ended)
        self._shards.available()

    def entry(self, group_id: str) -> GroupEntry:
        """
        The group and its offsets; GROUP_ID_NOT_FOUND if there is none.
        """
        entry = self._shards.shard_of(group_id).groups.get(group_id)
        if entry is None:
            raise _not_found(group_id)
        return entry

    def find(self, group_id: str) -> Group:
        return self.entry(group_id).group

    def offsets(self, group_id: str) -> GroupOffsets:
        return self.entry(group_id).offsets

    def entry_or_new(self, group_id: str) -> GroupEntry:
        """
        The group and its offsets. If there is none, a new group for a consumer that commits and never joins.
        """
        shard = self._shards.shard_of(group_id)
        return shard.groups.get(group_id) or shard.add(group_id, GroupType.CLASSIC)

    def classic(self, group_id: str, create: bool) -> ClassicGroup:
        """
        The group, if its members speak the classic protocol. If it is empty or missing, and a member may create it, a
        new one that takes its id with its first write.
        """
        entry = self._shards.shard_of(group_id).groups.get(group_id)
        if entry and isinstance(entry.group, ClassicGroup):
            return entry.group
        if entry and create and not entry.group.is_empty:
            reason = f"the members of {group_id} do not speak the classic protocol"
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, reason)
        return self._new_group(group_id, entry, create, self._migration.classic_group)

    def consumer(self, group_id: str, create: bool) -> ConsumerGroup:
        """
        As `classic`, for the consumer protocol. It may also be the group that a classic group with members is converted
        to.
        """
        entry = self._shards.shard_of(group_id).groups.get(group_id)
        if entry and isinstance(entry.group, ConsumerGroup):
            return entry.group
        if entry and create and isinstance(entry.group, ClassicGroup) and not entry.group.is_empty:
            return self._migration.upgraded(entry.group, self.write(group_id))
        return self._new_group(group_id, entry, create, self._migration.consumer_group)

    def replace(self, group: Group) -> None:
        """
        Make this the group of its id, which it has written already. The offsets stay.
        """
        try:
            self.entry(group.group_id).group = group
        except KafkaError:  # it is coordinated elsewhere by now
            group.stop()

    def write(self, group_id: str) -> Write:
        return self._shards.shard_of(group_id).write

    def commit_in_transaction(
        self, entry: GroupEntry, producer: ProducerEpoch, commits: Iterable[tuple[TopicPartition, OffsetCommitValue]]
    ) -> Deferred[None] | None:
        """
        Write these offsets, which count when the producer's transaction is committed.
        """
        return self._shards.shard_of(entry.offsets.group_id).commit_in_transaction(entry, producer, commits)

    def _ended(self, partition: TopicPartition, producer_id: int, commits: bool) -> None:
        """
        A transaction has its marker in a partition. If the groups of the partition are not loaded yet, a load finds the
        marker.
        """
        shard = self._shards.at(partition.index) if partition.topic == STATE_TOPICS[Resource.GROUP] else None
        if shard:
            shard.end_transaction(producer_id, commits)

    def delete(self, group_id: str) -> Deferred[None] | None:
        """
        Delete the group and its offsets; NON_EMPTY_GROUP while it has members.
        """
        shard, entry = self._shards.shard_of(group_id), self.entry(group_id)
        if not entry.group.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"group {group_id} is {entry.group.state}")
        committed = shard.delete(entry)
        self._log.info("group {group}: deleted by request", group=group_id)
        return committed

    async def all(self) -> list[Group]:
        found: list[Group] = []
        for shard in self._shards.all():
            await shard.when_loaded()
            found += [entry.group for entry in shard.groups.values()]
        return found

    def stop(self) -> None:
        self._expiry.stop()
        self._shards.stop()

    def node_of(self, group_id: str) -> Node | None:
        """
        The other node that coordinates the group; `None` if this one does, which then begins to load it if need be.
        """
        return self._shards.node_of(group_id)

    def loading(self, group_ids: Iterable[str]) -> list[Deferred[None]]:
        """
        Deferreds that fire when these groups are loaded, or never will be; empty if they are loaded.
        """
        return self._shards.loading(group_ids)

    def _make(self, kind: GroupType, group_id: str, write: Write) -> Group:
        return self._makers[kind](group_id, write)

    def _new_group(self, group_id: str, entry: GroupEntry | None, create: bool, make: Callable[[str, Write], G]) -> G:
        """
        A group that takes the id with its first write, in place of the empty group that may have it.
        """
        if not create:
            raise _not_found(group_id)
        shard = self._shards.shard_of(group_id)
        predecessor = tombstones(entry.group) if entry else []
        first_write = FirstWrite[G](predecessor, shard.write, partial(self._replace_written, shard), self._write_failed)
        group = first_write.group = make(group_id, first_write.write)
        return group

    def _replace_written(self, shard: GroupShard, group: Group) -> None:
        if group.group_id in shard.groups:
            kind = group.type.value
            self._log.info("group {group}: was empty, and is now a {kind} group", group=group.group_id, kind=kind)
        shard.put(group)

    def _write_failed(self, group: Group, failure: Failure) -> None:
        self._log.warn(GROUP_NOT_CREATED, group=group.group_id, error=failure.value)


def _not_found(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id}")


class ClassicSpeaker(Protocol):
    """
    A group that understands the classic protocol. Its refusals are KafkaErrors. Answers may come later.
    """

    def join(self, request: JoinRequest) -> JoinResult | Deferred[JoinResult]: ...

    def sync(self, request: SyncRequest) -> SyncResult | Deferred[SyncResult]: ...

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> None: ...

    def leave(self, leavers: Sequence[LeavingMember]) -> list[ErrorCode]: ...


def group_of_member(context: Context, group_id: str, *, is_new: bool = False) -> ClassicSpeaker:
    """
    The group that the client says it is a member of. It is created for a new member only: nobody else can be in a group
    that does not exist.
    """
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    groups = context.service(GroupCoordinator)
    try:
        if is_new:
            return groups.classic(group_id, create=True)
        return _speaker(groups.find(group_id), context)
    except KafkaError as error:
        if error.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            return _speaker(groups.find(group_id), context)
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, error.message) from None
        raise


def refusal_of(failure: Failure) -> KafkaError:
    """
    The error for a member that has waited in vain. Its wait is cancelled if the gateway stops.
    """
    if failure.check(CancelledError):
        return KafkaError(ErrorCode.NOT_COORDINATOR, "the gateway is stopping")
    failure.trap(KafkaError)
    error = failure.value
    assert isinstance(error, KafkaError)
    return error


def _speaker(group: Group, context: Context) -> ClassicSpeaker:
    if isinstance(group, ClassicGroup):
        return group
    if isinstance(group, ConsumerGroup) and not group.is_empty:
        return ClassicMembers(group, context.settings)
    raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{group.group_id} has no members")
