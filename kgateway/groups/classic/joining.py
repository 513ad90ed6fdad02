"""
How a member comes into a classic group, or comes again.
"""

from collections.abc import Callable
from functools import partial
from uuid import uuid4

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.config.settings import Settings
from kgateway.groups.classic.exchange import Join, Joined, MemberIdRequired
from kgateway.groups.classic.journal import Journal
from kgateway.groups.classic.member import Member
from kgateway.groups.classic.rebalance import Rebalance
from kgateway.groups.classic.session import Session
from kgateway.groups.classic.state import Phase, State
from kgateway.groups.classic.static import Replacement
from kgateway.wire.errors import ErrorCode, KafkaError

# A new member cannot send heartbeats before its first generation begins. It may have gone, and joined as somebody else.
NEW_MEMBER_TIMEOUT_MS = 300_000
_NO_REASON = "no reason given"


class Joining:
    """
    Decides on each join, and has the group rebalance where that changes something.
    """

    _log = Logger()

    def __init__(
        self,
        state: State,
        journal: Journal,
        rebalance: Rebalance,
        settings: Settings,
        session: Callable[[str], Session],
    ) -> None:
        self._state = state
        self._members = state.members
        self._journal = journal
        self._rebalance = rebalance
        self._settings = settings
        self._session = session  # of the member of this id

    def join(self, asked: Join) -> Joined | Deferred[Joined]:
        """
        Let it into the next generation, tell it of this one, or refuse it.
        """
        asked.check_session(self._settings)
        self._check_room(asked)
        self._check_protocols(asked)
        if not asked.member_id:
            return self._join_unknown(asked)
        if asked.member_id in self._members.pending:
            return self._join_pending(asked)
        return self._join_again(self._members.find(asked.member_id, asked.instance_id), asked)

    def _join_unknown(self, asked: Join) -> Joined | Deferred[Joined]:
        member_id = f"{asked.client_id if asked.instance_id is None else asked.instance_id}-{uuid4()}"
        self._record_birth()
        taken = self._members.static(asked.instance_id)
        if taken is not None:
            return self._replace(taken, self._member(member_id, asked), asked)
        if asked.instance_id is None and asked.takes_member_id:
            session = self._session(member_id)
            session.renew(asked.session_timeout_ms)
            self._members.pending[member_id] = session
            raise MemberIdRequired(member_id)
        return self._add(self._member(member_id, asked), asked)

    def _join_pending(self, asked: Join) -> Deferred[Joined]:
        if asked.instance_id is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{asked.member_id} was given to a member that is not static")
        self._members.drop_pending(asked.member_id)
        return self._add(self._member(asked.member_id, asked), asked)

    def _join_again(self, member: Member, asked: Join) -> Joined | Deferred[Joined]:
        """
        A member that speaks as before is told the generation it is in: it may not have heard. The leader wants to
        assign anew when it joins a stable group.
        """
        member.beat()
        changed, leads = asked.protocols != member.protocols, member.id == self._members.leader
        match self._state.phase:
            case Phase.COMPLETING_REBALANCE if not changed:
                return self._rebalance.joined(member)
            case Phase.STABLE if not changed and not leads:
                return self._rebalance.joined(member)
        self._members.change(member, asked.protocols)
        member.session_timeout_ms, member.rebalance_timeout_ms = asked.session_timeout_ms, asked.rebalance_timeout_ms
        waiting = self._members.hold_join(member)
        what = "changed what it speaks" if changed else "joined again"
        self._rebalance.begin_or_go_on(f"member {member.id} {what} ({asked.reason or _NO_REASON})")
        return waiting

    def _add(self, member: Member, asked: Join) -> Deferred[Joined]:
        self._log.info(
            "group {group}: member {member} joined from {host} ({reason})",
            group=self._state.group_id,
            member=member.id,
            host=member.client_host,
            reason=asked.reason or _NO_REASON,
        )
        if not self._members:
            self._state.protocol_type = asked.protocol_type
        self._journal.rename(member.instance_id, member.id)
        member.is_new = True
        self._members.add(member)
        waiting = self._members.hold_join(member)
        member.session.renew(NEW_MEMBER_TIMEOUT_MS)
        self._rebalance.newcomer()
        self._rebalance.begin_or_go_on(f"member {member.id} joined ({asked.reason or _NO_REASON})")
        return waiting

    def _replace(self, old: Member, new: Member, asked: Join) -> Deferred[Joined]:
        """
        A static member has come back, and does not know the id it had (KIP-345).
        """
        self._log.info(
            "group {group}: static member {instance} came back: {new} is fenced off from {old} ({reason})",
            group=self._state.group_id,
            instance=new.instance_id,
            new=new.id,
            old=old.id,
            reason=asked.reason or _NO_REASON,
        )
        replacement = Replacement(self._state, self._rebalance, old, new)
        waiting = replacement.make()
        phase = self._state.phase
        if phase is Phase.STABLE and replacement.changes_nothing:
            self._journal.write(
                self._state.row({member.id: member.assignment for member in self._members}),
                partial(replacement.settle, asked.can_skip_assignment),
            )
            return waiting
        self._journal.rename(new.instance_id, new.id)
        if phase is Phase.PREPARING_REBALANCE:
            self._rebalance.go_on()
        else:  # the leader may have been told of the old one, and would assign to it
            self._rebalance.begin(f"static member {new.instance_id} came back as {new.id}")
        return waiting

    def _member(self, member_id: str, asked: Join) -> Member:
        return Member(
            id=member_id,
            instance_id=asked.instance_id,
            client_id=asked.client_id,
            client_host=asked.client_host,
            session_timeout_ms=asked.session_timeout_ms,
            rebalance_timeout_ms=asked.rebalance_timeout_ms,
            protocols=asked.protocols,
            session=self._session(member_id),
        )

    def _record_birth(self) -> None:
        """
        A group is written when its first member comes, before it has a generation.
        """
        outcome: list[KafkaError | None] = []
        if self._journal.last is None and self._state.phase is Phase.EMPTY:
            self._journal.write(self._state.row({}), outcome.append)
        if outcome and outcome[0] is not None:
            raise outcome[0]

    def _check_room(self, asked: Join) -> None:
        """
        While members join, those who come last find no place: a group that has become too big shrinks so.
        """
        limit, members = self._settings.group_max_size, self._members
        member = members.get(asked.member_id) or members.static(asked.instance_id)
        if self._state.phase is not Phase.PREPARING_REBALANCE:
            full = member is None and len(members) >= limit
        else:
            full = (member is None or member.joining is None) and members.joining >= limit
        if full:
            members.drop_pending(asked.member_id)
            if member is not None:
                members.remove(member, ErrorCode.GROUP_MAX_SIZE_REACHED)
            self._rebalance.go_on()
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group may have {limit} members")

    def _check_protocols(self, asked: Join) -> None:
        """
        All members understand one another.
        """
        named = bool(asked.protocol_type and asked.protocols)
        if self._state.phase is Phase.EMPTY:
            fits = named
        else:
            fits = asked.protocol_type == self._state.protocol_type and self._members.understand(asked.protocols)
        if not fits:
            offered = f"{asked.protocol_type} {list(asked.protocols)[:10]}"
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the group cannot agree on any of {offered}")
