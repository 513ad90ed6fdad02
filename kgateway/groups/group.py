"""
What the coordinator needs of a group, whichever protocol its members speak.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Protocol

from kgateway.groups.records import Row
from kgateway.wire.uuids import Uuid

NO_GENERATION = -1
NO_MEMBER = ""

# Raises a KafkaError if a member may not commit an offset of this partition of a topic.
PartitionCheck = Callable[[Uuid, int], None]


class GroupType(Enum):
    """
    The types that ListGroups knows.
    """

    CLASSIC = "classic"
    CONSUMER = "consumer"


class Group(Protocol):
    """
    A group: its members, and what they are to read. Its offsets are in `GroupOffsets` (offsets.py).
    """

    group_id: str
    type: GroupType

    @property
    def state(self) -> str:
        """
        As ListGroups and DescribeGroups name it: Empty, Stable, PreparingRebalance, ...
        """

    @property
    def protocol_type(self) -> str:
        """
        The kind of its members: "consumer", "connect", ...; empty if none has joined.
        """

    @property
    def is_empty(self) -> bool: ...

    @property
    def empty_since_ms(self) -> int | None:
        """
        Since when it has no members, by the wall clock. `None` while it has some, or if the time is not known.
        """

    def reads(self, topic: str) -> bool:
        """
        Whether a member subscribes to the topic, as far as can be known: then its offsets do not expire, and cannot be
        deleted.
        """

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool, knows_epochs: bool = True
    ) -> PartitionCheck | None:
        """
        Raise a KafkaError if this member may not commit offsets, by its generation or member epoch. In old versions
        of the request there are no member epochs.

        A commit is a sign of life. If the answer depends on the partition (KIP-1251), this returns the check of each.
        """

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """
        Raise a KafkaError if the member is fenced, and may not fetch offsets.
        """

    def replay(self, row: Row) -> None:
        """
        Apply a row of the log, while the group is loaded, oldest row first.
        """

    def loaded(self) -> None:
        """
        All rows are replayed: the sessions of its members begin again.
        """

    def rows(self) -> Iterator[Row]:
        """
        Its whole state: a replay of these rows makes it again.
        """

    def stop(self) -> None:
        """
        Coordinate it no more: cancel all timers, and answer waiting members NOT_COORDINATOR.
        """
