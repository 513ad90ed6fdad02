"""
Requests of members of classic groups and their answers, whichever version of the protocol a member speaks.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kgateway.config.settings import Settings
from kgateway.messages.consumer_protocol import ConsumerProtocolSubscription
from kgateway.wire.codec import decoder
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed

_VERSION_BYTES = 2
_COMMON_VERSION = 0  # each later version begins with the fields of this one
_UNREAD: frozenset[str] = frozenset({""})


class Protocols:
    """
    The protocols of one member by name, in its order of preference, each with the member's metadata.

    To the coordinator they are names and opaque bytes; only consumers name topics in theirs.
    """

    __slots__ = ("_metadata", "_topics")

    def __init__(self, offered: Iterable[tuple[str, bytes]]) -> None:
        self._metadata: dict[str, bytes] = {}
        self._topics: frozenset[str] | None = _UNREAD
        for name, metadata in offered:
            self._metadata.setdefault(name, metadata)

    def __len__(self) -> int:
        return len(self._metadata)

    def __iter__(self) -> Iterator[str]:
        return iter(self._metadata)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Protocols):
            return NotImplemented
        return list(self._metadata.items()) == list(other._metadata.items())

    __hash__ = None  # type: ignore[assignment]  # says that it has none, as `list` does

    def metadata(self, name: str) -> bytes:
        return self._metadata[name]

    @property
    def topics(self) -> frozenset[str] | None:
        """
        The topics that a consumer names in any of them; `None` if one cannot be read.
        """
        if self._topics is _UNREAD:
            self._topics = _topics(self._metadata.values())
        return self._topics


def _topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    decode = decoder(ConsumerProtocolSubscription, _COMMON_VERSION)
    topics = set[str]()
    for subscription in subscriptions:
        try:
            read, _ = decode(subscription, _VERSION_BYTES)
        except Malformed:
            return None
        topics.update(read.topics)
    return frozenset(topics)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    member_id: str  # empty the first time
    instance_id: str | None = None  # of a static member (KIP-345)
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    reason: str | None = None
    takes_member_id: bool  # it can get its id first, and join again with it (KIP-394)
    can_skip_assignment: bool  # as a returning leader it understands that it must not assign (KIP-814)

    def check_session(self, settings: Settings) -> None:
        shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        if not shortest <= self.session_timeout_ms <= longest:
            reason = f"session_timeout_ms is {self.session_timeout_ms}, allowed are {shortest} to {longest}"
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT, reason)


class MemberIdRequired(KafkaError):
    def __init__(self, member_id: str) -> None:
        super().__init__(ErrorCode.MEMBER_ID_REQUIRED, f"join again as {member_id}")
        self.member_id = member_id


class ListedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinResult:
    """
    The generation that a member is in, and what its leader assigns by.
    """

    member_id: str
    generation: int
    protocol_type: str
    protocol: str
    leader: str
    members: Sequence[ListedMember] = ()  # for the leader only
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRequest:
    """
    A member asks for its assignment. The leader's request has those of all.
    """

    member_id: str
    instance_id: str | None = None
    generation: int
    protocol_type: str | None = None  # `None`: not compared with the group's
    protocol: str | None = None
    assignments: Sequence[tuple[str, bytes]] = ()  # by member id


@dataclass(frozen=True, slots=True)
class SyncResult:
    protocol_type: str
    protocol: str
    assignment: bytes


@dataclass(frozen=True, slots=True)
class LeavingMember:
    """
    A member that leaves, or a static one that an administrator removes by its instance id.
    """

    member_id: str
    instance_id: str | None = None
    reason: str | None = None
