"""
How a classic group gets from one generation to the next: its members join, the leader assigns, and all of them sync.

        prepare               all joined, or too late           the assignment is committed
EMPTY ---------> PREPARING ------------------------> COMPLETING -----------------------> STABLE
                   ^  |  nobody joined: EMPTY             |                                 |
                   |  +-----------------------            |  a member came, changed or left |
                   +--------------------------------------+---------------------------------+

There is one timer: for members to join, then for them to ask for their assignment.
"""

from collections.abc import Callable, Mapping
from functools import partial

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from kgateway.config.settings import Settings
from kgateway.groups.classic.members import Member
from kgateway.groups.classic.requests import JoinResult, SyncResult
from kgateway.groups.classic.state import ClassicGroupJournal, ClassicGroupState, Phase
from kgateway.plurals import counted
from kgateway.wire.errors import ErrorCode, KafkaError

_SOON = 0.001  # seconds; not worth a timer


class Rebalance:
    _log = Logger()

    def __init__(
        self, state: ClassicGroupState, journal: ClassicGroupJournal, settings: Settings, clock: IReactorTime
    ) -> None:
        self._state = state
        self._journal = journal
        self._settings = settings
        self._clock = clock
        self._timer: IDelayedCall | None = None
        self._initial_until: float | None = None  # until when an empty group waits for more members
        self._newcomers = False  # some joined during this delay
        self._storing = False  # the assignment is being written

    def member_joined(self) -> None:
        """
        A new member has joined. If the group was empty, others may follow.
        """
        self._newcomers = True

    def prepare_or_complete_join(self, reason: str) -> None:
        """
        Something has changed: members have to join again. If they do so already, all may have joined now.
        """
        if self._state.phase is Phase.PREPARING_REBALANCE:
            self.try_complete_join()
        else:
            self.prepare(reason)

    def try_complete_join(self) -> None:
        """
        Complete the join if all members have joined, and the initial delay is over.
        """
        state = self._state
        if state.phase is Phase.PREPARING_REBALANCE and self._initial_until is None and state.members.all_joined:
            self._complete_join()

    def prepare(self, reason: str) -> None:
        state = self._state
        withdrawn = self._withdraw() if state.phase is Phase.COMPLETING_REBALANCE else []
        was_empty = state.phase is Phase.EMPTY
        state.enter(Phase.PREPARING_REBALANCE)
        self._log.info(
            "group {group}: preparing to rebalance generation {generation}: {reason}",
            group=state.group_id,
            generation=state.generation,
            reason=reason,
        )
        if was_empty:
            self._start_initial_delay()
        elif state.members.all_joined:
            self._complete_join()
        else:
            self._time(state.members.rebalance_timeout_ms / 1000, self._complete_join)
        self._refuse(withdrawn, KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, reason))

    def joined(self, member: Member) -> JoinResult:
        """
        The leader gets the list of all members.
        """
        state = self._state
        leader, protocol = state.members.leader or "", state.protocol or ""
        return JoinResult(
            member_id=member.id,
            generation=state.generation,
            protocol_type=state.protocol_type,
            protocol=protocol,
            leader=leader,
            members=[each.listed(protocol) for each in state.members] if member.id == leader else (),
        )

    def synced(self, member: Member) -> SyncResult:
        return SyncResult(self._state.protocol_type, self._state.protocol or "", member.assignment)

    def mark_synced(self, member: Member) -> None:
        unsynced = self._state.members.unsynced
        unsynced.discard(member.id)
        if not unsynced:
            self._stop_timer()

    def assign(self, assignments: Mapping[str, bytes]) -> None:
        """
        Write the leader's assignment, then answer the members. Assignments of others than members are ignored.
        """
        state = self._state
        if not self._storing:  # the leader may repeat its request meanwhile
            self._storing = True
            self._journal.write(state.row(assignments), partial(self._stored, state.generation, assignments))

    def stop(self) -> None:
        self._stop_timer()

    def _start_initial_delay(self) -> None:
        longest = max(self._state.members.rebalance_timeout_ms, self._settings.group_initial_rebalance_delay_ms)
        self._initial_until = self._clock.seconds() + longest / 1000
        self._newcomers = False
        self._time(self._settings.group_initial_rebalance_delay_ms / 1000, self._end_initial_delay)

    def _end_initial_delay(self) -> None:
        """
        Each delay in which members joined is followed by another, until the first member's rebalance timeout is over.
        """
        left = (self._initial_until or 0.0) - self._clock.seconds()
        if not self._newcomers or left < _SOON:
            self._complete_join()
            return
        self._newcomers = False
        self._time(min(left, self._settings.group_initial_rebalance_delay_ms / 1000), self._end_initial_delay)

    def _complete_join(self) -> None:
        """
        Put the members that have joined into the next generation. Static members are in it whether they joined or not.
        """
        state, members = self._state, self._state.members
        self._stop_timer()
        self._initial_until = None
        self._drop([member for member in members if member.joining is None and member.instance_id is None], "joined")
        if members and not members.joining:
            self._time(members.rebalance_timeout_ms / 1000, self._complete_join)
            return
        self._elect()
        state.begin_generation()
        self._log.info(
            "group {group}: generation {generation} has {members}{protocol}",
            group=state.group_id,
            generation=state.generation,
            members=counted(len(members), "member"),
            protocol=f" and uses the protocol {state.protocol}" if members else "",
        )
        self._storing = False
        if members:
            self._answer_joins()
        else:
            # If it fails, the members of the generation before are there again after a restart, and expire.
            self._journal.write(state.row({}), lambda _: None)

    def _elect(self) -> None:  # the leader has to assign, so it must be one that has joined
        members = self._state.members
        leader = members.get(members.leader or "")
        if leader is None or leader.joining is None:
            members.leader = next((member.id for member in members if member.joining is not None), None)

    def _answer_joins(self) -> None:
        members = self._state.members
        joined = []
        for member in members:
            member.is_new = False
            member.renew_session()
            waiting = members.pop_join(member)
            if waiting is not None:
                joined.append((waiting, self.joined(member)))
        self._time(members.rebalance_timeout_ms / 1000, self._give_up_unsynced)
        for waiting, answer in joined:
            waiting.callback(answer)

    def _stored(self, generation: int, assignments: Mapping[str, bytes], error: KafkaError | None) -> None:
        state = self._state
        if state.phase is not Phase.COMPLETING_REBALANCE or state.generation != generation:
            return  # overtaken by another rebalance
        if error is not None:
            withdrawn = self._withdraw()
            self.prepare(f"the assignment could not be written: {error}")
            self._refuse(withdrawn, error)
            return
        state.enter(Phase.STABLE)
        self._answer_syncs(assignments)

    def _answer_syncs(self, assignments: Mapping[str, bytes]) -> None:
        members = self._state.members
        synced = []
        for member in members:
            member.assignment = assignments.get(member.id, b"")
            waiting = members.pop_sync(member)
            if waiting is not None:
                member.renew_session()
                synced.append((waiting, self.synced(member)))
        for waiting, answer in synced:
            waiting.callback(answer)

    def _withdraw(self) -> list[Deferred[SyncResult]]:
        """
        Withdraw all assignments. Returns the answers of those that wait for theirs.
        """
        members = self._state.members
        withdrawn = []
        for member in members:
            member.assignment = b""
            waiting = members.pop_sync(member)
            if waiting is not None:
                member.renew_session()
                withdrawn.append(waiting)
        return withdrawn

    def _refuse(self, waiting: list[Deferred[SyncResult]], error: KafkaError) -> None:
        for each in waiting:
            each.errback(KafkaError(error.code, error.message))

    def _give_up_unsynced(self) -> None:
        members = self._state.members
        lost = [member for member in members if member.id in members.unsynced]
        self._drop(lost, "asked for its assignment")
        self.prepare(f"{counted(len(lost), 'member')} did not ask for an assignment")

    def _drop(self, lost: list[Member], missing: str) -> None:
        for member in lost:
            self._log.info(
                "group {group}: member {member} has not {missing} within the rebalance timeout",
                group=self._state.group_id,
                member=member.id,
                missing=missing,
            )
            self._state.members.remove(member, ErrorCode.UNKNOWN_MEMBER_ID)

    def _time(self, seconds: float, due: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = self._clock.callLater(seconds, due)

    def _stop_timer(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
