"""
docs/benchmarks.md and its plots, from results files and `bench/benchmarks.md.in`: `python -m bench.page`.

The newest value of each row counts, whichever file in `bench/measured/` has it. So new results are published in two
steps: put a file there that `--results` has written, and run this command. What should be looked at then is printed:
missed goals without an explanation, explanations of goals that are met or of older results, and files with nothing new.

The template is a page in Markdown with these directives in it:

 - `{{compared NAME | TITLE | PACKAGE.WORKLOAD ...}}`: the plot NAME.svg and the table of these workloads, and what they
   were measured on
 - `{{tables MODULE ...}}`: the tables that these modules print
 - `{{ratio PACKAGE | WORK}}`, `{{percent PACKAGE | WORK}}`, `{{date PACKAGE | WORK}}`: of one row, within a sentence
 - `{{ratios PACKAGE | PATTERN | PATTERN ...}}`: the least and the largest ratio of the rows whose WORK matches
 - `{{missed DATE PACKAGE | WORK | WORK ...}}` to `{{end}}`: text that explains why exactly these rows miss their goals;
   it stands there while one of them does, and DATE is the day of the results that it explains

PACKAGE is `kafka`, `seaweedmq` or `trees`.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from textwrap import fill

from bench import trees
from bench.kafka.table import Row
from bench.plot import drawn
from bench.results import NoResults, Origin, Result, Results, Table, comparison

_ROOT = Path(__file__).parents[1]
_TEMPLATE = Path(__file__).with_name("benchmarks.md.in")
_MEASURED = Path(__file__).with_name("measured")
_DOCS = _ROOT / "docs"
_IMAGES = "images/benchmarks"
_OTHERS = {"kafka": "Kafka", "seaweedmq": "the Go gateway", "trees": trees.OTHER}
_WIDTH = 120
_UNKNOWN = "?"
_DIRECTIVE = re.compile(r"\{\{(\w+) ([^}]*)\}\}")
_CONDITIONAL = re.compile(r"^\{\{missed (\S+) (\w+) \| ([^}]*)\}\}\n(.*?)^\{\{end\}\}\n", re.DOTALL | re.MULTILINE)

Key = tuple[str, str, str]  # the package, the work, the unit


class Measurements:
    """
    The newest of all results files.
    """

    def __init__(self, folder: Path) -> None:
        self.complaints: list[str] = []
        self._rows: dict[Key, tuple[Result, Origin]] = {}
        self._tables: dict[str, tuple[Sequence[Table], Origin]] = {}
        self._used: set[Key | str] = set()
        goals: dict[Key, str] = {}
        for package in _OTHERS:
            for name in _workloads(package):
                goals |= _goals(package, name)
        read = {path.name: Results.read(path) for path in sorted(folder.glob("*.json"))}
        for name, results in sorted(read.items(), key=lambda item: item[1].origin.date):
            if results.short:
                self.complaints.append(f"{name} is of a short run, and is not used")
                continue
            for row in results.rows:
                key = (_package_of(results), row.work, row.unit)
                self._rows[key] = replace(row, goal=goals.get(key, row.goal)), results.origin
            for subject, tables in results.tables.items():
                self._tables[subject] = tables, results.origin
        newest = {id(origin) for _, origin in (*self._rows.values(), *self._tables.values())}
        for name, results in read.items():
            if not results.short and id(results.origin) not in newest:
                self.complaints.append(f"{name} has nothing that is not in newer files: delete it")

    def workload(self, package: str, name: str) -> list[tuple[Result, Origin]]:
        """
        The rows of a workload, in its order; those that were never measured are left out.
        """
        found = []
        for key in _goals(package, name):
            if key in self._rows:
                found.append(self._rows[key])
                self._used.add(key)
        return found

    def of(self, package: str, work: str) -> list[tuple[Result, Origin]]:
        """
        The rows of one work, which may have several units.
        """
        return [found for (of_package, name, _), found in self._rows.items() if (of_package, name) == (package, work)]

    def matching(self, package: str, *patterns: str) -> list[tuple[Result, Origin]]:
        """
        All rows whose work has one of these patterns.
        """
        return [
            found
            for (of_package, work, _), found in self._rows.items()
            if of_package == package and any(fnmatchcase(work, pattern) for pattern in patterns)
        ]

    def tables(self, subject: str) -> tuple[Sequence[Table], Origin] | None:
        self._used.add(subject)
        return self._tables.get(subject)

    def unused(self) -> Iterator[str]:
        for subject in (self._rows.keys() | self._tables.keys()) - self._used:
            yield f"the page does not show {subject if isinstance(subject, str) else ', '.join(subject)}"


class Page:
    """
    The text, the plots by their names, and what should be looked at.
    """

    def __init__(self, template: str, measurements: Measurements) -> None:
        self._measurements = measurements
        self._missed: set[tuple[str, str]] = set()
        self._explained: set[tuple[str, str]] = set()
        self.plots: dict[str, str] = {}
        self.complaints = measurements.complaints
        blocks = re.split(r"\n{2,}", _CONDITIONAL.sub(self._conditional, template))
        self.text = "\n\n".join(map(self._block, blocks)).rstrip() + "\n"
        self.complaints += [
            f"not a directive: {line}" for line in self.text.splitlines() if "{{" in line or "}}" in line
        ]
        self.complaints += [
            f"no text explains a missed goal: {', '.join(row)}" for row in self._missed - self._explained
        ]
        self.complaints += measurements.unused()
        self.complaints.sort()

    def _block(self, block: str) -> str:
        """
        What the directives of a paragraph, a list or a table say, wrapped anew unless it is a table.
        """
        text = _DIRECTIVE.sub(self._directive, block)
        if text == block or block.startswith(("|", "{{tables", "{{compared")):
            return text
        if block.startswith("- "):
            return "\n".join(_wrapped(item, "- ") for item in text.removeprefix("- ").split("\n- "))
        return _wrapped(text)

    def _conditional(self, found: re.Match[str]) -> str:
        date, package, works, text = found.groups()
        is_shown = False
        for work in _split(works):
            rows = self._measurements.of(package, work)
            missed = [origin for row, origin in rows if row.meets_goal is False]
            if not rows:
                self.complaints.append(f"there is no row {work}")
            elif not missed:
                self.complaints.append(f"the text of {date} explains {work}, which misses no goal")
            elif any(origin.day > date for origin in missed):
                newest = max(origin.day for origin in missed)
                self.complaints.append(f"the text of {date} on {work} is older than its result of {newest}")
            is_shown = is_shown or bool(missed)
            self._explained.add((package, work))
        return text if is_shown else ""

    def _directive(self, found: re.Match[str]) -> str:
        name, arguments = found[1], _split(found[2])
        return str(getattr(self, f"_{name}")(*arguments))

    def _ratio(self, package: str, work: str) -> str:
        return self._told(package, work, lambda row, _: row.ratio_told)

    def _ratios(self, package: str, *patterns: str) -> str:
        rows = sorted((row for row, _ in self._measurements.matching(package, *patterns)), key=lambda row: row.ratio)
        if not rows:
            self._lack(" or ".join(patterns))
            return _UNKNOWN
        return f"{rows[0].ratio_told} to {rows[-1].ratio_told}"

    def _percent(self, package: str, work: str) -> str:
        return self._told(package, work, lambda row, _: f"{row.ratio[0]:.0%}")

    def _date(self, package: str, work: str) -> str:
        return self._told(package, work, lambda _, origin: origin.day)

    def _told(self, package: str, work: str, shown: Callable[[Result, Origin], str]) -> str:
        for found in self._measurements.of(package, work):
            return shown(*found)
        self._lack(work)
        return _UNKNOWN

    def _tables(self, subjects: str) -> str:
        tables: list[Table] = []
        places: dict[str, Origin] = {}
        for subject in subjects.split():
            if found := self._measurements.tables(subject):
                more, places[subject] = found
                tables += more
            else:
                self._lack(f"tables of {subject}")
        return "\n\n".join([*map(str, tables), _origins(places.items())]) if tables else _UNKNOWN

    def _lack(self, what: str) -> None:
        self.complaints.append(f"no results file has {what}")

    def _compared(self, name: str, title: str, workloads: str) -> str:
        found: list[tuple[Result, Origin]] = []
        places: list[tuple[str, Origin]] = []
        for workload in workloads.split():
            package, _, module = workload.partition(".")
            rows = self._measurements.workload(package, module)
            found += rows
            places += [(module, origin) for _, origin in rows]
            self._missed |= {(package, row.work) for row, _ in rows if row.meets_goal is False}
        if not found:
            self._lack(f"rows of {workloads}")
            return _UNKNOWN
        rows_alone, other = [row for row, _ in found], _OTHERS[package]
        self.plots[name] = drawn(title, other, rows_alone, _caption([origin for _, origin in places]))
        return f"![{title}]({_IMAGES}/{name}.svg)\n\n{comparison(rows_alone, other)}\n\n{_origins(places)}"


def _goals(package: str, name: str) -> dict[Key, str]:
    """
    The rows of a workload, and the goals that they have today, which may not be those of the day of the results.
    """
    return {(package, row.work, row.unit): str(row.goal or "") for row in _workloads(package)[name]}


def _workloads(package: str) -> Mapping[str, Sequence[Row]]:
    """
    The rows of each workload of a benchmark.
    """
    if package == "trees":
        return {name: work.rows for name, work in trees.WORKLOADS.items()}
    names = import_module(f"bench.{package}.__main__").MEASURED
    return {name: import_module(f"bench.{package}.{name}").WORKLOAD.rows for name in names}


def _package_of(results: Results) -> str:
    for package, other in _OTHERS.items():
        if other == results.other:
            return package
    raise NoResults(f"results of {results.origin.date}: no benchmark compares kgateway with {results.other!r}")


def _split(arguments: str) -> list[str]:
    return [argument.strip() for argument in arguments.split(" | ")]


def _caption(origins: Iterable[Origin]) -> str:
    """
    The days, and the machine and the version of kgateway where they were always the same.
    """
    found = [(one.day, one.machine, f"kgateway {one.versions.get('kgateway', '')}") for one in origins]
    days, *others = (sorted(set(values)) for values in zip(*found, strict=True))
    common = "; ".join(values[0].strip() for values in others if len(values) == 1)
    return f"Measured on {' and '.join(days)}{f': {common}' if common else ''}"


def _origins(places: Iterable[tuple[str, Origin]]) -> str:
    """
    What a table was measured on, or which of its parts on what. Runs that differ only in their calibrations are told
    together.
    """
    parts: dict[str, dict[str, dict[str, None]]] = {}
    for part, origin in places:
        runs = parts.setdefault(origin.conditions_told, {})
        runs.setdefault(origin.calibration_told, {})[f"`{part}`"] = None
    if len(parts) == 1:
        [(conditions, runs)] = parts.items()
        return _wrapped(f"Measured {conditions} {_calibrations(runs)}")
    lines = []
    for conditions, runs in parts.items():
        names = ", ".join(dict.fromkeys(name for of_run in runs.values() for name in of_run))
        lines.append(_wrapped(f"{names}: measured {conditions} {_calibrations(runs)}", "- "))
    return "\n".join(lines)


def _calibrations(runs: Mapping[str, Iterable[str]]) -> str:
    if len(runs) == 1:
        return next(iter(runs))
    told = ((told.partition(":")[::2], names) for told, names in runs.items() if told)
    return " ".join(f"{start} of {', '.join(names)}:{values}" for (start, values), names in told)


def _wrapped(text: str, bullet: str = "") -> str:
    words, indent = " ".join(text.split()), " " * len(bullet)
    return fill(
        words, _WIDTH, initial_indent=bullet, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def page(measured: Path = _MEASURED) -> Page:
    """
    The page of the results files in this folder.
    """
    return Page(_TEMPLATE.read_text(), Measurements(measured))


def main(arguments: list[str]) -> int:
    """
    Write the page and its plots; the exit code is 1 if something should be looked at.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.page", description="writes docs/benchmarks.md and its plots")
    parser.add_argument("--into", type=Path, default=_DOCS, metavar="FOLDER", help="the folder of the pages; docs")
    into = parser.parse_args(arguments).into
    try:
        made = page()
    except NoResults as why:
        parser.error(str(why))
    images = into / _IMAGES
    images.mkdir(parents=True, exist_ok=True)
    (into / "benchmarks.md").write_text(made.text)
    for old in images.glob("*.svg"):
        old.unlink()
    for name, plot in made.plots.items():
        (images / f"{name}.svg").write_text(plot)
    for complaint in made.complaints:
        print(complaint, file=sys.stderr)
    return 1 if made.complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
