"""
What the coordinator asks of a group, whichever protocol its members speak.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Protocol

from kgateway.groups.rows import Row
from kgateway.wire.uuids import Uuid

NO_GENERATION = -1
NO_MEMBER = ""

# Whether a member may commit an offset of this partition of a topic; a KafkaError where it may not.
PartitionCheck = Callable[[Uuid, int], None]


class GroupType(Enum):
    """
    As ListGroups tells it.
    """

    CLASSIC = "classic"
    CONSUMER = "consumer"


class Group(Protocol):
    """
    A group: its members, and what they are to read. Its offsets are kept beside it (offsets.py).
    """

    group_id: str
    type: GroupType

    @property
    def state(self) -> str:
        """
        As ListGroups and DescribeGroups tell it: Empty, Stable, PreparingRebalance, ...
        """

    @property
    def protocol_type(self) -> str:
        """
        What its members are: "consumer", "connect", ...; empty where nobody has said.
        """

    @property
    def is_empty(self) -> bool:
        """
        Whether it has no member.
        """

    @property
    def empty_since_ms(self) -> int | None:
        """
        By the wall clock, since when it has none; `None` while it has some, or where that is not known.
        """

    def reads(self, topic: str) -> bool:
        """
        Whether a member is subscribed to the topic, as far as that can be told: then its offsets do not expire, and
        cannot be deleted.
        """

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool, knows_epochs: bool = True
    ) -> PartitionCheck | None:
        """
        Whether who says so may commit offsets, by its generation or member epoch; a KafkaError where it may not. In old
        versions of the request there are no member epochs.
        A commit is a sign of life. Where it depends on the partition (KIP-1251), what is to be asked for each.
        """

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """
        Whether it may fetch offsets; a KafkaError where it is fenced.
        """

    def replay(self, row: Row) -> None:
        """
        This was written, by this gateway or another: while the group is loaded, oldest row first.
        """

    def loaded(self) -> None:
        """
        All rows are there: the sessions of its members begin anew.
        """

    def rows(self) -> Iterator[Row]:
        """
        All that is true of it now: a replay of these makes it again.
        """

    def stop(self) -> None:
        """
        This gateway is its coordinator no more: let all timers go, and tell who waits NOT_COORDINATOR.
        """
