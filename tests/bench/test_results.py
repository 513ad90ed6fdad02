"""
Results files of benchmarks, and the pictures of them.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import plot
from bench.kafka.rounds import NotMeasurable
from bench.kafka.table import Compared, Measured, Row, at_least, at_most, number
from bench.results import Origin, Result, Results
from bench.workloads import measure_all

ROOT = Path(__file__).parents[2]
MEASURED = sorted((ROOT / "bench" / "measured").glob("*.json"))
PICTURES = ROOT / "docs" / "images" / "benchmarks"
PAGE = (ROOT / "docs" / "benchmarks.md").read_text()
ORIGIN = Origin("2026-11-27", "x86_64, 2 cores", {"Python": "3.11.7"})


def compared(row: Row, kgateway: Sequence[float], kafka: Sequence[float]) -> Compared:
    return Compared(row, [Measured(value) for value in kgateway], [Measured(value) for value in kafka])


FAST = compared(Row("produce", "MB/s", at_least(1.5)), [100, 300, 200], [100, 100, 100])
SLOW = compared(Row("ack, p99", "ms", at_most(1)), [4], [1])


def test_what_was_measured_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The file has the rows of all workloads that did not fail.
    """

    def failing() -> list[Compared]:
        raise NotMeasurable("there is no disk")

    workloads = {"a": ("A", lambda: [FAST]), "b": ("B", failing), "c": ("C", lambda: [SLOW])}
    path = tmp_path / "results.json"
    chosen = argparse.Namespace(workloads=list(workloads), short=False, results=path)
    assert measure_all(chosen, workloads.__getitem__, Results("Beside Kafka", "Kafka", ORIGIN, [])) == 0
    assert "| produce | MB/s |" in capsys.readouterr().out
    rows = [Result.of(FAST), Result.of(SLOW)]
    assert Results.read(path) == Results("Beside Kafka", "Kafka", ORIGIN, rows)
    assert rows[0] == Result("produce", "MB/s", (200, 100, 300), (100, 100, 100), (2, 1, 3), ">= 1.5")


def test_better_is_more_or_less() -> None:
    """
    Rates are better if they are high, and times if they are low.
    """
    assert Result.of(FAST).times_as_good == (2, 1, 3)
    assert Result.of(SLOW).times_as_good == (0.25, 0.25, 0.25)


def test_a_picture_has_each_row(tmp_path: Path) -> None:
    """
    The point of a row is to the right of the line at 1 if kgateway is better.
    """
    Results("A & B", "Kafka", ORIGIN, [Result.of(FAST), Result.of(SLOW)]).write(tmp_path / "some.json")
    assert plot.main([str(tmp_path / "some.json"), "--into", str(tmp_path)]) == 0
    svg = ElementTree.parse(tmp_path / "some.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    texts = [text.text for text in svg.iter(f"{space}text")]
    assert {"A & B", "produce", "ack, p99", "200 : 100 MB/s", "4.00 : 1.00 ms"} < set(texts)
    [even] = [float(line.attrib["x1"]) for line in svg.iter(f"{space}line") if line.attrib["class"] == "even"]
    fast, slow = (float(point.attrib["cx"]) for point in svg.iter(f"{space}circle"))
    assert slow < even < fast


@pytest.mark.parametrize("path", MEASURED, ids=lambda path: path.stem)
def test_the_pictures_are_drawn_from_the_results(path: Path) -> None:
    """
    `python -m bench.plot bench/measured/*.json --into docs/images/benchmarks` changes nothing, and the page shows each
    picture above a table that has the same values.
    """
    results = Results.read(path)
    assert (PICTURES / f"{path.stem}.svg").read_text() == plot.drawn(results)
    assert f"(images/benchmarks/{path.stem}.svg)" in PAGE
    for row in results.rows:
        work = re.escape(re.sub(r", format \w+$", "", row.work))
        [least, most] = (re.escape(number(value)) for value in row.kgateway[1:])
        assert re.search(
            rf"^\| {work}\b.*\b{re.escape(number(row.kgateway[0]))}( \({least} to {most}\))? \|", PAGE, re.M
        )
