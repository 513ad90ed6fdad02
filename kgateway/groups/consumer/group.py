"""
A group whose members send heartbeats, and are told in answer what to read (KIP-848).

A heartbeat is worked off in three steps: the member says what has changed of it, the group plans anew if it must, the
member goes on towards its target. What the steps change is one draft, written as one batch before it is answered.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from kgateway.cluster.view import ClusterView
from kgateway.coordinating.patterns import MayDescribe
from kgateway.groups.consumer.admission import check_epoch, check_room, known, take_place
from kgateway.groups.consumer.assignment import Assignment, Owned, assignment_of
from kgateway.groups.consumer.changes import Changes
from kgateway.groups.consumer.commits import check_commit, check_fetch, check_knows_epochs
from kgateway.groups.consumer.config import GroupConfig
from kgateway.groups.consumer.describing import Described, describe
from kgateway.groups.consumer.draft import Draft
from kgateway.groups.consumer.member import AWAY, JOINING, LEAVING, Profile
from kgateway.groups.consumer.state import GroupState
from kgateway.groups.consumer.unwritten import catch_up
from kgateway.groups.group import GroupType, PartitionCheck
from kgateway.groups.rows import Row, Write
from kgateway.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

Answer = ConsumerGroupHeartbeatResponse
_Assignment = ConsumerGroupHeartbeatResponse.Assignment

_AS_BEFORE = -1  # a rebalance timeout that is not said


class Client(NamedTuple):
    """
    Who sends a heartbeat, and which topics it may know of.
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
        `downgrade` is called where all members, without these, speak the classic protocol; true where it has let a
        classic group be in the place of this one.
        """
        self.group_id = group_id
        self._state = GroupState(group_id)
        self.changes = Changes(
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
        What is set for it, now; it holds from the next heartbeat on.
        """
        return self.changes.config

    @property
    def state(self) -> str:
        state = self._state
        if not state.profiles:
            return "Empty"
        epoch = state.targets_now.epoch
        if state.epoch_now.number > epoch:
            return "Assigning"
        reached = all(state.progress_of(member_id).reached(epoch) for member_id in state.profiles)
        return "Stable" if reached else "Reconciling"

    @property
    def is_empty(self) -> bool:
        return not self._state.profiles

    @property
    def empty_since_ms(self) -> int | None:
        return self.changes.empty_since_ms if self.is_empty else None

    def reads(self, topic: str) -> bool:
        return self._state.reads(topic)

    def describe(self) -> Described:
        """
        As ConsumerGroupDescribe tells it.
        """
        assignor = self.changes.planning.assignor(self.config)
        return describe(self._state, self.state, assignor, self.changes.view())

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest, client: Client) -> Answer | Deferred[Answer]:
        """
        A member lives, joins or leaves. The request has been checked (requests.py).
        """
        if request.member_epoch in (LEAVING, AWAY):
            return self._leave(request)
        return self.changes.make(partial(self._beat, request, client))

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
        catch_up(self._state)
        self.changes.lifetimes.begin(self.config.session_timeout_ms)

    def rows(self) -> Iterator[Row]:
        return self._state.rows()

    def stop(self) -> None:
        self.changes.stop(KafkaError(ErrorCode.NOT_COORDINATOR, f"{self.group_id} is coordinated elsewhere by now"))

    def _beat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, draft: Draft
    ) -> tuple[Answer, Callable[[], None]]:
        owned = None if request.topic_partitions is None else assignment_of(request.topic_partitions)
        config = self.config
        member_id, replaced = self._admit(request, owned, draft, config)
        before = self._state.progress_of(member_id)
        profile = _said(self._state.profiles.get(member_id), request, client)
        resubscribed = self.changes.say(draft, member_id, profile, client.may_describe)
        self.changes.go_on(draft, member_id, owned, resubscribed=resubscribed)
        progress = self._state.progress_of(member_id)
        answer = _answer(member_id, progress.epoch, config.heartbeat_interval_ms)
        if _says_all(request) or before.assigned != progress.assigned:
            answer.assignment = _told(progress.assigned)
        lived = partial(self._has_lived, member_id, config, before is not progress)
        return answer, partial(
            self._has_joined, member_id, replaced, lived
        ) if request.member_epoch == JOINING else lived

    def _admit(
        self, request: ConsumerGroupHeartbeatRequest, owned: Assignment | None, draft: Draft, config: GroupConfig
    ) -> tuple[str, str | None]:
        """
        The id of the member, and of the one whose place it takes.
        """
        state = self._state
        check_room(state, request.member_id, config.max_size)
        if request.member_epoch == JOINING:
            member_id = request.member_id or str(Uuid.random())
            return member_id, take_place(draft, member_id, request.instance_id, classic=False)
        member_id = known(state, request.member_id, request.instance_id)
        progress, epoch = state.progress_of(member_id), request.member_epoch
        check_epoch(progress, epoch, owned)
        if progress.oldest_epoch is not None and progress.may_be_in(epoch):
            draft.set_step(member_id, progress.heard_in(epoch))
        return member_id, None

    def _has_joined(self, member_id: str, replaced: str | None, lived: Callable[[], None]) -> None:
        self.changes.note_join(member_id, replaced, "consumer")
        lived()

    def _has_lived(self, member_id: str, config: GroupConfig, moved: bool) -> None:
        """
        After its heartbeat: a member has until the next one, and to let go what it must.
        """
        lifetimes = self.changes.lifetimes
        lifetimes.has_lived(member_id, config.session_timeout_ms)
        if moved:
            lifetimes.has_moved(member_id)

    def _leave(self, request: ConsumerGroupHeartbeatRequest) -> Answer | Deferred[Answer]:
        member_id = known(self._state, request.member_id, request.instance_id)
        answer = _answer(member_id, request.member_epoch, 0)
        if request.member_epoch == AWAY:
            return self.changes.make(partial(self._go_away, member_id, answer))
        self._log.info("group {group}: member {member} left", group=self.group_id, member=member_id)
        return self.changes.remove([member_id], answer)

    def _go_away(self, member_id: str, answer: Answer, draft: Draft) -> tuple[Answer, Callable[[], None]]:
        """
        A static member leaves and keeps its place, until its session ends.
        """
        self._log.info("group {group}: static member {member} is away", group=self.group_id, member=member_id)
        draft.set_progress(member_id, self._state.progress_of(member_id).away())
        return answer, partial(self.changes.lifetimes.is_away, member_id)


def _answer(member_id: str, epoch: int, heartbeat_interval_ms: int) -> Answer:
    return Answer(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        member_id=member_id,
        member_epoch=epoch,
        heartbeat_interval_ms=heartbeat_interval_ms,
        assignment=None,
    )


def _said(before: Profile | None, request: ConsumerGroupHeartbeatRequest, client: Client) -> Profile:
    """
    What a member says of itself; what it does not say is as before.
    """
    if before and before.classic is None and _says_nothing(request) and before.is_of(client.client_id, client.host):
        return before
    profile = before or Profile()
    names, pattern = request.subscribed_topic_names, request.subscribed_topic_regex
    silent = request.rebalance_timeout_ms == _AS_BEFORE
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


def _says_nothing(request: ConsumerGroupHeartbeatRequest) -> bool:
    """
    Whether the member says nothing of itself, as in most heartbeats.
    """
    return (
        request.instance_id is None
        and request.rack_id is None
        and request.rebalance_timeout_ms == _AS_BEFORE
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.server_assignor is None
    )


def _says_all(request: ConsumerGroupHeartbeatRequest) -> bool:
    """
    Whether this is a heartbeat of a member's full state, as it sends one when it joins and after an error.
    """
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != _AS_BEFORE and subscribes and request.topic_partitions is not None


def _told(assigned: Owned) -> _Assignment:
    topics = [TopicPartitions(topic_id=topic_id, partitions=sorted(found)) for topic_id, found in assigned.items()]
    return _Assignment(topic_partitions=topics)
