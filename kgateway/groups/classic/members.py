"""
The members of a classic group. What a rebalance needs to know of all members together is counted as they join, change
and leave.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from twisted.internet.defer import Deferred

from kgateway.groups.classic.requests import JoinResult, ListedMember, Protocols, SyncResult
from kgateway.groups.deadline import Deadline
from kgateway.wire.errors import ErrorCode, KafkaError


@dataclass(slots=True, eq=False)
class Member:
    """
    A member: what it offers, what it is assigned, and the answers that it waits for.
    """

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    session: Deadline
    assignment: bytes = b""
    is_new: bool = False  # it was in no generation yet
    joining: Deferred[JoinResult] | None = None
    syncing: Deferred[SyncResult] | None = None

    @property
    def is_awaiting_answer(self) -> bool:
        """
        Whether it need not send heartbeats now, because it waits for an answer. A new member might have left long ago.
        """
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def renew_session(self) -> None:
        """
        The member is alive. A new member has longer than its session, and nothing that it sends meanwhile shortens
        that.
        """
        if not self.is_new:
            self.session.extend(self.session_timeout_ms)

    def listed(self, protocol: str) -> ListedMember:
        return ListedMember(self.id, self.instance_id, self.protocols.metadata(protocol))


class Members:
    """
    The members by id, in the order they joined.

    `pending` has members that were given an id and have not joined with it yet; `unsynced` the ids of those that have
    not asked for their assignment in this generation.
    """

    def __init__(self) -> None:
        self.leader: str | None = None
        self.pending: dict[str, Deadline] = {}
        self.unsynced: set[str] = set()
        self._by_id: dict[str, Member] = {}
        self._static: dict[str, str] = {}  # instance id -> member id
        self._speakers: Counter[str] = Counter()  # protocol -> how many members speak it
        self._joining = 0  # how many wait for the next generation

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Member]:
        return iter(tuple(self._by_id.values()))

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._by_id

    def get(self, member_id: str) -> Member | None:
        return self._by_id.get(member_id)

    def static(self, instance_id: str | None) -> Member | None:
        return None if instance_id is None else self._by_id.get(self._static.get(instance_id, ""))

    def find(self, member_id: str, instance_id: str | None) -> Member:
        """
        The member with these ids; a KafkaError if there is none, or another has taken its place.
        """
        if instance_id is not None:
            current = self.static(instance_id)
            if current is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"no member has the instance id {instance_id}")
            if current.id != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, f"{instance_id} is {current.id} now, not {member_id}")
        member = self._by_id.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no member {member_id!r}")
        return member

    def add(self, member: Member) -> None:
        """
        Add a member. The first one leads.
        """
        self._by_id[member.id] = member
        self._speakers.update(member.protocols)
        if member.instance_id is not None:
            self._static[member.instance_id] = member.id
        if self.leader is None:
            self.leader = member.id

    def remove(self, member: Member, error: ErrorCode) -> None:
        """
        Remove a member. If it waits for an answer, it gets the error.
        """
        del self._by_id[member.id]
        self._speakers.subtract(member.protocols)
        if member.instance_id is not None:
            del self._static[member.instance_id]
        self.unsynced.discard(member.id)
        if self.leader == member.id:
            self.leader = next(iter(self._by_id), None)
        member.session.stop()
        self.refuse(member, KafkaError(error, f"{member.id} is not in the group any more"))

    def replace(self, old: Member, new: Member) -> None:
        """
        Put a member in the place of another, with its rank as leader and what it still has to do in this generation.
        """
        was_leader, was_unsynced = self.leader == old.id, old.id in self.unsynced
        self.remove(old, ErrorCode.FENCED_INSTANCE_ID)
        self.add(new)
        if was_leader:
            self.leader = new.id
        if was_unsynced:
            self.unsynced.add(new.id)

    def change(self, member: Member, protocols: Protocols) -> None:
        self._speakers.subtract(member.protocols)
        member.protocols = protocols
        self._speakers.update(protocols)

    def drop_pending(self, member_id: str) -> bool:
        """
        Forget a pending member. Returns false if there is none with this id, or it has joined.
        """
        session = self.pending.pop(member_id, None)
        if session is not None:
            session.stop()
        return session is not None

    @property
    def joining(self) -> int:
        return self._joining

    @property
    def all_joined(self) -> bool:
        return self._joining == len(self._by_id) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """
        The longest time that a member may take to join again.
        """
        return max((member.rebalance_timeout_ms for member in self._by_id.values()), default=0)

    def understand(self, protocols: Protocols) -> bool:
        """
        Whether all members speak one of these.
        """
        return any(self._speakers[name] == len(self._by_id) for name in protocols)

    def vote(self) -> str:
        """
        The protocol that most members prefer, of those that all speak.
        """
        common = {name for name, speakers in self._speakers.items() if speakers == len(self._by_id)}
        votes = Counter(next(name for name in member.protocols if name in common) for member in self._by_id.values())
        return votes.most_common(1)[0][0]

    def await_join(self, member: Member) -> Deferred[JoinResult]:
        """
        Let the member wait. It may ask again on another connection.
        """
        self._refuse_earlier(self.pop_join(member))
        member.joining = Deferred()
        self._joining += 1
        return member.joining

    def pop_join(self, member: Member) -> Deferred[JoinResult] | None:
        """
        Take the answer that the member waits for. The caller has to give it.
        """
        waiting, member.joining = member.joining, None
        self._joining -= waiting is not None
        return waiting

    def await_sync(self, member: Member) -> Deferred[SyncResult]:
        self._refuse_earlier(self.pop_sync(member))
        member.syncing = Deferred()
        return member.syncing

    def pop_sync(self, member: Member) -> Deferred[SyncResult] | None:
        waiting, member.syncing = member.syncing, None
        return waiting

    def refuse(self, member: Member, error: KafkaError) -> None:
        for waiting in (self.pop_join(member), self.pop_sync(member)):
            if waiting is not None:
                waiting.errback(error)

    def _refuse_earlier(self, waiting: Deferred[JoinResult] | Deferred[SyncResult] | None) -> None:
        if waiting is not None:
            waiting.errback(KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "the member has sent the request again"))
