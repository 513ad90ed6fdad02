"""
What is known of a group, as a line of events: what its members tell, what is done to them, what others see.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Place = str  # TOPIC:PARTITION


@dataclass(frozen=True)
class Event:
    """
    Something that happened, at a time of the wall clock.
    """

    at: float


@dataclass(frozen=True)
class OfMember(Event):
    """
    It happened to a member, who has a name of the test's own.
    """

    member: str


@dataclass(frozen=True)
class Assigned(OfMember):
    """
    It has these, beside those that it had.
    """

    places: Sequence[Place]


@dataclass(frozen=True)
class Revoked(OfMember):
    """
    It lets these go, before the group knows it.
    """

    places: Sequence[Place]


@dataclass(frozen=True)
class Lost(OfMember):
    """
    It has found out that these are not its own any more.
    """

    places: Sequence[Place]


@dataclass(frozen=True)
class Processed(OfMember):
    """
    It is through with these records.
    """

    offsets: Mapping[Place, Sequence[int]]


@dataclass(frozen=True)
class Committed(OfMember):
    """
    Its commit, begun at a time, was accepted.
    """

    since: float
    offsets: Mapping[Place, int]


@dataclass(frozen=True)
class Refused(OfMember):
    """
    Its commit was not accepted, with this code of Kafka's, or one below zero of its library.
    """

    code: int
    why: str


@dataclass(frozen=True)
class Failed(OfMember):
    """
    Its library tells of something else.
    """

    why: str


@dataclass(frozen=True)
class Left(OfMember):
    """
    It processes nothing more, and leaves.
    """


@dataclass(frozen=True)
class Ended(OfMember):
    """
    Its process has ended: it was killed, or has left.
    """


@dataclass(frozen=True)
class Frozen(OfMember):
    """
    Its process is stopped, and knows nothing of what happens.
    """


@dataclass(frozen=True)
class Thawed(OfMember):
    """
    Its process goes on.
    """


@dataclass(frozen=True)
class Seen(Event):
    """
    What the server says is committed, somewhere between two times.
    """

    since: float
    offsets: Mapping[Place, int]
