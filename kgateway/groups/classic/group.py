"""
A group of the classic protocol: members join, sync, send heartbeats and leave; their leader assigns.

It takes values and an injected clock, and knows of no network: a refusal is a KafkaError, an answer that has to wait
for other members is a Deferred.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from kgateway.config.settings import Settings
from kgateway.groups.classic.member_join import NEW_MEMBER_TIMEOUT_MS, MemberJoin
from kgateway.groups.classic.members import Member, Members
from kgateway.groups.classic.rebalance import Rebalance
from kgateway.groups.classic.requests import JoinRequest, JoinResult, LeavingMember, SyncRequest, SyncResult
from kgateway.groups.classic.state import ClassicGroupJournal, ClassicGroupState, Phase
from kgateway.groups.deadline import Deadline
from kgateway.groups.group import GroupType
from kgateway.groups.records import Row, Write
from kgateway.messages.stored.group_metadata import GroupMetadataValue
from kgateway.plurals import counted
from kgateway.wire.errors import ErrorCode, KafkaError


class ClassicGroup:
    """
    Its timers run from `loaded` on, or from the first join.
    """

    type = GroupType.CLASSIC
    _log = Logger()

    def __init__(
        self, group_id: str, *, settings: Settings, clock: IReactorTime, now_ms: Callable[[], int], write: Write
    ) -> None:
        self.group_id = group_id
        self._settings = settings
        self._clock = clock
        self._state = ClassicGroupState(group_id, now_ms)
        self._journal = ClassicGroupJournal(write)
        self._rebalance = Rebalance(self._state, self._journal, settings, clock)
        self._member_join = MemberJoin(self._state, self._journal, self._rebalance, settings, self._session)

    @property
    def state(self) -> str:
        return self._state.phase.value

    @property
    def protocol_type(self) -> str:
        return self._state.protocol_type

    @property
    def protocol(self) -> str | None:
        """
        The protocol that its members have chosen; `None` if there is no generation.
        """
        return self._state.protocol

    @property
    def generation(self) -> int:
        return self._state.generation

    @property
    def members(self) -> Members:
        return self._state.members

    @property
    def is_empty(self) -> bool:
        return self._state.phase is Phase.EMPTY

    @property
    def empty_since_ms(self) -> int | None:
        return self._state.since_ms if self.is_empty and self.protocol_type else None

    def reads(self, topic: str) -> bool:
        return self._state.reads(topic)

    def join(self, request: JoinRequest) -> JoinResult | Deferred[JoinResult]:
        self._check_alive()
        return self._member_join.join(request)

    def sync(self, request: SyncRequest) -> SyncResult | Deferred[SyncResult]:
        """
        Answer the member with its assignment. The leader's request has those of all.
        """
        member = self._check_current(request.member_id, request.instance_id, request.generation)
        self._check_agreed(request)
        member.renew_session()
        if self._state.phase is Phase.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "members rejoin")
        self._rebalance.mark_synced(member)
        if self._state.phase is Phase.STABLE:
            return self._rebalance.synced(member)
        waiting = self.members.await_sync(member)
        if member.id == self.members.leader:
            self._rebalance.assign(dict(request.assignments))
        return waiting

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> None:
        self._check_current(member_id, instance_id, generation).renew_session()
        if self._state.phase is Phase.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "members rejoin")

    def leave(self, leavers: Sequence[LeavingMember]) -> list[ErrorCode]:
        self._check_alive()
        before = len(self.members)
        outcomes = [self._leave(leaver) for leaver in leavers]
        if len(self.members) < before:
            self._rebalance.prepare_or_complete_join(f"{counted(before - len(self.members), 'member')} left")
        else:
            self._rebalance.try_complete_join()
        return outcomes

    def rebalance(self, reason: str) -> None:
        if self.members:
            self._rebalance.prepare_or_complete_join(reason)

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool, knows_epochs: bool = True
    ) -> None:
        self._check_alive()
        phase = self._state.phase
        if epoch < 0 and phase is Phase.EMPTY:
            return  # from an administrator, or a consumer that never joins
        if transactional and epoch < 0 and not member_id and instance_id is None:
            return  # the first versions do not name the member
        member = self._check_current(member_id, instance_id, epoch)
        if transactional:
            return
        if phase is Phase.COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "the member has joined, but must sync before it commits")
        member.renew_session()

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        if self._state.phase is Phase.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"{self.group_id} is not coordinated here any more")

    def replay(self, row: Row) -> None:
        self._journal.replay(row)

    def loaded(self) -> None:
        last = self._journal.last
        if last is None or not isinstance(last.value, GroupMetadataValue):
            return
        self._state.restore(last.value, self._session)
        for member in self.members:
            member.renew_session()
        self._log.info(
            "group {group}: loaded in generation {generation} with {members}",
            group=self.group_id,
            generation=self.generation,
            members=counted(len(self.members), "member"),
        )
        if last.value.leader is None:
            self.rebalance("the last member of the consumer protocol has left")
        if len(self.members) > self._settings.group_max_size:
            self._rebalance.prepare(f"{counted(len(self.members), 'member')} in the group, more than group.max.size")

    def rows(self) -> Iterator[Row]:
        if self._journal.last is not None:
            yield self._journal.last

    def stop(self, error: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
        """
        Cancel all timers and refuse waiting members: the group is not classic, or not here, any more.
        """
        self._rebalance.stop()
        self._state.enter(Phase.DEAD)
        for member_id in tuple(self.members.pending):
            self.members.drop_pending(member_id)
        for member in self.members:
            member.session.stop()
            self.members.refuse(member, KafkaError(error, f"{self.group_id} is not coordinated here any more"))

    def _leave(self, leaver: LeavingMember) -> ErrorCode:
        pending = self.members.drop_pending(leaver.member_id)
        if not pending:
            try:
                member = self._leaver(leaver)
            except KafkaError as error:
                return error.code
            self.members.remove(member, ErrorCode.UNKNOWN_MEMBER_ID)
        self._log.info(
            "group {group}: member {member} left ({reason})",
            group=self.group_id,
            member=leaver.member_id or leaver.instance_id,
            reason=leaver.reason or "no reason given",
        )
        return ErrorCode.NONE

    def _leaver(self, leaver: LeavingMember) -> Member:
        static = None if leaver.member_id else self.members.static(leaver.instance_id)
        return static or self.members.find(leaver.member_id, leaver.instance_id)

    def _session(self, member_id: str) -> Deadline:
        return Deadline(self._clock, partial(self._expire, member_id))

    def _expire(self, member_id: str) -> None:
        if self.members.drop_pending(member_id):
            self._log.info(
                "group {group}: {member} was given its id but never joined", group=self.group_id, member=member_id
            )
            self._rebalance.try_complete_join()
            return
        member = self.members.find(member_id, None)
        if member.is_awaiting_answer:
            return  # its session begins again with the answer
        seconds = (NEW_MEMBER_TIMEOUT_MS if member.is_new else member.session_timeout_ms) / 1000
        self._log.info(
            "group {group}: member {member} expired after {seconds} s",
            group=self.group_id,
            member=member_id,
            seconds=seconds,
        )
        self.members.remove(member, ErrorCode.UNKNOWN_MEMBER_ID)
        self._rebalance.prepare_or_complete_join(f"member {member_id} expired after {seconds} s")

    def _check_alive(self) -> None:
        if self._state.phase is Phase.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self.group_id} is not coordinated here any more")

    def _check_current(self, member_id: str, instance_id: str | None, generation: int) -> Member:
        self._check_alive()
        member = self.members.find(member_id, instance_id)
        if generation != self.generation:
            reason = f"{member_id} is in generation {generation}, the group in {self.generation}"
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, reason)
        return member

    def _check_agreed(self, request: SyncRequest) -> None:
        """
        The leader must not assign in another protocol than members understand (KIP-559).
        """
        agreed = self.protocol_type, self.protocol
        if request.protocol_type not in (None, agreed[0]) or request.protocol not in (None, agreed[1]):
            reason = (
                f"the member assigns in {(request.protocol_type, request.protocol)}, "
                f"but the group has agreed on {agreed}"
            )
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, reason)
