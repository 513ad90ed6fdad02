"""
What was measured of both servers, as a table with a verdict.

A value is the median of the rounds, with the least and the most of them behind it. The ratio is kgateway's value to
Kafka's, round by round, since the two of one round ran one after the other: it is the median of those ratios, and not
the ratio of the medians.
"""

from collections.abc import Callable, Sequence
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

    def both(self, shown: Callable[[float], str], field: str) -> str:
        """
        The medians of a field, kgateway's before Kafka's; empty if it was not measured.
        """
        sides = []
        for side in (self.kgateway, self.kafka):
            found = [value for measured in side if (value := getattr(measured, field)) is not None]
            sides.append(shown(median(found)) if found else "")
        return " / ".join(sides) if any(sides) else ""


def number(value: float) -> str:
    """
    The number with its significant digits.
    """
    for least, digits in ((100, 0), (10, 1), (1, 2)):
        if abs(value) >= least:
            return f"{value:,.{digits}f}"
    return f"{value:.3f}"


def _spread(values: Sequence[float], shown: Callable[[float], str]) -> str:
    if len(values) == 1:
        return shown(values[0])
    return f"{shown(median(values))} ({shown(min(values))} to {shown(max(values))})"


def _verdict(compared: Compared) -> str:
    goal = compared.row.goal
    if goal is None:
        return ""
    judged = [found.value for found in compared.kgateway] if goal.by_itself else compared.ratios
    return "met" if goal.met(median(judged)) else "**MISSED**"


def _cpu(compared: Compared) -> str:
    told = compared.both(number, "server_cpu_s")
    return f"{told} per {compared.row.per}" if told else ""


_COLUMNS: tuple[tuple[str, str, Callable[[Compared], str]], ...] = (
    ("work", "---", lambda compared: compared.row.work),
    ("unit", "---", lambda compared: compared.row.unit),
    ("kgateway", "---:", lambda compared: _spread([found.value for found in compared.kgateway], number)),
    ("{other}", "---:", lambda compared: _spread([found.value for found in compared.kafka], number)),
    ("ratio", "---:", lambda compared: _spread(compared.ratios, lambda ratio: f"{ratio:.2f}")),
    ("goal", "---", lambda compared: str(compared.row.goal or "")),
    ("", "---", _verdict),
    ("server's CPU s, kgateway / {other}", "---:", _cpu),
    ("client's cores", "---:", lambda compared: compared.both(lambda busy: f"{busy:.1f}", "client_busy")),
    ("remarks", "---", lambda compared: compared.both(compared.row.remark.format, "remark")),
)


def table(found: Sequence[Compared], other: str = "Kafka") -> str:
    """
    A line for each thing measured; a column in which nothing would stand is left out. `other` is whoever stands beside
    kgateway.
    """
    columns = [(heading.format(other=other), rule, [cell(row) for row in found]) for heading, rule, cell in _COLUMNS]
    columns = [column for column in columns if any(column[2])]
    lines = [[heading for heading, _, _ in columns], [rule for _, rule, _ in columns]]
    lines += [[cells[index] for _, _, cells in columns] for index in range(len(found))]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
