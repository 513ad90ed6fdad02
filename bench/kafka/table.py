"""
What was measured of both servers, in all rounds, and what it should be.

The ratio is kgateway's value divided by Kafka's, round by round, because both ran in the same round: a result has the
median of those ratios, and not the ratio of the medians.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Goal:
    """
    What kgateway's value should be, in parts of Kafka's; or by itself.
    """

    ratio: float
    at_least: bool
    by_itself: bool = False

    def met(self, ratio: float) -> bool:
        """
        Whether the ratio meets the target.
        """
        return ratio >= self.ratio if self.at_least else ratio <= self.ratio

    @classmethod
    def parse(cls, text: str) -> "Goal":
        """
        The inverse of str().
        """
        by_itself, (sign, bound) = text.startswith("itself "), text.removeprefix("itself ").split()
        return cls(float(bound), sign == ">=", by_itself)

    def __str__(self) -> str:
        told = f"{'>=' if self.at_least else '<='} {self.ratio:g}"
        return f"itself {told}" if self.by_itself else told


def at_least(ratio: float) -> Goal:
    """
    A target for values that should be high.
    """
    return Goal(ratio, True)


def at_most(ratio: float) -> Goal:
    """
    A target for values that should be low.
    """
    return Goal(ratio, False)


def itself_at_most(value: float) -> Goal:
    """
    A target for values that should be low, whatever Kafka's value is.
    """
    return Goal(value, False, by_itself=True)


@dataclass(frozen=True, slots=True)
class Row:
    """
    A measured quantity.
    """

    work: str
    unit: str
    goal: Goal | None = None
    per: str = ""  # for how much work the server's seconds are told
    remark: str = ""  # a format for the number that a remark tells


@dataclass(frozen=True, slots=True)
class Measured:
    """
    The result of one round on one server.
    """

    value: float
    server_cpu_s: float | None = None  # for as much work as the row says
    client_busy: float | None = None  # in cores
    remark: float | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """
    What all rounds found; those of the same place in both lists ran one after the other.
    """

    row: Row
    kgateway: Sequence[Measured]
    kafka: Sequence[Measured]

    @property
    def ratios(self) -> list[float]:
        return [ours.value / theirs.value for ours, theirs in zip(self.kgateway, self.kafka, strict=True)]

    def medians(self, field: str) -> tuple[float, float] | None:
        """
        The medians of a field, kgateway's before the other server's; None if it was not measured.
        """
        sides = []
        for side in (self.kgateway, self.kafka):
            found = [value for measured in side if (value := getattr(measured, field)) is not None]
            if not found:
                return None
            sides.append(median(found))
        return sides[0], sides[1]


def number(value: float) -> str:
    """
    The number with its significant digits.
    """
    for least, digits in ((100, 0), (10, 1), (1, 2)):
        if abs(value) >= least:
            return f"{value:,.{digits}f}"
    return f"{value:.3f}"
