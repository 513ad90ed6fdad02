"""
A static member comes back (KIP-345): it has lost the id it had, and keeps its place and assignment under a new one.
"""

from dataclasses import replace

from twisted.internet.defer import Deferred

from kgateway.groups.classic.exchange import Joined
from kgateway.groups.classic.member import Member
from kgateway.groups.classic.rebalance import Rebalance
from kgateway.groups.classic.state import CONSUMER, Phase, State
from kgateway.wire.errors import KafkaError


class Replacement:
    """
    One member in the place of another. Until it is written, it can be taken back.
    """

    def __init__(self, state: State, rebalance: Rebalance, old: Member, new: Member) -> None:
        self._state = state
        self._rebalance = rebalance
        self._old = old
        self._new = new
        self._leader = state.members.leader or ""
        self._generation = state.generation

    def make(self) -> Deferred[Joined]:
        """
        Put the new one there, and let it wait; who still uses the old id is fenced.
        """
        new = self._new
        new.assignment = self._old.assignment
        self._state.members.replace(self._old, new)
        return self._state.members.hold_join(new)

    @property
    def changes_nothing(self) -> bool:
        """
        Whether the assignment suits the new one: the group would choose the same protocol, and the topics are the same.
        """
        state, old, new = self._state, self._old.protocols, self._new.protocols
        same_topics = state.protocol_type != CONSUMER or old.topics == new.topics
        return same_topics and state.members.vote() == state.protocol

    def settle(self, can_skip_assignment: bool, error: KafkaError | None) -> None:
        """
        It is written, or not. A rebalance that began meanwhile counts it among its members, and tells it.
        """
        state, new = self._state, self._new
        overtaken = state.phase is not Phase.STABLE or state.generation != self._generation
        if overtaken or state.members.get(new.id) is not new:
            return
        if error is not None:
            self._take_back(error)
            return
        new.beat()  # its session may have ended while it waited
        waiting = state.members.take_join(new)
        if waiting is not None:
            waiting.callback(self._answer(can_skip_assignment))

    def _answer(self, can_skip_assignment: bool) -> Joined:
        """
        An assignment of a stable group is kept, so a leader must not make one. Where it cannot be told so (KIP-814), it
        is told the id it had, and takes somebody else for the leader.
        """
        joined = self._rebalance.joined(self._new)
        leads = joined.leader == joined.member_id
        if can_skip_assignment:
            return replace(joined, skip_assignment=leads)
        return replace(joined, leader=self._leader, members=())

    def _take_back(self, error: KafkaError) -> None:
        members = self._state.members
        members.refuse(self._new, error)
        members.replace(self._new, self._old)
        self._old.beat()
