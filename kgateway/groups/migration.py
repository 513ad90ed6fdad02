"""
Conversion of groups from one protocol to the other while they have members.

A classic group becomes one of the consumer protocol when its first member of that protocol joins. The conversion is the
first thing that the new group writes, in one batch with the join, so there is no moment in between. It becomes a
classic group again when the last such member leaves.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.cluster.view import ClusterView
from kgateway.context import GatewayParts
from kgateway.groups.assignors.assignment import Assignment
from kgateway.groups.classic.group import ClassicGroup
from kgateway.groups.classic.members import Member
from kgateway.groups.classic.requests import Protocols
from kgateway.groups.consumer import records
from kgateway.groups.consumer.classic_members import assignment_bytes, assignment_from, subscription_from, version_of
from kgateway.groups.consumer.config import CurrentGroupConfig
from kgateway.groups.consumer.group import ConsumerGroup
from kgateway.groups.consumer.member import Classic, ClassicProtocol, Profile, Progress
from kgateway.groups.consumer.records import Epoch, TargetMetadata
from kgateway.groups.consumer.state import ConsumerGroupState
from kgateway.groups.group import Group
from kgateway.groups.records import Row, Write
from kgateway.groups.shard import FirstWrite
from kgateway.log_messages import KEEPS_CLASSIC, KEEPS_CONSUMER
from kgateway.messages.stored.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kgateway.plurals import counted
from kgateway.wire.errors import ErrorCode, KafkaError

ReplaceGroup = Callable[[Group], None]  # makes it the group of its id

_CONSUMER = "consumer"
_UPGRADING = ("bidirectional", "upgrade")
_DOWNGRADING = ("bidirectional", "downgrade")


class Migration:
    _log = Logger()

    def __init__(self, gateway: GatewayParts, replace_group: ReplaceGroup) -> None:
        self._gateway = gateway
        self._replace = replace_group

    def consumer_group(self, group_id: str, write: Write) -> ConsumerGroup:
        gateway = self._gateway
        return ConsumerGroup(
            group_id,
            clock=gateway.clock,
            now_ms=gateway.now_ms,
            write=write,
            view=gateway.broker.view,
            config=CurrentGroupConfig(group_id, gateway.settings, gateway.broker.view),
            downgrade=lambda group, without: self._downgrade(group, without, write),
        )

    def classic_group(self, group_id: str, write: Write) -> ClassicGroup:
        gateway = self._gateway
        return ClassicGroup(
            group_id, settings=gateway.settings, clock=gateway.clock, now_ms=gateway.now_ms, write=write
        )

    def upgraded(self, classic: ClassicGroup, write: Write) -> ConsumerGroup:
        """
        The group that the classic group becomes when its first member of the consumer protocol joins: it replaces the
        classic one with its first write. GROUP_ID_NOT_FOUND if the conversion is not allowed.
        """
        group_id = classic.group_id
        try:
            self._check_upgrade(classic)
            rows = list(_consumer_rows(classic, self._gateway.broker.view()))
        except KafkaError as error:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"{group_id} stays classic: {error.message}") from None
        first_write = FirstWrite[ConsumerGroup](
            [*(Row(row.key, None) for row in classic.rows()), *rows],
            write,
            partial(self._became_consumer, classic),
            partial(self._stayed_classic, classic, write),
        )
        group = first_write.group = self.consumer_group(group_id, first_write.write)
        for row in rows:
            group.replay(row)
        return group

    def _check_upgrade(self, classic: ClassicGroup) -> None:
        settings = self._gateway.settings
        policy, max_size = settings.group_consumer_migration_policy, settings.group_consumer_max_size
        if policy not in _UPGRADING:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group.consumer.migration.policy is {policy}")
        if classic.protocol_type != _CONSUMER:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"its members are {classic.protocol_type!r}")
        if len(classic.members) > max_size:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"it has {counted(len(classic.members), 'member')}")

    def _became_consumer(self, classic: ClassicGroup, group: ConsumerGroup) -> None:
        classic.stop(ErrorCode.REBALANCE_IN_PROGRESS)
        self._replace(group)
        group.loaded()
        self._log.info("group {group}: converted to the consumer protocol", group=group.group_id)

    def _stayed_classic(self, classic: ClassicGroup, write: Write, group: ConsumerGroup, _: Failure) -> None:
        again = self.classic_group(classic.group_id, write)
        for row in classic.rows():
            again.replay(row)
        again.loaded()
        self._replace(again)
        group.stop()
        self._log.warn(KEEPS_CLASSIC, group=classic.group_id)

    def _downgrade(self, group: ConsumerGroup, without: Collection[str], write: Write) -> bool:
        """
        Convert the members but these to a classic group, if that is allowed.
        """
        state = group.membership.state
        left = [member_id for member_id in state.profiles if member_id not in without]
        if group.config.migration_policy not in _DOWNGRADING or len(left) > group.config.classic_max_size:
            self._log.info(
                "group {group}: the settings do not allow its conversion to the classic protocol", group=group.group_id
            )
            return False
        protocols = {member_id: _protocols(state.profiles[member_id]) for member_id in left}
        row = _classic_row(state, left, _common(protocols.values()), self._gateway)
        classic = self.classic_group(group.group_id, write)
        written = write([*state.tombstones(), row])
        classic.replay(row)
        classic.loaded()
        for member in classic.members:
            classic.members.change(member, protocols[member.id])  # the row has only the common one
        group.membership.timers.stop()
        self._replace(classic)
        self._log.info("group {group}: converted to the classic protocol", group=group.group_id)
        if written is not None:
            written.addErrback(self._stayed_consumer, classic, group)
        return True

    def _stayed_consumer(self, failure: Failure, classic: ClassicGroup, group: ConsumerGroup) -> None:
        classic.stop(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._replace(group)
        group.loaded()
        self._log.warn(
            KEEPS_CONSUMER,
            group=group.group_id,
            error=failure.value,
        )


def _consumer_rows(classic: ClassicGroup, view: ClusterView) -> Iterator[Row]:
    """
    The members with their assignments as targets. A member that was about to join again is asked to do so as soon as
    the new epoch begins.
    """
    group_id, generation = classic.group_id, classic.generation
    yield records.epoch_row(group_id, Epoch(generation, 0))
    yield records.target_metadata_row(group_id, TargetMetadata(generation, 0))
    for member in classic.members:
        assigned = assignment_from(bytes(member.assignment), view)
        yield records.profile_row(group_id, member.id, _profile(member, classic.protocol))
        yield records.target_row(group_id, member.id, assigned)
        yield records.progress_row(group_id, member.id, _progress(generation, assigned))


def _progress(generation: int, assigned: Assignment) -> Progress:
    owned = {topic_id: dict.fromkeys(partitions, generation) for topic_id, partitions in assigned.items()}
    return Progress(epoch=generation, previous_epoch=generation, assigned=owned)


def _profile(member: Member, protocol: str | None) -> Profile:
    protocols = tuple(ClassicProtocol(name, bytes(member.protocols.metadata(name))) for name in member.protocols)
    chosen = next((offered for offered in protocols if offered.name == protocol), protocols[0])
    subscription = subscription_from(chosen.metadata)
    return Profile(
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=Classic(member.session_timeout_ms, protocols),
    )


def _protocols(profile: Profile) -> Protocols:
    return Protocols(profile.classic.protocols if profile.classic else ())


def _common(spoken: Collection[Protocols]) -> str:
    """
    A protocol that all speak. A member without one could not have joined.
    """
    first, *others = spoken
    return next(name for name in first if all(name in set(other) for other in others))


def _classic_row(state: ConsumerGroupState, left: Sequence[str], protocol: str, gateway: GatewayParts) -> Row:
    """
    The members with what they own, because some may continue with that until they join again. The row has no leader, so
    that a gateway that has restarted meanwhile has them join again, too.
    """
    return Row(
        GroupMetadataKey(group=state.group_id),
        GroupMetadataValue(
            protocol_type=_CONSUMER,
            generation=state.epoch_now.number,
            protocol=protocol,
            leader=None,
            current_state_timestamp=gateway.now_ms(),
            members=[_classic_member(state, member_id, protocol, gateway.broker.view()) for member_id in left],
        ),
    )


def _classic_member(state: ConsumerGroupState, member_id: str, protocol: str, view: ClusterView) -> MemberMetadata:
    profile = state.profiles[member_id]
    metadata = _protocols(profile).metadata(protocol)
    progress = state.progress_of(member_id)
    return MemberMetadata(
        member_id=member_id,
        group_instance_id=profile.instance_id,
        client_id=profile.client_id,
        client_host=profile.client_host,
        rebalance_timeout=profile.rebalance_timeout_ms,
        session_timeout=profile.classic.session_timeout_ms if profile.classic else 0,
        subscription=metadata,
        assignment=assignment_bytes(progress.owned, view, version_of(metadata)),
    )
