"""
Results files: what a benchmark has measured, when, on which machine and with which versions.

`--results FILE` writes one. `python -m bench.page` makes docs/benchmarks.md of those in `bench/measured/`, and
`python -m bench.plot` draws one. A file has rows, each with the values of kgateway and of another server, or tables
under the names of the modules that printed them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from bench import machine
from bench.calibration import Calibration, calibrate
from bench.kafka.table import Compared, Goal, number

_LINE = 160  # characters of a results file
_DIGITS = 6  # at most, behind the point of a ratio

Spread = tuple[float, float, float]  # median, least, most
Both = tuple[float, float]  # kgateway's median, the other server's


@dataclass(frozen=True, slots=True)
class Origin:
    """
    When and with what something was measured.
    """

    date: str  # of the start, in UTC, to the minute; or just the day
    machine: str
    versions: Mapping[str, str]
    conditions: str = ""  # how many rounds
    source: str = ""  # for values that no benchmark has written
    before: Calibration | None = None
    after: Calibration | None = None

    @classmethod
    def now(cls, *packages: str, folder: Path | None = None, conditions: str = "", **others: str) -> "Origin":
        """
        Here and now, with kgateway, these packages of Python and other programs, and with the data in this folder.
        """
        versions = {"Python": machine.python(), "kgateway": machine.kgateway()}
        versions |= {package: version(package) for package in packages} | others
        date = f"{datetime.now(UTC):%Y-%m-%dT%H:%MZ}"
        return cls(date, machine.machine(folder), versions, conditions, before=calibrate(folder))

    @property
    def day(self) -> str:
        return self.date[:10]

    @property
    def versions_told(self) -> str:
        return ", ".join(f"{program} {version}" for program, version in self.versions.items())

    @property
    def calibration_told(self) -> str:
        """
        Both calibrations in a sentence.
        """
        if not self.before:
            return ""
        when = " (and change during the run)" if self.after else ""
        return f"Calibration{when}: {self.before.told_until(self.after)}."

    @property
    def conditions_told(self) -> str:
        """
        All but the calibrations.
        """
        conditions = f" ({self.conditions})" if self.conditions else ""
        told = f"on {self.day}{conditions}: {self.machine}; {self.versions_told}."
        return f"{told} {self.source}".strip()

    def __str__(self) -> str:
        return f"{self.conditions_told} {self.calibration_told}".strip()


@dataclass(frozen=True, slots=True)
class Result:
    """
    A row of a table that compares kgateway with another server.
    """

    work: str
    unit: str
    kgateway: Spread
    other: Spread
    ratio: Spread
    goal: str = ""
    per: str = ""  # for how much work the server's seconds are told
    server_cpu_s: Both | None = None
    client_cores: Both | None = None
    remark: str = ""

    @classmethod
    def of(cls, found: Compared) -> "Result":
        kgateway, other = ([measured.value for measured in side] for side in (found.kgateway, found.kafka))
        row = found.row
        return cls(
            row.work,
            row.unit,
            _spread(kgateway),
            _spread(other),
            _spread(found.ratios),
            str(row.goal or ""),
            row.per,
            found.medians("server_cpu_s"),
            found.medians("client_busy"),
            _remark(row.remark, found.medians("remark")),
        )

    @property
    def more_is_better(self) -> bool:
        return self.unit.endswith("/s")

    @property
    def times_as_good(self) -> Spread:
        """
        The ratio, or its inverse where less is better.
        """
        middle, least, most = self.ratio
        return self.ratio if self.more_is_better else (1 / middle, 1 / most, 1 / least)

    @property
    def ratio_told(self) -> str:
        """
        The median of the ratios, with so many digits that it shows whether the goal is met.
        """
        goal = Goal.parse(self.goal) if self.goal else None
        return _ratio_told(self.ratio[0], None if goal and goal.by_itself else goal)

    @property
    def meets_goal(self) -> bool | None:
        """
        Whether it does; None if it has no goal.
        """
        if not self.goal:
            return None
        goal = Goal.parse(self.goal)
        return goal.met(self.kgateway[0] if goal.by_itself else self.ratio[0])


@dataclass(frozen=True, slots=True)
class Table:
    """
    A table as it was printed.
    """

    columns: Sequence[str]
    rules: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __str__(self) -> str:
        heading, *rows = (f"| {' | '.join(line)} |" for line in (self.columns, *self.rows))
        return "\n".join([heading, f"|{'|'.join(self.rules)}|", *rows])


class NoResults(Exception):
    """
    A file cannot be read as that of results. The message names it, and says why.
    """


@dataclass(frozen=True, slots=True)
class Results:
    """
    What one run has measured.
    """

    origin: Origin
    title: str = ""
    other: str = ""  # the server beside kgateway, if any
    short: bool = False  # just a trial of whether all of it works
    rows: list[Result] = field(default_factory=list)
    tables: dict[str, list[Table]] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        path.write_text(_dumped(asdict(self, dict_factory=_filled)) + "\n")

    @classmethod
    def read(cls, path: Path) -> "Results":
        try:
            return cls._read(json.loads(path.read_text()))
        except OSError as error:
            raise NoResults(f"{path}: {error.strerror}") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise NoResults(f"{path} is not a file that --results has written: {error!r}") from error

    @classmethod
    def _read(cls, data: Any) -> "Results":
        origin = data.pop("origin")
        for moment in {"before", "after"} & origin.keys():
            origin[moment] = Calibration(**origin[moment])
        rows = [Result(**{name: _value(value) for name, value in row.items()}) for row in data.pop("rows", [])]
        tables = {name: [Table(**table) for table in printed] for name, printed in data.pop("tables", {}).items()}
        return cls(origin=Origin(**origin), rows=rows, tables=tables, **data)


def _remark(form: str, values: Both | None) -> str:
    """
    Both values, and once what the remark says of them.
    """
    if not values:
        return ""
    ours, theirs = map(form.format, values)
    return f"{ours.removesuffix(form.rpartition('}')[2])} / {theirs}"


def _ratio_told(ratio: float, goal: Goal | None = None) -> str:
    digits = 1 if ratio >= 10 else 2
    while goal and digits < _DIGITS and goal.met(round(ratio, digits)) != goal.met(ratio):
        digits += 1
    return f"{ratio:.{digits}f}"


def _told(spread: Spread, shown: Callable[[float], str], middle: str = "") -> str:
    """
    The median, if it is not told already, and the range.
    """
    _, least, most = spread
    middle = middle or shown(spread[0])
    return middle if least == most else f"{middle} ({shown(least)} to {shown(most)})"


def _both(values: Both | None, shown: Callable[[float], str]) -> str:
    return " / ".join(map(shown, values)) if values else ""


def _cpu(row: Result) -> str:
    told = _both(row.server_cpu_s, number)
    return f"{told} per {row.per}" if told else ""


def _verdict(row: Result) -> str:
    return {None: "", True: "met", False: "**MISSED**"}[row.meets_goal]


_COLUMNS: tuple[tuple[str, str, Callable[[Result], str]], ...] = (
    ("work", "---", lambda row: row.work),
    ("unit", "---", lambda row: row.unit),
    ("kgateway", "---:", lambda row: _told(row.kgateway, number)),
    ("{other}", "---:", lambda row: _told(row.other, number)),
    ("ratio", "---:", lambda row: _told(row.ratio, _ratio_told, row.ratio_told)),
    ("goal", "---", lambda row: row.goal),
    ("", "---", _verdict),
    ("server's CPU s, kgateway / {other}", "---:", _cpu),
    ("client's cores", "---:", lambda row: _both(row.client_cores, lambda busy: f"{busy:.1f}")),
    ("remarks", "---", lambda row: row.remark),
)


def comparison(rows: Sequence[Result], other: str = "Kafka") -> Table:
    """
    A line for each thing measured, without the columns in which nothing would stand. `other` is the server beside
    kgateway.
    """
    columns = [(heading.format(other=other), rule, [cell(row) for row in rows]) for heading, rule, cell in _COLUMNS]
    columns = [column for column in columns if any(column[2])]
    headings, rules, cells = zip(*columns, strict=True)
    return Table(headings, rules, list(zip(*cells, strict=True)))


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _spread(values: Sequence[float]) -> Spread:
    return median(values), min(values), max(values)


def _filled(items: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in items if value}


def _dumped(value: Any, depth: int = 0) -> str:
    """
    JSON in which what fits is in one line, so that a change of a row is a change of a line.
    """
    line = json.dumps(value, ensure_ascii=False)
    if len(line) <= _LINE or not isinstance(value, dict | list | tuple):
        return line
    inner = " " * (depth + 1)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_dumped(part, depth + 1)}" for key, part in value.items()]
    else:
        parts = [_dumped(part, depth + 1) for part in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n" + ",\n".join(inner + part for part in parts) + f"\n{' ' * depth}{closing}"
