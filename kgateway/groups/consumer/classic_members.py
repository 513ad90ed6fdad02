"""
Members of the classic protocol in a group of the consumer protocol: they join, sync, send heartbeats and leave as ever,
and are reconciled with their targets as the others are.

Their generation is their member epoch. A consumer group waits for nobody, so it has no barrier: a join is answered at
once, and a member that has to revoke partitions learns from its next heartbeat that it has to join again.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.cluster.view import ClusterView
from kgateway.config.settings import Settings
from kgateway.groups.assignors.assignment import Assignment, Owned
from kgateway.groups.classic.requests import (
    JoinRequest,
    JoinResult,
    LeavingMember,
    MemberIdRequired,
    SyncRequest,
    SyncResult,
)
from kgateway.groups.consumer.group import ConsumerGroup
from kgateway.groups.consumer.journal import ChangeSet
from kgateway.groups.consumer.member import Classic, ClassicProtocol, MemberState, Profile
from kgateway.groups.consumer.member_check import check_room, find_member, replace_static_member
from kgateway.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kgateway.wire.codec import decoder, encode
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed
from kgateway.wire.schema import Message
from kgateway.wire.uuids import Uuid

M = TypeVar("M", bound=Message)
_VERSION_BYTES = 2
_NEWEST = 3


_CONSUMER = "consumer"
_NO_LEADER = ""  # the group assigns, so nobody leads


def version_of(data: bytes) -> int:
    """
    The version that the bytes begin with. One that is newer than we know begins with the fields of the newest that we
    know.
    """
    version = int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
    if len(data) < _VERSION_BYTES or version < 0:
        raise _unreadable(f"it begins with {bytes(data[:_VERSION_BYTES])!r}, which is not a version")
    return min(version, _NEWEST)


def subscription_from(data: bytes) -> ConsumerProtocolSubscription:
    return _read(ConsumerProtocolSubscription, data)


def owned_by(subscription: ConsumerProtocolSubscription, view: ClusterView) -> Assignment:
    """
    The partitions that the member reports as its own. Eager members and old ones revoke all before they join.
    """
    topics = view.topics
    return {
        topics[owned.topic].id: frozenset(owned.partitions)
        for owned in subscription.owned_partitions
        if owned.topic in topics and owned.partitions
    }


def assignment_from(data: bytes, view: ClusterView) -> Assignment:
    """
    The assignment in these bytes. A KafkaError if they cannot be read, or have data for the members' own assignor,
    which would be lost.
    """
    if not data:
        return {}
    read = _read(ConsumerProtocolAssignment, data)
    if read.user_data:
        raise _unreadable("it has data of a client-side assignor")
    topics = view.topics
    return {
        topics[given.topic].id: frozenset(given.partitions)
        for given in read.assigned_partitions
        if given.topic in topics and given.partitions
    }


def assignment_bytes(assigned: Owned | Assignment, view: ClusterView, version: int) -> bytes:
    topics = view.topics_by_id
    each = ConsumerProtocolAssignment.AssignedPartition
    given = [
        each(topic=topics[topic_id].name, partitions=sorted(assigned[topic_id]))
        for topic_id in sorted(assigned)
        if topic_id in topics
    ]
    encoded = encode(ConsumerProtocolAssignment(assigned_partitions=given, user_data=None), version)
    return version.to_bytes(_VERSION_BYTES, "big") + encoded


def _read(message: type[M], data: bytes) -> M:
    try:
        read, _ = decoder(message, version_of(data))(data, _VERSION_BYTES)
    except Malformed as error:
        raise _unreadable(str(error)) from None
    return read


def _unreadable(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the metadata of a consumer cannot be read: {reason}")


class ClassicMembers:
    """
    The classic protocol, spoken with a consumer group.
    """

    _log = Logger()

    def __init__(self, group: ConsumerGroup, settings: Settings) -> None:
        self._group = group
        self._membership = group.membership
        self._state = group.membership.state
        self._settings = settings

    def join(self, request: JoinRequest) -> JoinResult | Deferred[JoinResult]:
        request.check_session(self._settings)
        check_room(self._state, request.member_id, self._group.config.max_size)
        self._check_protocols(request)
        subscription = subscription_from(request.protocols.metadata(next(iter(request.protocols))))
        if not request.member_id and request.instance_id is None and request.takes_member_id:
            raise MemberIdRequired(str(Uuid.random()))
        return self._membership.make(partial(self._join, request, subscription))

    def sync(self, request: SyncRequest) -> SyncResult | Deferred[SyncResult]:
        member_id, classic = self._current(request.member_id, request.instance_id, request.generation)
        protocol = classic.protocols[0]
        if request.protocol_type not in (None, _CONSUMER) or request.protocol not in (None, protocol.name):
            reason = (
                f"it requests {(request.protocol_type, request.protocol)}, but joined with {(_CONSUMER, protocol.name)}"
            )
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, reason)
        self._check_not_behind(member_id)
        progress = self._state.progress_of(member_id)
        assignment = assignment_bytes(progress.assigned, self._membership.view(), version_of(protocol.metadata))
        synced = SyncResult(request.protocol_type or _CONSUMER, request.protocol or protocol.name, assignment)
        return self._membership.make(lambda changes: (synced, partial(self._after_sync, member_id)))

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> None:
        self._current(member_id, instance_id, generation)
        self._membership.timers.renew_session(member_id, self._group.config.session_timeout_ms)
        planned = self._membership.make(self._membership.plan)
        if planned is not None:
            planned.addErrback(lambda _: None)  # it is undone and logged, and planned again with the next heartbeat
        progress = self._state.progress_of(member_id)
        behind = progress.epoch < self._state.target_metadata_now.epoch
        can_take = progress.state is MemberState.UNRELEASED_PARTITIONS and not self._waits_for_partitions(member_id)
        if behind or can_take or progress.state is MemberState.UNREVOKED_PARTITIONS:
            raise self._join_again(member_id)

    def leave(self, leavers: Sequence[LeavingMember]) -> list[ErrorCode]:
        gone: dict[str, None] = {}
        outcomes = []
        for leaver in leavers:
            try:
                member_id = self._leaver(leaver)
            except KafkaError as error:
                outcomes.append(error.code)
                continue
            gone[member_id] = None
            outcomes.append(ErrorCode.NONE)
            reason = leaver.reason or "no reason given"
            self._log.info(
                "group {group}: member {member} left ({reason})",
                group=self._group.group_id,
                member=member_id,
                reason=reason,
            )
        if gone:
            written = self._membership.remove(list(gone), None)
            if written is not None:
                written.addErrback(lambda _: None)  # it is undone and logged, and they have sessions again
        return outcomes

    def _join(
        self, request: JoinRequest, subscription: ConsumerProtocolSubscription, changes: ChangeSet
    ) -> tuple[JoinResult, "partial[None]"]:
        member_id, replaced = self._admit(request, changes)
        profile = _profile(self._state.profiles.get(member_id, Profile()), request, subscription)
        resubscribed = self._membership.update_profile(changes, member_id, profile, self._membership.config, None)
        owned: Assignment = owned_by(subscription, self._membership.view())
        self._membership.reconcile(changes, member_id, owned, resubscribed=resubscribed)
        joined = JoinResult(
            member_id=member_id,
            generation=self._state.progress_of(member_id).epoch,
            protocol_type=_CONSUMER,
            protocol=next(iter(request.protocols)),
            leader=_NO_LEADER,
        )
        return joined, partial(self._after_join, member_id, replaced)

    def _admit(self, request: JoinRequest, changes: ChangeSet) -> tuple[str, str | None]:
        if request.member_id and request.instance_id is not None:
            return find_member(self._state, request.member_id, request.instance_id), None
        member_id = request.member_id or str(Uuid.random())
        return member_id, replace_static_member(changes, member_id, request.instance_id, classic=True)

    def _after_join(self, member_id: str, replaced: str | None) -> None:
        membership = self._membership
        membership.member_joined(member_id, replaced, "classic")
        membership.timers.renew_session(member_id, self._group.config.session_timeout_ms)
        membership.timers.update_revocation(member_id)
        membership.timers.expect_sync(member_id)
        if replaced:
            membership.downgrade_if_due()

    def _after_sync(self, member_id: str) -> None:
        self._membership.timers.end_sync(member_id)
        self._membership.timers.renew_session(member_id, self._group.config.session_timeout_ms)

    def _check_protocols(self, request: JoinRequest) -> None:
        """
        Refuse a member that is not a consumer, or has no protocol in common with the other classic members.
        """
        state = self._state
        if self._group.config.migration_policy == "disabled":
            reason = f"{self._group.group_id} accepts no members of the classic protocol: migration is disabled"
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, reason)
        spoken = state.classic_protocols
        common = any(spoken[name] == state.classic_count for name in request.protocols)
        if request.protocol_type != _CONSUMER or not common:
            reason = f"it supports {request.protocol_type} {list(request.protocols)}, but the others {dict(spoken)}"
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, reason)

    def _current(self, member_id: str, instance_id: str | None, generation: int) -> tuple[str, Classic]:
        member_id = find_member(self._state, member_id, instance_id)
        classic = self._state.profiles[member_id].classic
        if classic is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} does not speak the classic protocol")
        epoch = self._state.progress_of(member_id).epoch
        if generation != epoch:
            raise KafkaError(
                ErrorCode.ILLEGAL_GENERATION, f"{member_id} is in generation {generation}, but should be in {epoch}"
            )
        return member_id, classic

    def _check_not_behind(self, member_id: str) -> None:
        """
        Refuse a member that is behind its target: it has to join again. A member that revokes partitions does that
        first, and learns from its heartbeat that it has to join again.
        """
        progress = self._state.progress_of(member_id)
        behind = progress.epoch < self._state.target_metadata_now.epoch
        if behind and progress.state is not MemberState.UNREVOKED_PARTITIONS:
            raise self._join_again(member_id)

    def _join_again(self, member_id: str) -> KafkaError:
        self._membership.timers.expect_join(member_id)
        return KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"{member_id} must join again")

    def _waits_for_partitions(self, member_id: str) -> bool:
        state = self._state
        is_free, assigned = state.is_free_for(member_id), state.progress_of(member_id).assigned
        return any(
            index not in assigned.get(topic_id, {}) and not is_free(topic_id, index)
            for topic_id, partitions in state.target_of(member_id).items()
            for index in partitions
        )

    def _leaver(self, leaver: LeavingMember) -> str:
        holder = None if leaver.member_id else self._state.static.get(leaver.instance_id or "")
        return holder or find_member(self._state, leaver.member_id, leaver.instance_id)


def _profile(before: Profile, request: JoinRequest, subscription: ConsumerProtocolSubscription) -> Profile:
    protocols = tuple(ClassicProtocol(name, bytes(request.protocols.metadata(name))) for name in request.protocols)
    return replace(
        before,
        instance_id=before.instance_id if request.instance_id is None else request.instance_id,
        rack_id=before.rack_id if subscription.rack_id is None else subscription.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topic_names=frozenset(subscription.topics),
        pattern="",
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        classic=Classic(request.session_timeout_ms, protocols),
    )
