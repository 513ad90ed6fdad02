"""
What a member asks of its group and what it is told, whichever version of the protocol it speaks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kgateway.config.settings import Settings
from kgateway.groups.classic.protocols import Protocols
from kgateway.wire.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """
    A member wants to be in the next generation.
    """

    member_id: str  # empty the first time
    instance_id: str | None = None  # of a static member (KIP-345)
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    reason: str | None = None
    takes_member_id: bool  # it can be told its id first, and join again with it (KIP-394)
    can_skip_assignment: bool  # a leader that comes back can be told not to assign (KIP-814)

    def check_session(self, settings: Settings) -> None:
        """
        Refuse a session that is too short or too long.
        """
        shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        if not shortest <= self.session_timeout_ms <= longest:
            reason = f"session_timeout_ms is {self.session_timeout_ms}, allowed are {shortest} to {longest}"
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT, reason)


class MemberIdRequired(KafkaError):
    """
    The member is to join again, with the id that it gets here.
    """

    def __init__(self, member_id: str) -> None:
        super().__init__(ErrorCode.MEMBER_ID_REQUIRED, f"join again as {member_id}")
        self.member_id = member_id


class Listed(NamedTuple):
    """
    A member, as its leader is told of it.
    """

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Joined:
    """
    The generation that a member is in, and what the leader assigns by.
    """

    member_id: str
    generation: int
    protocol_type: str
    protocol: str
    leader: str
    members: Sequence[Listed] = ()  # for the leader alone
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """
    A member wants its assignment; the leader brings those of all.
    """

    member_id: str
    instance_id: str | None = None
    generation: int
    protocol_type: str | None = None  # `None`: not to be compared
    protocol: str | None = None
    assignments: Sequence[tuple[str, bytes]] = ()  # by member id


@dataclass(frozen=True, slots=True)
class Synced:
    """
    The assignment of one member.
    """

    protocol_type: str
    protocol: str
    assignment: bytes


@dataclass(frozen=True, slots=True)
class Leave:
    """
    A member goes, or an administrator takes it out by its instance id.
    """

    member_id: str
    instance_id: str | None = None
    reason: str | None = None
