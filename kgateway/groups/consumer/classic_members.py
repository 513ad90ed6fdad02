"""
Members of the classic protocol in a group of the consumer protocol: they join, sync, send heartbeats and leave as ever,
and are moved to their targets as the others are.

What is a generation to them is their member epoch. A group that waits for nobody has no barrier: who joins is answered
at once, and who has to let partitions go is told to join again by its next heartbeat.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.config.settings import Settings
from kgateway.groups.classic.exchange import Join, Joined, Leave, MemberIdRequired, Sync, Synced
from kgateway.groups.consumer.admission import check_room, known, take_place
from kgateway.groups.consumer.assignment import Assignment
from kgateway.groups.consumer.classic_bytes import assignment_bytes, owned_by, subscription_from, version_of
from kgateway.groups.consumer.draft import Draft
from kgateway.groups.consumer.group import ConsumerGroup
from kgateway.groups.consumer.member import Classic, ClassicProtocol, MemberState, Profile
from kgateway.messages.consumer_protocol import ConsumerProtocolSubscription
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

_CONSUMER = "consumer"
_NO_LEADER = ""  # the group assigns, so nobody leads


class ClassicMembers:
    """
    The classic protocol, spoken with a consumer group.
    """

    _log = Logger()

    def __init__(self, group: ConsumerGroup, settings: Settings) -> None:
        self._group = group
        self._changes = group.changes
        self._state = group.changes.state
        self._settings = settings

    def join(self, asked: Join) -> Joined | Deferred[Joined]:
        """
        A member wants to be in the group, or has been told to join again.
        """
        asked.check_session(self._settings)
        check_room(self._state, asked.member_id, self._group.config.max_size)
        self._check_protocols(asked)
        subscription = subscription_from(asked.protocols.metadata(next(iter(asked.protocols))))
        if not asked.member_id and asked.instance_id is None and asked.takes_member_id:
            raise MemberIdRequired(str(Uuid.random()))
        return self._changes.make(partial(self._join, asked, subscription))

    def sync(self, asked: Sync) -> Synced | Deferred[Synced]:
        """
        A member wants to know what it is to read.
        """
        member_id, classic = self._current(asked.member_id, asked.instance_id, asked.generation)
        protocol = classic.protocols[0]
        if asked.protocol_type not in (None, _CONSUMER) or asked.protocol not in (None, protocol.name):
            reason = f"it speaks {(asked.protocol_type, asked.protocol)}, and said {(_CONSUMER, protocol.name)}"
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, reason)
        self._check_settled(member_id)
        progress = self._state.progress_of(member_id)
        said = assignment_bytes(progress.assigned, self._changes.view(), version_of(protocol.metadata))
        synced = Synced(asked.protocol_type or _CONSUMER, asked.protocol or protocol.name, said)
        return self._changes.make(lambda draft: (synced, partial(self._has_synced, member_id)))

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> None:
        """
        A member is alive; refused where it is to join again.
        """
        self._current(member_id, instance_id, generation)
        self._changes.lifetimes.has_lived(member_id, self._group.config.session_timeout_ms)
        planned = self._changes.make(self._changes.plan)
        if planned is not None:
            planned.addErrback(lambda _: None)  # it is undone and logged, and planned again with the next heartbeat
        progress = self._state.progress_of(member_id)
        behind = progress.epoch < self._state.targets_now.epoch
        can_take = progress.state is MemberState.UNRELEASED_PARTITIONS and not self._waits(member_id)
        if behind or can_take or progress.state is MemberState.UNREVOKED_PARTITIONS:
            raise self._join_again(member_id)

    def leave(self, leavers: Sequence[Leave]) -> list[ErrorCode]:
        """
        Members go; what became of each.
        """
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
            written = self._changes.remove(list(gone), None)
            if written is not None:
                written.addErrback(lambda _: None)  # it is undone and logged, and they have sessions again
        return outcomes

    def _join(
        self, asked: Join, subscription: ConsumerProtocolSubscription, draft: Draft
    ) -> tuple[Joined, "partial[None]"]:
        member_id, replaced = self._admit(asked, draft)
        profile = _said(self._state.profiles.get(member_id, Profile()), asked, subscription)
        resubscribed = self._changes.say(draft, member_id, profile, None)
        owned: Assignment = owned_by(subscription, self._changes.view())
        self._changes.go_on(draft, member_id, owned, resubscribed=resubscribed)
        joined = Joined(
            member_id=member_id,
            generation=self._state.progress_of(member_id).epoch,
            protocol_type=_CONSUMER,
            protocol=next(iter(asked.protocols)),
            leader=_NO_LEADER,
        )
        return joined, partial(self._has_joined, member_id, replaced)

    def _admit(self, asked: Join, draft: Draft) -> tuple[str, str | None]:
        """
        The id of the member, and of the one whose place it takes.
        """
        if asked.member_id and asked.instance_id is not None:
            return known(self._state, asked.member_id, asked.instance_id), None
        member_id = asked.member_id or str(Uuid.random())
        return member_id, take_place(draft, member_id, asked.instance_id, classic=True)

    def _has_joined(self, member_id: str, replaced: str | None) -> None:
        changes = self._changes
        changes.note_join(member_id, replaced, "classic")
        changes.lifetimes.has_lived(member_id, self._group.config.session_timeout_ms)
        changes.lifetimes.has_moved(member_id)
        changes.lifetimes.must_sync(member_id)
        if replaced:
            changes.downgrade_if_due()

    def _has_synced(self, member_id: str) -> None:
        self._changes.lifetimes.has_synced(member_id)
        self._changes.lifetimes.has_lived(member_id, self._group.config.session_timeout_ms)

    def _check_protocols(self, asked: Join) -> None:
        """
        It must be a consumer, and speak something that the other classic members do.
        """
        state = self._state
        if self._group.config.migration_policy == "disabled":
            reason = f"{self._group.group_id} takes no members of the classic protocol: migration is disabled"
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, reason)
        spoken = state.classic_protocols
        common = any(spoken[name] == state.classic_count for name in asked.protocols)
        if asked.protocol_type != _CONSUMER or not common:
            reason = f"it speaks {asked.protocol_type} {list(asked.protocols)}, and the others {dict(spoken)}"
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, reason)

    def _current(self, member_id: str, instance_id: str | None, generation: int) -> tuple[str, Classic]:
        member_id = known(self._state, member_id, instance_id)
        classic = self._state.profiles[member_id].classic
        if classic is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} does not speak the classic protocol")
        epoch = self._state.progress_of(member_id).epoch
        if generation != epoch:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"{member_id} is in {generation}, and should be in {epoch}")
        return member_id, classic

    def _check_settled(self, member_id: str) -> None:
        """
        Who lets partitions go does that first; then its heartbeat tells it to join again.
        """
        progress = self._state.progress_of(member_id)
        behind = progress.epoch < self._state.targets_now.epoch
        if behind and progress.state is not MemberState.UNREVOKED_PARTITIONS:
            raise self._join_again(member_id)

    def _join_again(self, member_id: str) -> KafkaError:
        self._changes.lifetimes.must_join(member_id)
        return KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"{member_id} is to join again")

    def _waits(self, member_id: str) -> bool:
        """
        Whether something that it is to get is not free yet.
        """
        state = self._state
        is_free, assigned = state.is_free_for(member_id), state.progress_of(member_id).assigned
        return any(
            index not in assigned.get(topic_id, {}) and not is_free(topic_id, index)
            for topic_id, partitions in state.target_of(member_id).items()
            for index in partitions
        )

    def _leaver(self, leaver: Leave) -> str:
        """
        An administrator names a static member by its instance id alone.
        """
        holder = None if leaver.member_id else self._state.static.get(leaver.instance_id or "")
        return holder or known(self._state, leaver.member_id, leaver.instance_id)


def _said(before: Profile, asked: Join, subscription: ConsumerProtocolSubscription) -> Profile:
    """
    What a classic member says of itself.
    """
    protocols = tuple(ClassicProtocol(name, bytes(asked.protocols.metadata(name))) for name in asked.protocols)
    return replace(
        before,
        instance_id=before.instance_id if asked.instance_id is None else asked.instance_id,
        rack_id=before.rack_id if subscription.rack_id is None else subscription.rack_id,
        client_id=asked.client_id,
        client_host=asked.client_host,
        topic_names=frozenset(subscription.topics),
        pattern="",
        rebalance_timeout_ms=asked.rebalance_timeout_ms,
        classic=Classic(asked.session_timeout_ms, protocols),
    )
