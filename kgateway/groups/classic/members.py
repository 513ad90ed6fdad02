"""
Who is in a classic group. What a rebalance asks of all members together is counted as they come, change and go.
"""

from collections import Counter
from collections.abc import Iterator

from twisted.internet.defer import Deferred

from kgateway.groups.classic.exchange import Joined, Synced
from kgateway.groups.classic.member import Member
from kgateway.groups.classic.protocols import Protocols
from kgateway.groups.classic.session import Session
from kgateway.wire.errors import ErrorCode, KafkaError


class Members:
    """
    The members by id, in the order they came.

    `pending` are those who were told an id and have not joined with it yet; `unsynced` the ids of those who have not
    asked for their assignment in this generation.
    """

    def __init__(self) -> None:
        self.leader: str | None = None
        self.pending: dict[str, Session] = {}
        self.unsynced: set[str] = set()
        self._by_id: dict[str, Member] = {}
        self._static: dict[str, str] = {}  # instance id -> member id
        self._speakers: Counter[str] = Counter()  # protocol -> how many members speak it
        self._joining = 0

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Member]:
        return iter(tuple(self._by_id.values()))

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._by_id

    def get(self, member_id: str) -> Member | None:
        """
        The member of this id.
        """
        return self._by_id.get(member_id)

    def static(self, instance_id: str | None) -> Member | None:
        """
        The member of this instance id.
        """
        return None if instance_id is None else self._by_id.get(self._static.get(instance_id, ""))

    def find(self, member_id: str, instance_id: str | None) -> Member:
        """
        The member who says to be this one; refused where it is not here, or another has taken its place.
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
        Take it in; the first one leads.
        """
        self._by_id[member.id] = member
        self._speakers.update(member.protocols)
        if member.instance_id is not None:
            self._static[member.instance_id] = member.id
        if self.leader is None:
            self.leader = member.id

    def remove(self, member: Member, error: ErrorCode) -> None:
        """
        Let it go; where it waits for an answer, it is the error.
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
        Put one in the place of another: its rank as leader, and what it still has to do in this generation.
        """
        was_leader, was_unsynced = self.leader == old.id, old.id in self.unsynced
        self.remove(old, ErrorCode.FENCED_INSTANCE_ID)
        self.add(new)
        if was_leader:
            self.leader = new.id
        if was_unsynced:
            self.unsynced.add(new.id)

    def change(self, member: Member, protocols: Protocols) -> None:
        """
        It speaks these protocols from now on.
        """
        self._speakers.subtract(member.protocols)
        member.protocols = protocols
        self._speakers.update(protocols)

    def drop_pending(self, member_id: str) -> bool:
        """
        Wait no more for who was told this id; false where nobody was, or it has come.
        """
        session = self.pending.pop(member_id, None)
        if session is not None:
            session.stop()
        return session is not None

    @property
    def joining(self) -> int:
        """
        How many wait for the next generation.
        """
        return self._joining

    @property
    def all_joined(self) -> bool:
        """
        Whether nobody is missing for the next generation.
        """
        return self._joining == len(self._by_id) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """
        The longest that a member may need to join again.
        """
        return max((member.rebalance_timeout_ms for member in self._by_id.values()), default=0)

    def understand(self, protocols: Protocols) -> bool:
        """
        Whether all members speak one of these.
        """
        return any(self._speakers[name] == len(self._by_id) for name in protocols)

    def vote(self) -> str:
        """
        Of the protocols that all members speak, the one that most of them prefer.
        """
        common = {name for name, speakers in self._speakers.items() if speakers == len(self._by_id)}
        votes = Counter(next(name for name in member.protocols if name in common) for member in self._by_id.values())
        return votes.most_common(1)[0][0]

    def hold_join(self, member: Member) -> Deferred[Joined]:
        """
        Let it wait for the next generation. It may ask again, on another connection.
        """
        self._answer_before(self.take_join(member))
        member.joining = Deferred()
        self._joining += 1
        return member.joining

    def take_join(self, member: Member) -> Deferred[Joined] | None:
        """
        The answer it waits for, to be given by the caller.
        """
        waiting, member.joining = member.joining, None
        self._joining -= waiting is not None
        return waiting

    def hold_sync(self, member: Member) -> Deferred[Synced]:
        """
        Let it wait for its assignment.
        """
        self._answer_before(self.take_sync(member))
        member.syncing = Deferred()
        return member.syncing

    def take_sync(self, member: Member) -> Deferred[Synced] | None:
        """
        The answer it waits for, to be given by the caller.
        """
        waiting, member.syncing = member.syncing, None
        return waiting

    def refuse(self, member: Member, error: KafkaError) -> None:
        """
        Answer it with the error, where it waits.
        """
        for waiting in (self.take_join(member), self.take_sync(member)):
            if waiting is not None:
                waiting.errback(error)

    def _answer_before(self, waiting: Deferred[Joined] | Deferred[Synced] | None) -> None:
        if waiting is not None:
            waiting.errback(KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "the member has asked again"))
