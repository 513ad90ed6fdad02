"""
Benchmarks of kgateway alone: the tables that a module prints, with what they were measured on, are also its results.

A module prints tables in Markdown. Whoever runs it enters a `Recording`, which prints the versions and the calibration
first, and in the end writes the results file that `--results` names.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import TextIO

from bench.calibration import calibrate
from bench.results import Origin, Results, Table


class Recording:
    """
    The tables of one run.
    """

    def __init__(self, results: Results) -> None:
        self._results = results

    @contextmanager
    def of(self, subject: str) -> Iterator[None]:
        """
        Keep the tables that are printed meanwhile.
        """
        printed = _Copy(sys.stdout)
        with redirect_stdout(printed):
            yield
        self._results.tables[subject] = tables(printed.getvalue())


class _Copy(StringIO):
    """
    Keeps what it passes on to another stream.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(text)
        return super().write(text)

    def flush(self) -> None:
        self._stream.flush()


def tables(text: str) -> list[Table]:
    """
    The Markdown tables of a text.
    """
    found = []
    for is_table, lines in groupby(text.splitlines(), lambda line: line.startswith("|")):
        if is_table:
            columns, rules, *rows = ([cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines)
            found.append(Table(columns, rules, rows))
    return found


@contextmanager
def recorded(path: Path | None, *packages: str, conditions: str = "") -> Iterator[Recording]:
    """
    Print the origin of the tables, and write them to this file, if any.
    """
    origin = Origin.now(*packages, conditions=conditions)
    print(f"Measured {origin}\n", flush=True)
    results = Results(origin)
    yield Recording(results)
    origin = replace(origin, after=calibrate())
    print(f"\n{origin.calibration_told}")
    if path:
        replace(results, origin=origin).write(path)


def add_results(parser: argparse.ArgumentParser) -> None:
    """
    The option that all benchmarks have.
    """
    parser.add_argument(
        "--results", type=_new_file, metavar="FILE", help="a file for the results, which bench.page reads"
    )


def _new_file(text: str) -> Path:
    """
    Check before hours of measuring that the file can be written.
    """
    path = Path(text)
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(
            f"{text} cannot be written: {path.parent} must be a folder that you may write to"
        )
    return path


def results_file(program: str, arguments: Sequence[str] | None = None) -> Path | None:
    """
    The command line of a benchmark that has no other options.
    """
    parser = argparse.ArgumentParser(prog=f"python -m bench.{program}")
    add_results(parser)
    path: Path | None = parser.parse_args(arguments).results
    return path
