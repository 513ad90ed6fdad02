"""
Results files: what was measured beside another server, when, on which machine and with which versions.

`python -m bench.kafka --results FILE` writes one, `python -m bench.plot` draws it. The values of a row are the median,
the least and the most of the rounds.
"""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from bench.kafka.table import Compared

Spread = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Origin:
    """
    When and with what something was measured.
    """

    date: str
    machine: str
    versions: dict[str, str]

    @classmethod
    def now(cls, *packages: str, **others: str) -> "Origin":
        """
        Here and now, with these packages of Python and other programs.
        """
        versions = {
            "Python": platform.python_version(),
            **{package: version(package) for package in packages},
            **others,
        }
        return cls(f"{datetime.now(UTC):%Y-%m-%d}", f"{platform.machine()}, {os.cpu_count()} cores", versions)

    def __str__(self) -> str:
        versions = ", ".join(f"{program} {version}" for program, version in self.versions.items())
        return f"{self.date}, {self.machine}; {versions}"


@dataclass(frozen=True, slots=True)
class Result:
    """
    One row of a table.
    """

    work: str
    unit: str
    kgateway: Spread
    other: Spread
    ratio: Spread
    goal: str

    @classmethod
    def of(cls, found: Compared) -> "Result":
        kgateway, other = ([measured.value for measured in side] for side in (found.kgateway, found.kafka))
        row = found.row
        return cls(row.work, row.unit, _spread(kgateway), _spread(other), _spread(found.ratios), str(row.goal or ""))

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


@dataclass(frozen=True, slots=True)
class Results:
    """
    What one run has measured.
    """

    title: str
    other: str  # the server beside kgateway
    origin: Origin
    rows: list[Result]

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> "Results":
        data = json.loads(path.read_text())
        rows = [Result(**{name: _value(value) for name, value in row.items()}) for row in data.pop("rows")]
        return cls(origin=Origin(**data.pop("origin")), rows=rows, **data)


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _spread(values: Sequence[float]) -> Spread:
    return median(values), min(values), max(values)
