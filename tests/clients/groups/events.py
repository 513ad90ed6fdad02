"""
All that is known of a group as a sequence of events: the reports of its members, what is done to them, and what others
observe.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Place = str  # TOPIC:PARTITION


@dataclass(frozen=True)
class Event:
    """
    An event at a time of the wall clock.
    """

    at: float


@dataclass(frozen=True)
class OfMember(Event):
    """
    An event of a member, whose name is the test's own.
    """

    member: str


@dataclass(frozen=True)
class Assigned(OfMember):
    """
    The member got these partitions in addition to those it had.
    """

    places: Sequence[Place]


@dataclass(frozen=True)
class Revoked(OfMember):
    """
    The member gives up these partitions, before the group knows it.
    """

    places: Sequence[Place]


@dataclass(frozen=True)
class Lost(OfMember):
    """
    The member has found out that it no longer owns these partitions.
    """

    places: Sequence[Place]


@dataclass(frozen=True)
class Processed(OfMember):
    """
    The member has processed these records.
    """

    offsets: Mapping[Place, Sequence[int]]


@dataclass(frozen=True)
class Committed(OfMember):
    """
    A commit of the member, begun at a time, was accepted.
    """

    since: float
    offsets: Mapping[Place, int]


@dataclass(frozen=True)
class Refused(OfMember):
    """
    A commit of the member was refused with this code of Kafka's, or a negative one of its library.
    """

    code: int
    why: str


@dataclass(frozen=True)
class Failed(OfMember):
    """
    The library reports another error.
    """

    why: str


@dataclass(frozen=True)
class Left(OfMember):
    """
    The member has processed its last record, and leaves.
    """


@dataclass(frozen=True)
class Ended(OfMember):
    """
    The process of the member has ended: it was killed, or has left.
    """


@dataclass(frozen=True)
class Frozen(OfMember):
    """
    The process of the member is stopped, and notices nothing.
    """


@dataclass(frozen=True)
class Thawed(OfMember):
    """
    The process of the member continues.
    """


@dataclass(frozen=True)
class Seen(Event):
    """
    The offsets that the server reported as committed between two times.
    """

    since: float
    offsets: Mapping[Place, int]
