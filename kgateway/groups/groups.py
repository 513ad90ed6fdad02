"""
All groups that this gateway coordinates.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.cluster.view import Node
from kgateway.context import GatewayParts
from kgateway.coordinating.places import STATE_TOPICS
from kgateway.coordinating.shards import Shards
from kgateway.groups.classic.group import ClassicGroup
from kgateway.groups.clearing import Clearing
from kgateway.groups.consumer.group import ConsumerGroup
from kgateway.groups.group import Group, GroupType
from kgateway.groups.migration import Migration
from kgateway.groups.offsets import GroupOffsets, Place
from kgateway.groups.rows import Write
from kgateway.groups.shard import Held, Shard, tombstones
from kgateway.groups.taking_over import TakingOver
from kgateway.interfaces import ProducerEpoch
from kgateway.messages.stored.offset_commit import OffsetCommitValue
from kgateway.security.permissions import Resource
from kgateway.transactions.markers import Markers
from kgateway.transactions.state import Place as TransactionPlace
from kgateway.wire.errors import ErrorCode, KafkaError

G = TypeVar("G", bound=Group)
Maker = Callable[[str, Write], Group]


class Groups:
    """
    The groups of a gateway, each found by its id. They are loaded when somebody first asks for any.
    """

    _log = Logger()

    def __init__(self, gateway: GatewayParts) -> None:
        self._gateway = gateway
        migration = self._migration = Migration(gateway, self.become)
        self._makers: dict[GroupType, Maker] = {
            GroupType.CLASSIC: migration.classic_group,
            GroupType.CONSUMER: migration.consumer_group,
        }
        self._shards: Shards[Shard] = Shards(
            gateway.broker, Resource.GROUP, lambda log, ended: Shard(log, self._make, gateway.clock, ended)
        )
        self._clearing = Clearing(gateway, self._shards.known)
        gateway.service(Markers).listen(self._ended)
        self._shards.known()

    def get(self, group_id: str) -> Held:
        """
        The group and its offsets; GROUP_ID_NOT_FOUND where there is none.
        """
        held = self._shards.having(group_id).groups.get(group_id)
        if held is None:
            raise _not_found(group_id)
        return held

    def find(self, group_id: str) -> Group:
        """
        The group.
        """
        return self.get(group_id).group

    def offsets(self, group_id: str) -> GroupOffsets:
        """
        The offsets of the group.
        """
        return self.get(group_id).offsets

    def simple(self, group_id: str) -> Held:
        """
        The group; where there is none, a new one for a consumer that commits and never joins.
        """
        shard = self._shards.having(group_id)
        return shard.groups.get(group_id) or shard.add(group_id, GroupType.CLASSIC)

    def classic(self, group_id: str, create: bool) -> ClassicGroup:
        """
        The group, if its members speak the classic protocol. Where it has none, or is not there, and a member may begin
        it: what it will be once it has written anything.
        """
        held = self._shards.having(group_id).groups.get(group_id)
        if held and isinstance(held.group, ClassicGroup):
            return held.group
        if held and create and not held.group.is_empty:
            reason = f"the members of {group_id} do not speak the classic protocol"
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, reason)
        return self._beginning(group_id, held, create, self._migration.classic_group)

    def consumer(self, group_id: str, create: bool) -> ConsumerGroup:
        """
        The same for the consumer protocol; also what a classic group with members then will be.
        """
        held = self._shards.having(group_id).groups.get(group_id)
        if held and isinstance(held.group, ConsumerGroup):
            return held.group
        if held and create and isinstance(held.group, ClassicGroup) and not held.group.is_empty:
            return self._migration.upgraded(held.group, self.write(group_id))
        return self._beginning(group_id, held, create, self._migration.consumer_group)

    def become(self, group: Group) -> None:
        """
        Let this be the group of its id, which has changed its kind and written so; the offsets stay.
        """
        try:
            self.get(group.group_id).group = group
        except KafkaError:  # it is not here any more
            group.stop()

    def write(self, group_id: str) -> Write:
        """
        What the group writes with.
        """
        return self._shards.having(group_id).write

    def commit_in_transaction(
        self, held: Held, producer: ProducerEpoch, commits: Iterable[tuple[Place, OffsetCommitValue]]
    ) -> Deferred[None] | None:
        """
        Keep these offsets of a group, which count when the producer's transaction is committed.
        """
        return self._shards.having(held.offsets.group_id).commit_in_transaction(held, producer, commits)

    def _ended(self, place: TransactionPlace, producer_id: int, commits: bool) -> None:
        """
        A transaction has its marker in a partition. Whoever has not asked for the groups there finds it in the log.
        """
        shard = self._shards.at(place.partition) if place.topic == STATE_TOPICS[Resource.GROUP] else None
        if shard:
            shard.end_transaction(producer_id, commits)

    def delete(self, group_id: str) -> Deferred[None] | None:
        """
        Forget the group and its offsets; NON_EMPTY_GROUP as long as it has members.
        """
        shard, held = self._shards.having(group_id), self.get(group_id)
        if not held.group.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"group {group_id} is {held.group.state}")
        safe = shard.delete(held)
        self._log.info("group {group}: deleted by request", group=group_id)
        return safe

    async def all(self) -> list[Group]:
        """
        All groups, once they are loaded.
        """
        found = list[Group]()
        for shard in self._shards.all():
            await shard.when_loaded()
            found += [held.group for held in shard.groups.values()]
        return found

    def stop(self) -> None:
        """
        Coordinate nothing any more.
        """
        self._clearing.stop()
        self._shards.stop()

    def coordinator(self, group_id: str) -> Node | None:
        """
        Which other node has the group; none where this one has it, and then it is being loaded if it was not before.
        """
        return self._shards.coordinator(group_id)

    def loading(self, group_ids: Iterable[str]) -> list[Deferred[None]]:
        """
        What fires when all of these groups can be asked for, or never will; nothing where they can be now.
        """
        return self._shards.loading(group_ids)

    def _make(self, kind: GroupType, group_id: str, write: Write) -> Group:
        return self._makers[kind](group_id, write)

    def _beginning(self, group_id: str, held: Held | None, create: bool, make: Callable[[str, Write], G]) -> G:
        """
        A group that is to be the one of this id, in the place of the empty one that may be there.
        """
        if not create:
            raise _not_found(group_id)
        shard = self._shards.having(group_id)
        last_rows = tombstones(held.group) if held else []
        beginning = TakingOver[G](last_rows, shard.write, partial(self._begun, shard), self._not_begun)
        group = beginning.group = make(group_id, beginning.write)
        return group

    def _begun(self, shard: Shard, group: Group) -> None:
        if group.group_id in shard.groups:
            kind = group.type.value
            self._log.info("group {group}: is a {kind} group now, for it was empty", group=group.group_id, kind=kind)
        shard.put(group)

    def _not_begun(self, group: Group, failure: Failure) -> None:
        self._log.warn("group {group}: did not begin for good: {error}", group=group.group_id, error=failure.value)


def _not_found(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no such group as {group_id}")
