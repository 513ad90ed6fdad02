"""
A group whose members send heartbeats, and get their assignments in the answers (KIP-848).

A heartbeat has three steps: the member says what has changed, the group makes a new plan if it must, and the member is
reconciled with its target. What the steps change is one ChangeSet, written as one batch before it is answered.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from kgateway.cluster.view import ClusterView
from kgateway.coordination.topic_patterns import MayDescribe
from kgateway.groups.assignors.assignment import Assignment, Owned, assignment_of
from kgateway.groups.consumer.config import GroupConfig
from kgateway.groups.consumer.journal import ChangeSet
from kgateway.groups.consumer.member import AWAY, JOINING, LEAVING, Profile
from kgateway.groups.consumer.member_check import (
    check_commit,
    check_epoch,
    check_fetch,
    check_knows_epochs,
    check_room,
    find_member,
    replace_static_member,
)
from kgateway.groups.consumer.membership import Membership
from kgateway.groups.consumer.reconciliation import assume_unwritten_steps
from kgateway.groups.consumer.state import ConsumerGroupState
from kgateway.groups.group import GroupType, PartitionCheck
from kgateway.groups.records import Row, Write
from kgateway.messages.consumer_group_describe import Assignment as DescribedAssignment
from kgateway.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from kgateway.messages.consumer_group_describe import TopicPartitions as DescribedPartitions
from kgateway.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

GroupDescription = ConsumerGroupDescribeResponse.Group
_Member = GroupDescription.Member
_CLASSIC, _CONSUMER = 0, 1
Answer = ConsumerGroupHeartbeatResponse
_Assignment = ConsumerGroupHeartbeatResponse.Assignment

_UNCHANGED = -1  # a rebalance timeout that is not sent


class Client(NamedTuple):
    """
    The sender of a heartbeat, and which topics it may describe.
    """

    client_id: str
    host: str
    may_describe: MayDescribe


class ConsumerGroup:
    """
    A group of the consumer protocol. Members of the classic protocol may be in it too (classic_members.py).
    """

    type = GroupType.CONSUMER
    protocol_type = "consumer"
    _log = Logger()

    def __init__(
        self,
        group_id: str,
        *,
        clock: IReactorTime,
        now_ms: Callable[[], int],
        write: Write,
        view: Callable[[], ClusterView],
        config: Callable[[], GroupConfig],
        downgrade: "Callable[[ConsumerGroup, Collection[str]], bool]" = lambda group, without: False,
    ) -> None:
        """
        `downgrade` is called if all members but these speak the classic protocol. It returns whether it has replaced
        this group by a classic one.
        """
        self.group_id = group_id
        self._state = ConsumerGroupState(group_id)
        self.membership = Membership(
            self._state,
            clock=clock,
            now_ms=now_ms,
            write=write,
            view=view,
            config=config,
            downgrade=partial(downgrade, self),
        )

    @property
    def config(self) -> GroupConfig:
        """
        The config of the group; a change holds from the next heartbeat on.
        """
        return self.membership.config

    @property
    def state(self) -> str:
        state = self._state
        if not state.profiles:
            return "Empty"
        epoch = state.target_metadata_now.epoch
        if state.epoch_now.number > epoch:
            return "Assigning"
        reached = all(state.progress_of(member_id).reached(epoch) for member_id in state.profiles)
        return "Stable" if reached else "Reconciling"

    @property
    def is_empty(self) -> bool:
        return not self._state.profiles

    @property
    def empty_since_ms(self) -> int | None:
        return self.membership.empty_since_ms if self.is_empty else None

    def reads(self, topic: str) -> bool:
        return self._state.reads(topic)

    def describe(self) -> GroupDescription:
        assignor = self.membership.planner.assignor(self.config)
        return describe(self._state, self.state, assignor, self.membership.view())

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest, client: Client) -> Answer | Deferred[Answer]:
        """
        A member is alive, joins or leaves. The request has been checked (member_check.py).
        """
        if request.member_epoch in (LEAVING, AWAY):
            return self._leave(request)
        return self.membership.make(partial(self._heartbeat, request, client))

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool, knows_epochs: bool = True
    ) -> PartitionCheck | None:
        check = check_commit(self._state, member_id, instance_id, epoch, transactional=transactional)
        if not (transactional or knows_epochs):
            check_knows_epochs(self._state, member_id)
        return check

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        check_fetch(self._state, member_id, epoch)

    def replay(self, row: Row) -> None:
        self._state.replay(row)

    def loaded(self) -> None:
        self._state.sweep()
        assume_unwritten_steps(self._state)
        self.membership.timers.begin(self.config.session_timeout_ms)

    def rows(self) -> Iterator[Row]:
        return self._state.rows()

    def stop(self) -> None:
        self.membership.stop(KafkaError(ErrorCode.NOT_COORDINATOR, f"{self.group_id} is coordinated elsewhere now"))

    def _heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, changes: ChangeSet
    ) -> tuple[Answer, Callable[[], None]]:
        owned = None if request.topic_partitions is None else assignment_of(request.topic_partitions)
        config = self.membership.config
        member_id, replaced = self._admit(request, owned, changes, config)
        before = self._state.progress_of(member_id)
        profile = _profile(self._state.profiles.get(member_id), request, client)
        resubscribed = self.membership.update_profile(changes, member_id, profile, config, client.may_describe)
        self.membership.reconcile(changes, member_id, owned, resubscribed=resubscribed)
        progress = self._state.progress_of(member_id)
        answer = _answer(member_id, progress.epoch, config.heartbeat_interval_ms)
        if _has_full_state(request) or before.assigned != progress.assigned:
            answer.assignment = _assignment_of(progress.assigned)
        renewal = partial(self._renew_session, member_id, config, before is not progress)
        if request.member_epoch == JOINING:
            return answer, partial(self._after_join, member_id, replaced, renewal)
        return answer, renewal

    def _admit(
        self, request: ConsumerGroupHeartbeatRequest, owned: Assignment | None, changes: ChangeSet, config: GroupConfig
    ) -> tuple[str, str | None]:
        state = self._state
        check_room(state, request.member_id, config.max_size)
        if request.member_epoch == JOINING:
            member_id = request.member_id or str(Uuid.random())
            return member_id, replace_static_member(changes, member_id, request.instance_id, classic=False)
        member_id = find_member(state, request.member_id, request.instance_id)
        progress, epoch = state.progress_of(member_id), request.member_epoch
        check_epoch(progress, epoch, owned)
        if progress.oldest_epoch is not None and progress.may_be_in(epoch):
            changes.set_unwritten(member_id, progress.confirmed_in(epoch))
        return member_id, None

    def _after_join(self, member_id: str, replaced: str | None, renewal: Callable[[], None]) -> None:
        self.membership.member_joined(member_id, replaced, "consumer")
        renewal()

    def _renew_session(self, member_id: str, config: GroupConfig, moved: bool) -> None:
        """
        After a heartbeat: the member has until the next one, and to revoke what it must.
        """
        timers = self.membership.timers
        timers.renew_session(member_id, config.session_timeout_ms)
        if moved:
            timers.update_revocation(member_id)

    def _leave(self, request: ConsumerGroupHeartbeatRequest) -> Answer | Deferred[Answer]:
        member_id = find_member(self._state, request.member_id, request.instance_id)
        answer = _answer(member_id, request.member_epoch, 0)
        if request.member_epoch == AWAY:
            return self.membership.make(partial(self._leave_for_a_while, member_id, answer))
        self._log.info("group {group}: member {member} left", group=self.group_id, member=member_id)
        return self.membership.remove([member_id], answer)

    def _leave_for_a_while(
        self, member_id: str, answer: Answer, changes: ChangeSet
    ) -> tuple[Answer, Callable[[], None]]:
        """
        A static member leaves and keeps its place, until its session expires.
        """
        self._log.info("group {group}: static member {member} is away", group=self.group_id, member=member_id)
        changes.set_progress(member_id, self._state.progress_of(member_id).away())
        return answer, partial(self.membership.timers.end_revocation, member_id)


def _answer(member_id: str, epoch: int, heartbeat_interval_ms: int) -> Answer:
    return Answer(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        member_id=member_id,
        member_epoch=epoch,
        heartbeat_interval_ms=heartbeat_interval_ms,
        assignment=None,
    )


def _profile(before: Profile | None, request: ConsumerGroupHeartbeatRequest, client: Client) -> Profile:
    """
    The member's profile. What the heartbeat leaves out is as before.
    """
    if before and before.classic is None and _has_no_changes(request) and before.is_of(client.client_id, client.host):
        return before
    profile = before or Profile()
    names, pattern = request.subscribed_topic_names, request.subscribed_topic_regex
    silent = request.rebalance_timeout_ms == _UNCHANGED
    return replace(
        profile,
        instance_id=profile.instance_id if request.instance_id is None else request.instance_id,
        rack_id=profile.rack_id if request.rack_id is None else request.rack_id,
        client_id=client.client_id,
        client_host=client.host,
        topic_names=profile.topic_names if names is None else frozenset(names),
        pattern=profile.pattern if pattern is None else pattern,
        rebalance_timeout_ms=profile.rebalance_timeout_ms if silent else request.rebalance_timeout_ms,
        assignor=profile.assignor if request.server_assignor is None else request.server_assignor,
        classic=None,
    )


def _has_no_changes(request: ConsumerGroupHeartbeatRequest) -> bool:
    return (
        request.instance_id is None
        and request.rack_id is None
        and request.rebalance_timeout_ms == _UNCHANGED
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.server_assignor is None
    )


def _has_full_state(request: ConsumerGroupHeartbeatRequest) -> bool:
    """
    Whether the heartbeat has the member's full state, as when it joins and after an error.
    """
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != _UNCHANGED and subscribes and request.topic_partitions is not None


def _assignment_of(assigned: Owned) -> _Assignment:
    topics = [TopicPartitions(topic_id=topic_id, partitions=sorted(found)) for topic_id, found in assigned.items()]
    return _Assignment(topic_partitions=topics)


def describe(state: ConsumerGroupState, group_state: str, assignor: str, view: ClusterView) -> GroupDescription:
    return GroupDescription(
        error_code=ErrorCode.NONE,
        group_id=state.group_id,
        group_state=group_state,
        group_epoch=state.epoch_now.number,
        assignment_epoch=state.target_metadata_now.epoch,
        assignor_name=assignor,
        members=[_described_member(state, member_id, view) for member_id in state.profiles],
    )


def _described_member(state: ConsumerGroupState, member_id: str, view: ClusterView) -> _Member:
    profile, progress = state.profiles[member_id], state.progress_of(member_id)
    return _Member(
        member_id=member_id,
        instance_id=profile.instance_id,
        rack_id=profile.rack_id,
        member_epoch=progress.epoch,
        client_id=profile.client_id,
        client_host=profile.client_host,
        subscribed_topic_names=sorted(profile.topic_names),
        subscribed_topic_regex=profile.pattern,
        assignment=_described_assignment(progress.owned, view),
        target_assignment=_described_assignment(state.target_of(member_id), view),
        member_type=_CLASSIC if profile.classic else _CONSUMER,
    )


def _described_assignment(partitions: Assignment, view: ClusterView) -> DescribedAssignment:
    topics = [
        (view.topics_by_id[topic_id], indexes)
        for topic_id, indexes in partitions.items()
        if topic_id in view.topics_by_id
    ]
    named = [
        DescribedPartitions(topic_id=topic.id, topic_name=topic.name, partitions=sorted(found))
        for topic, found in topics
    ]
    return DescribedAssignment(topic_partitions=named)
