"""
How members join a classic group, for the first time or again.

A static member that comes back (KIP-345) has lost its id: it keeps its place and assignment under a new one.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from uuid import uuid4

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.config.settings import Settings
from kgateway.groups.classic.members import Member
from kgateway.groups.classic.rebalance import Rebalance
from kgateway.groups.classic.requests import JoinRequest, JoinResult, MemberIdRequired
from kgateway.groups.classic.state import CONSUMER, ClassicGroupJournal, ClassicGroupState, Phase
from kgateway.groups.deadline import Deadline
from kgateway.plurals import counted
from kgateway.wire.errors import ErrorCode, KafkaError

# A new member cannot send heartbeats before its first generation begins. It may have left, and joined under another id.
NEW_MEMBER_TIMEOUT_MS = 300_000
_NO_REASON = "no reason given"


class StaticReplacement:
    """
    Replaces one static member by another. It can be undone until it is written.
    """

    def __init__(self, state: ClassicGroupState, rebalance: Rebalance, old: Member, new: Member) -> None:
        self._state = state
        self._rebalance = rebalance
        self._old = old
        self._new = new
        self._leader = state.members.leader or ""
        self._generation = state.generation

    def make(self) -> Deferred[JoinResult]:
        """
        Put the new member in, and let it wait. A client that still uses the old id is fenced.
        """
        new = self._new
        new.assignment = self._old.assignment
        self._state.members.replace(self._old, new)
        return self._state.members.await_join(new)

    @property
    def changes_nothing(self) -> bool:
        """
        Whether the assignment suits the new member: the group would choose the same protocol, and the topics are the
        same.
        """
        state, old, new = self._state, self._old.protocols, self._new.protocols
        same_topics = state.protocol_type != CONSUMER or old.topics == new.topics
        return same_topics and state.members.vote() == state.protocol

    def written(self, can_skip_assignment: bool, error: KafkaError | None) -> None:
        """
        The replacement is written, or not. A rebalance that began meanwhile counts the new member, and answers it.
        """
        state, new = self._state, self._new
        overtaken = state.phase is not Phase.STABLE or state.generation != self._generation
        if overtaken or state.members.get(new.id) is not new:
            return
        if error is not None:
            self._undo(error)
            return
        new.renew_session()  # its session may have expired while it waited
        waiting = state.members.pop_join(new)
        if waiting is not None:
            waiting.callback(self._answer(can_skip_assignment))

    def _answer(self, can_skip_assignment: bool) -> JoinResult:
        """
        The assignment of a stable group is kept, so a leader must not make a new one. If its client does not understand
        that (KIP-814), the answer names its old id as the leader, so it takes somebody else for the leader.
        """
        joined = self._rebalance.joined(self._new)
        leads = joined.leader == joined.member_id
        if can_skip_assignment:
            return replace(joined, skip_assignment=leads)
        return replace(joined, leader=self._leader, members=())

    def _undo(self, error: KafkaError) -> None:
        members = self._state.members
        members.refuse(self._new, error)
        members.replace(self._new, self._old)
        self._old.renew_session()


class MemberJoin:
    """
    Decides on each join, and starts a rebalance if it changes something.
    """

    _log = Logger()

    def __init__(
        self,
        state: ClassicGroupState,
        journal: ClassicGroupJournal,
        rebalance: Rebalance,
        settings: Settings,
        session: Callable[[str], Deadline],
    ) -> None:
        self._state = state
        self._members = state.members
        self._journal = journal
        self._rebalance = rebalance
        self._settings = settings
        self._session = session  # makes the session of the member with this id

    def join(self, request: JoinRequest) -> JoinResult | Deferred[JoinResult]:
        """
        Let the member into the next generation, answer with the current one, or refuse it.
        """
        request.check_session(self._settings)
        self._check_room(request)
        self._check_protocols(request)
        if not request.member_id:
            return self._join_unknown(request)
        if request.member_id in self._members.pending:
            return self._join_pending(request)
        return self._join_again(self._members.find(request.member_id, request.instance_id), request)

    def _join_unknown(self, request: JoinRequest) -> JoinResult | Deferred[JoinResult]:
        member_id = f"{request.client_id if request.instance_id is None else request.instance_id}-{uuid4()}"
        self._write_new_group()
        taken = self._members.static(request.instance_id)
        if taken is not None:
            return self._replace(taken, self._member(member_id, request), request)
        if request.instance_id is None and request.takes_member_id:
            session = self._session(member_id)
            session.extend(request.session_timeout_ms)
            self._members.pending[member_id] = session
            raise MemberIdRequired(member_id)
        return self._add(self._member(member_id, request), request)

    def _join_pending(self, request: JoinRequest) -> Deferred[JoinResult]:
        if request.instance_id is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{request.member_id} belongs to a member that is not static")
        self._members.drop_pending(request.member_id)
        return self._add(self._member(request.member_id, request), request)

    def _join_again(self, member: Member, request: JoinRequest) -> JoinResult | Deferred[JoinResult]:
        """
        A member that speaks as before is answered with its generation, because the first answer may be lost. The leader
        wants to assign again when it joins a stable group.
        """
        member.renew_session()
        changed, leads = request.protocols != member.protocols, member.id == self._members.leader
        match self._state.phase:
            case Phase.COMPLETING_REBALANCE if not changed:
                return self._rebalance.joined(member)
            case Phase.STABLE if not changed and not leads:
                return self._rebalance.joined(member)
        if changed:
            self._members.change(member, request.protocols)
        member.session_timeout_ms, member.rebalance_timeout_ms = (
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
        )
        waiting = self._members.await_join(member)
        what = "changed its protocols" if changed else "joined again"
        self._rebalance.prepare_or_complete_join(f"member {member.id} {what} ({request.reason or _NO_REASON})")
        return waiting

    def _add(self, member: Member, request: JoinRequest) -> Deferred[JoinResult]:
        self._log.info(
            "group {group}: member {member} joined from {host} ({reason})",
            group=self._state.group_id,
            member=member.id,
            host=member.client_host,
            reason=request.reason or _NO_REASON,
        )
        if not self._members:
            self._state.protocol_type = request.protocol_type
        self._journal.rename(member.instance_id, member.id)
        member.is_new = True
        self._members.add(member)
        waiting = self._members.await_join(member)
        member.session.extend(NEW_MEMBER_TIMEOUT_MS)
        self._rebalance.member_joined()
        self._rebalance.prepare_or_complete_join(f"member {member.id} joined ({request.reason or _NO_REASON})")
        return waiting

    def _replace(self, old: Member, new: Member, request: JoinRequest) -> Deferred[JoinResult]:
        self._log.info(
            "group {group}: static member {instance} came back as {new}: {old} is fenced ({reason})",
            group=self._state.group_id,
            instance=new.instance_id,
            new=new.id,
            old=old.id,
            reason=request.reason or _NO_REASON,
        )
        replacement = StaticReplacement(self._state, self._rebalance, old, new)
        waiting = replacement.make()
        phase = self._state.phase
        if phase is Phase.STABLE and replacement.changes_nothing:
            self._journal.write(
                self._state.row({member.id: member.assignment for member in self._members}),
                partial(replacement.written, request.can_skip_assignment),
            )
            return waiting
        self._journal.rename(new.instance_id, new.id)
        if phase is Phase.PREPARING_REBALANCE:
            self._rebalance.try_complete_join()
        else:  # the leader may know of the old one, and would assign to it
            self._rebalance.prepare(f"static member {new.instance_id} came back as {new.id}")
        return waiting

    def _member(self, member_id: str, request: JoinRequest) -> Member:
        return Member(
            id=member_id,
            instance_id=request.instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            protocols=request.protocols,
            session=self._session(member_id),
        )

    def _write_new_group(self) -> None:
        """
        Write the group when its first member comes, before it has a generation.
        """
        outcome: list[KafkaError | None] = []
        if self._journal.last is None and self._state.phase is Phase.EMPTY:
            self._journal.write(self._state.row({}), outcome.append)
        if outcome and outcome[0] is not None:
            raise outcome[0]

    def _check_room(self, request: JoinRequest) -> None:
        """
        While members join, there is no room for the last ones, so that a group that has become too big shrinks.
        """
        limit, members = self._settings.group_max_size, self._members
        member = members.get(request.member_id) or members.static(request.instance_id)
        if self._state.phase is not Phase.PREPARING_REBALANCE:
            full = member is None and len(members) >= limit
        else:
            full = (member is None or member.joining is None) and members.joining >= limit
        if full:
            members.drop_pending(request.member_id)
            if member is not None:
                members.remove(member, ErrorCode.GROUP_MAX_SIZE_REACHED)
            self._rebalance.try_complete_join()
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group may have at most {counted(limit, 'member')}")

    def _check_protocols(self, request: JoinRequest) -> None:
        named = bool(request.protocol_type and request.protocols)
        if self._state.phase is Phase.EMPTY:
            fits = named
        else:
            fits = request.protocol_type == self._state.protocol_type and self._members.understand(request.protocols)
        if not fits:
            offered = f"{request.protocol_type} {list(request.protocols)[:10]}"
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the group cannot agree on any of {offered}")
