"""
What a report says of a topic.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """
    A piece of time, and what came in it; bytes are those of keys and values, before compression.
    """

    start_ms: int
    records: int
    bytes: int


@dataclass(frozen=True, slots=True, order=True)
class Bin:
    """
    How many values are as large as this, and larger than half of it.
    """

    up_to: int
    records: int


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """
    A partition: the offsets that were read, and how much stands there.
    """

    index: int
    start: int
    end: int
    records: int
    bytes: int


@dataclass(frozen=True, slots=True, order=True)
class Frequent:
    """
    A key that came often.
    """

    key: bytes
    records: int


@dataclass(frozen=True, slots=True)
class Times:
    """
    When records came, in slots of one width. Some may stand outside: with a timestamp that is far from all others.
    """

    first_ms: int
    last_ms: int
    slot_ms: int
    slots: Sequence[Slot]
    outside: int
    of_server: int  # so many records have the time at which the server appended them; the others, the producer's


@dataclass(frozen=True, slots=True)
class Sizes:
    """
    How large values are.
    """

    bins: Sequence[Bin]
    largest: int
    nulls: int

    def share_up_to(self, share: float) -> int:
        """
        A size that so many of the values do not exceed.
        """
        wanted = share * sum(one.records for one in self.bins)
        counted = 0
        for one in self.bins:
            counted += one.records
            if counted >= wanted:
                return min(one.up_to, self.largest)
        return self.largest


@dataclass(frozen=True, slots=True)
class Keys:
    """
    Which keys there are.
    """

    distinct: int
    without: int
    most: Sequence[Frequent]


@dataclass(frozen=True, slots=True)
class Lag:
    """
    How far a group is behind the end of each partition; none where it has committed nothing.
    """

    group_id: str
    state: str
    parts: Mapping[int, int | None]

    @property
    def total(self) -> int:
        """
        In all partitions that it has committed something of.
        """
        return sum(lag or 0 for lag in self.parts.values())


@dataclass(frozen=True, slots=True, order=True)
class Delay:
    """
    How long it took until a record was appended, of half the records and of 99 in 100, in a piece of time.
    """

    start_ms: int
    median_ms: int
    late_ms: int


@dataclass(frozen=True, slots=True)
class Latency:
    """
    The same of all records of which it is known.
    """

    records: int
    median_ms: int
    late_ms: int
    slots: Sequence[Delay]


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """
    All of a topic. One without records has neither times nor sizes nor keys.
    """

    name: str
    parts: Sequence[Part]
    lags: Sequence[Lag] = ()
    times: Times | None = None
    sizes: Sizes | None = None
    keys: Keys | None = None
    latency: Latency | None = None
    sent: str | None = field(default=None)  # where records were said to tell when they were sent

    @property
    def records(self) -> int:
        """
        In all partitions.
        """
        return sum(part.records for part in self.parts)

    @property
    def bytes(self) -> int:
        """
        The same.
        """
        return sum(part.bytes for part in self.parts)
