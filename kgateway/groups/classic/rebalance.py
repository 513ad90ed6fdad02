"""
How a classic group comes from one generation to the next: its members join, the leader assigns, and all of them sync.

            begin                  all joined, or too late           the assignment is safe
    EMPTY ---------> PREPARING ------------------------> COMPLETING -----------------------> STABLE
                       ^  |  nobody joined: EMPTY             |                                 |
                       |  +-----------------------            |  a member came, changed or went |
                       +--------------------------------------+---------------------------------+

One timer serves: while members join, for the end of that; then, for those who do not ask for their assignment.
"""

from collections.abc import Callable, Mapping
from functools import partial

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from kgateway.config.settings import Settings
from kgateway.groups.classic.exchange import Joined, Synced
from kgateway.groups.classic.journal import Journal
from kgateway.groups.classic.member import Member
from kgateway.groups.classic.state import Phase, State
from kgateway.wire.errors import ErrorCode, KafkaError

_SOON = 0.001  # seconds; not worth waiting for


class Rebalance:
    """
    Leads one group through its generations.
    """

    _log = Logger()

    def __init__(self, state: State, journal: Journal, settings: Settings, clock: IReactorTime) -> None:
        self._state = state
        self._journal = journal
        self._settings = settings
        self._clock = clock
        self._timer: IDelayedCall | None = None
        self._initial_until: float | None = None  # the group was empty: more members may come, but not for ever
        self._newcomers = False  # some came since the last look
        self._storing = False  # the assignment is being written

    def newcomer(self) -> None:
        """
        One more has come: where the group has just begun, others may be on their way.
        """
        self._newcomers = True

    def begin_or_go_on(self, reason: str) -> None:
        """
        Something has changed: members have to join again, or, where they do already, all may be there now.
        """
        if self._state.phase is Phase.PREPARING_REBALANCE:
            self.go_on()
        else:
            self.begin(reason)

    def go_on(self) -> None:
        """
        Let members wait no longer if all are there, and the group did not begin just now.
        """
        state = self._state
        if state.phase is Phase.PREPARING_REBALANCE and self._initial_until is None and state.members.all_joined:
            self._end_join()

    def begin(self, reason: str) -> None:
        """
        Let the members join.
        """
        state = self._state
        withdrawn = self._withdraw() if state.phase is Phase.COMPLETING_REBALANCE else []
        was_empty = state.phase is Phase.EMPTY
        state.enter(Phase.PREPARING_REBALANCE)
        self._log.info(
            "group {group}: a rebalance of generation {generation} begins: {reason}",
            group=state.group_id,
            generation=state.generation,
            reason=reason,
        )
        if was_empty:
            self._wait_for_newcomers()
        elif state.members.all_joined:
            self._end_join()
        else:
            self._time(state.members.rebalance_timeout_ms / 1000, self._end_join)
        self._refuse(withdrawn, KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, reason))

    def joined(self, member: Member) -> Joined:
        """
        What the member is told of its generation; the leader is told of all members.
        """
        state = self._state
        leader, protocol = state.members.leader or "", state.protocol or ""
        return Joined(
            member_id=member.id,
            generation=state.generation,
            protocol_type=state.protocol_type,
            protocol=protocol,
            leader=leader,
            members=[each.listed(protocol) for each in state.members] if member.id == leader else (),
        )

    def synced(self, member: Member) -> Synced:
        """
        What the member is told of its assignment.
        """
        return Synced(self._state.protocol_type, self._state.protocol or "", member.assignment)

    def note_sync(self, member: Member) -> None:
        """
        The member has asked for its assignment.
        """
        unsynced = self._state.members.unsynced
        unsynced.discard(member.id)
        if not unsynced:
            self._stop_timer()

    def assign(self, assignments: Mapping[str, bytes]) -> None:
        """
        The leader has shared out: write it, then tell it. What it says of strangers counts for nothing.
        """
        state = self._state
        if not self._storing:  # the leader may ask again meanwhile
            self._storing = True
            self._journal.write(state.row(assignments), partial(self._stored, state.generation, assignments))

    def stop(self) -> None:
        """
        Lead it no further.
        """
        self._stop_timer()

    def _wait_for_newcomers(self) -> None:
        longest = max(self._state.members.rebalance_timeout_ms, self._settings.group_initial_rebalance_delay_ms)
        self._initial_until = self._clock.seconds() + longest / 1000
        self._newcomers = False
        self._time(self._settings.group_initial_rebalance_delay_ms / 1000, self._look_for_newcomers)

    def _look_for_newcomers(self) -> None:
        """
        Each delay in which members came is followed by another, until the first one's rebalance timeout is over.
        """
        left = (self._initial_until or 0.0) - self._clock.seconds()
        if not self._newcomers or left < _SOON:
            self._end_join()
            return
        self._newcomers = False
        self._time(min(left, self._settings.group_initial_rebalance_delay_ms / 1000), self._look_for_newcomers)

    def _end_join(self) -> None:
        """
        Those who are here by now are the next generation. Static members are, whether they joined again or not.
        """
        state, members = self._state, self._state.members
        self._stop_timer()
        self._initial_until = None
        self._drop([member for member in members if member.joining is None and member.instance_id is None], "joined")
        if members and not members.joining:
            self._time(members.rebalance_timeout_ms / 1000, self._end_join)
            return
        self._elect()
        state.begin_generation()
        self._log.info(
            "group {group}: generation {generation} has {count} members and speaks {protocol}",
            group=state.group_id,
            generation=state.generation,
            count=len(members),
            protocol=state.protocol,
        )
        self._storing = False
        if members:
            self._tell_joined()
        else:
            # Where it fails, the members of the generation before come back at a restart, and expire.
            self._journal.write(state.row({}), lambda _: None)

    def _elect(self) -> None:
        """
        The leader has to assign, so one leads who is here.
        """
        members = self._state.members
        leader = members.get(members.leader or "")
        if leader is None or leader.joining is None:
            members.leader = next((member.id for member in members if member.joining is not None), None)

    def _tell_joined(self) -> None:
        members = self._state.members
        told = []
        for member in members:
            member.is_new = False
            member.beat()
            waiting = members.take_join(member)
            if waiting is not None:
                told.append((waiting, self.joined(member)))
        self._time(members.rebalance_timeout_ms / 1000, self._give_up_unsynced)
        for waiting, answer in told:
            waiting.callback(answer)

    def _stored(self, generation: int, assignments: Mapping[str, bytes], error: KafkaError | None) -> None:
        state = self._state
        if state.phase is not Phase.COMPLETING_REBALANCE or state.generation != generation:
            return  # overtaken by another rebalance
        if error is not None:
            withdrawn = self._withdraw()
            self.begin(f"the assignment could not be written: {error}")
            self._refuse(withdrawn, error)
            return
        state.enter(Phase.STABLE)
        self._tell_synced(assignments)

    def _tell_synced(self, assignments: Mapping[str, bytes]) -> None:
        members = self._state.members
        told = []
        for member in members:
            member.assignment = assignments.get(member.id, b"")
            waiting = members.take_sync(member)
            if waiting is not None:
                member.beat()
                told.append((waiting, self.synced(member)))
        for waiting, answer in told:
            waiting.callback(answer)

    def _withdraw(self) -> list[Deferred[Synced]]:
        """
        No assignment holds any more; those who wait for theirs are to be told so.
        """
        members = self._state.members
        withdrawn = []
        for member in members:
            member.assignment = b""
            waiting = members.take_sync(member)
            if waiting is not None:
                member.beat()
                withdrawn.append(waiting)
        return withdrawn

    def _refuse(self, waiting: list[Deferred[Synced]], error: KafkaError) -> None:
        for each in waiting:
            each.errback(KafkaError(error.code, error.message))

    def _give_up_unsynced(self) -> None:
        """
        Members that have not asked for their assignment by now will not.
        """
        members = self._state.members
        lost = [member for member in members if member.id in members.unsynced]
        self._drop(lost, "asked for its assignment")
        self.begin(f"{len(lost)} members have not asked for their assignment")

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
