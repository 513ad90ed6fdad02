"""
The state of a classic group, and its journal: a row is written whole, after each change that must survive.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from enum import Enum
from functools import partial

from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.groups.classic.members import Member, Members
from kgateway.groups.classic.requests import Protocols
from kgateway.groups.deadline import Deadline
from kgateway.groups.records import Row, Write
from kgateway.log_messages import AFTER_GROUP_WRITE_FAILED, GROUP_STATE_NOT_WRITTEN, GROUP_WRITE_FAILED
from kgateway.messages.stored.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kgateway.wire.errors import ErrorCode, KafkaError

CONSUMER = "consumer"  # the protocol type whose metadata can be read
_UNKNOWN = -1


class Phase(Enum):
    """
    As Kafka's tools name them.
    """

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"  # members join
    COMPLETING_REBALANCE = "CompletingRebalance"  # the leader assigns, and members sync
    STABLE = "Stable"
    DEAD = "Dead"  # not coordinated here any more


class ClassicGroupState:
    def __init__(self, group_id: str, now_ms: Callable[[], int]) -> None:
        self.group_id = group_id
        self.phase = Phase.EMPTY
        self.since_ms: int | None = now_ms()  # when the phase began, by the wall clock
        self.generation = 0
        self.protocol_type = ""
        self.protocol: str | None = None
        self.members = Members()
        self._now_ms = now_ms

    def enter(self, phase: Phase) -> None:
        self.phase, self.since_ms = phase, self._now_ms()

    def begin_generation(self) -> None:
        """
        Put all members into a new generation, in which none has synced.
        """
        members = self.members
        self.generation += 1
        self.protocol = members.vote() if members else None
        members.unsynced = {member.id for member in members}
        self.enter(Phase.COMPLETING_REBALANCE if members else Phase.EMPTY)

    def reads(self, topic: str) -> bool:
        """
        Whether a member subscribes to the topic, or may for all that is known.
        """
        subscribed = (member.protocols.topics if self.protocol_type == CONSUMER else None for member in self.members)
        return any(topics is None or topic in topics for topics in subscribed)

    def row(self, assignments: Mapping[str, bytes]) -> Row:
        """
        The whole state, with these assignments by member id.
        """
        return Row(
            GroupMetadataKey(group=self.group_id),
            GroupMetadataValue(
                protocol_type=self.protocol_type,
                generation=self.generation,
                protocol=self.protocol,
                leader=self.members.leader,
                current_state_timestamp=_UNKNOWN if self.since_ms is None else self.since_ms,
                members=list(self._stored(assignments)),
            ),
        )

    def restore(self, stored: GroupMetadataValue, session: Callable[[str], Deadline]) -> None:
        """
        Take over what was written. Of the protocols that a member spoke, only the chosen one was.
        """
        self.generation, self.protocol, self.protocol_type = stored.generation, stored.protocol, stored.protocol_type
        self.since_ms = None if stored.current_state_timestamp == _UNKNOWN else stored.current_state_timestamp
        for member in stored.members:
            self.members.add(_restored(member, stored.protocol or "", session(member.member_id)))
        if stored.leader is not None and stored.leader in self.members:
            self.members.leader = stored.leader
        self.phase = Phase.STABLE if self.members else Phase.EMPTY

    def _stored(self, assignments: Mapping[str, bytes]) -> Iterator[MemberMetadata]:
        for member in self.members:
            yield MemberMetadata(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.protocols.metadata(self.protocol or ""),
                assignment=assignments.get(member.id, b""),
            )


def _restored(stored: MemberMetadata, protocol: str, session: Deadline) -> Member:
    unknown = stored.rebalance_timeout == _UNKNOWN
    return Member(
        id=stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        session_timeout_ms=stored.session_timeout,
        rebalance_timeout_ms=stored.session_timeout if unknown else stored.rebalance_timeout,
        protocols=Protocols([(protocol, stored.subscription)]),
        session=session,
        assignment=stored.assignment,
    )


Written = Callable[[KafkaError | None], object]


class ClassicGroupJournal:
    """
    Writes the rows of one group. The last one is what a restarted gateway will know of it.
    """

    _log = Logger()

    def __init__(self, write: Write) -> None:
        self._write = write
        self._committed: Row | None = None
        self._under_way: list[Row] = []  # rows that are not committed, each of which may fail

    @property
    def last(self) -> Row | None:
        return self._under_way[-1] if self._under_way else self._committed

    def replay(self, row: Row) -> None:
        self._committed = None if row.value is None else row

    def write(self, row: Row, written: Written) -> None:
        """
        Call `written` when the row is committed, now or later, or with the error that prevents it.
        """
        self._under_way.append(row)
        try:
            committed = self._write([row])
        except KafkaError as error:
            self._undo(row, error, written)
            return
        if committed is None:
            self._succeeded(row, written)
            return
        committed.addCallbacks(lambda _: self._succeeded(row, written), partial(self._failed, row, written))
        committed.addErrback(lambda failure: self._log.failure(AFTER_GROUP_WRITE_FAILED, failure))

    def rename(self, instance_id: str | None, member_id: str) -> None:
        """
        Write that a static member of the last generation has this id now. A gateway that restarts before the next
        generation would know only the old id, and fence a member that is alive.
        """
        if instance_id is None or self.last is None or not isinstance(self.last.value, GroupMetadataValue):
            return
        old = [each.member_id for each in self.last.value.members if each.group_instance_id == instance_id]
        if old and old[0] != member_id:
            self.write(Row(self.last.key, _renamed(self.last.value, old[0], member_id)), lambda _: None)

    def _succeeded(self, row: Row, written: Written) -> None:
        self._end(row)
        self._committed = row
        written(None)

    def _failed(self, row: Row, written: Written, failure: Failure) -> None:
        error = failure.value
        if not isinstance(error, KafkaError):
            self._log.failure(GROUP_WRITE_FAILED, failure)
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        self._undo(row, error, written)

    def _undo(self, row: Row, error: KafkaError, written: Written) -> None:
        self._end(row)
        self._log.warn(GROUP_STATE_NOT_WRITTEN, key=row.key, error=error)
        written(error)

    def _end(self, row: Row) -> None:
        self._under_way = [other for other in self._under_way if other is not row]


def _renamed(stored: GroupMetadataValue, old: str, new: str) -> GroupMetadataValue:
    stored = copy(stored)
    stored.members = [copy(member) for member in stored.members]
    for member in stored.members:
        if member.member_id == old:
            member.member_id = new
    if stored.leader == old:
        stored.leader = new
    return stored
