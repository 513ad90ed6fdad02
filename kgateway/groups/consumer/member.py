"""
A member of a consumer group: its profile, and how far it is on the way to its target.
"""

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

from kgateway.groups.assignors.assignment import OWNS_NOTHING, Assignment, Owned

JOINING = 0  # this and the next two are sent in place of an epoch
LEAVING = -1
AWAY = -2  # a static member that will come back

INITIAL_EPOCH = 1  # of a group


class MemberState(IntEnum):
    """
    As the records of current assignments have it.
    """

    STABLE = 0  # it has its target, as of its epoch
    UNREVOKED_PARTITIONS = 1  # it has to revoke partitions first
    UNRELEASED_PARTITIONS = 2  # others have to release partitions first
    UNKNOWN = 127  # a newer server wrote it


class ClassicProtocol(NamedTuple):
    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Classic:
    """
    What is known only of members of the classic protocol.
    """

    session_timeout_ms: int
    protocols: tuple[ClassicProtocol, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """
    What a member says of itself.
    """

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    pattern: str = ""  # empty: none
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: Classic | None = None

    def is_of(self, client_id: str, client_host: str) -> bool:
        return self.client_id == client_id and self.client_host == client_host


@dataclass(frozen=True, slots=True)
class Progress:
    """
    What a member owns, and since when.
    """

    epoch: int = JOINING
    previous_epoch: int = LEAVING  # accepted too, because the answer with the epoch may be lost
    state: MemberState = MemberState.STABLE
    assigned: Owned = field(default_factory=dict)
    revoking: Owned = field(default_factory=dict)  # owned until the member no longer reports them
    oldest_epoch: int | None = None  # any from this to `epoch` is possible: no heartbeat since the group was loaded

    def reached(self, target_epoch: int) -> bool:
        """
        Whether it has all of its target as of this epoch, and nothing else.
        """
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def may_be_in(self, epoch: int) -> bool:
        """
        Whether it is in this epoch, as far as is known.
        """
        return epoch == self.epoch or (self.oldest_epoch is not None and self.oldest_epoch <= epoch <= self.epoch)

    def confirmed_in(self, epoch: int) -> "Progress":
        """
        The progress of a member that reports one of the epochs that are possible.
        """
        return replace(self, epoch=epoch, previous_epoch=epoch, oldest_epoch=None)

    @property
    def owned(self) -> Assignment:
        """
        All that it may be reading.
        """
        parts = self.assigned, self.revoking
        topics = self.assigned.keys() | self.revoking.keys()
        return {topic_id: frozenset[int]().union(*(part.get(topic_id, ()) for part in parts)) for topic_id in topics}

    def away(self) -> "Progress":
        """
        The progress of a static member that leaves and will come back: it has revoked what it had to.
        """
        # Its successor commits under its own epochs, which know nothing of those before, so no partition has one.
        assigned = {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in self.assigned.items()}
        return replace(self, epoch=AWAY, assigned=assigned, revoking=OWNS_NOTHING)

    def inherited(self) -> "Progress":
        """
        The progress of the member that replaces this one.
        """
        return replace(self, epoch=JOINING, previous_epoch=JOINING)


NEW = Progress()
