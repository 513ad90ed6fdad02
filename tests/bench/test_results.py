"""
Results files of benchmarks, and the pictures of them.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import plot, workloads
from bench.calibration import Calibration
from bench.kafka.rounds import NotMeasurable
from bench.kafka.table import Compared, Measured, Row, at_least, at_most
from bench.results import NoResults, Origin, Result, Results
from bench.workloads import measure_all

ONCE = Calibration(1e6, 1_000, 1_000, 1_000, 100)
ORIGIN = Origin("2026-11-27T10:00Z", "x86_64, 2 cores", {"Python": "3.11.7"}, "3 rounds", before=ONCE)


def compared(row: Row, kgateway: Sequence[float], kafka: Sequence[float]) -> Compared:
    return Compared(row, [Measured(value) for value in kgateway], [Measured(value) for value in kafka])


FAST = compared(Row("produce", "MB/s", at_least(1.5)), [100, 300, 200], [100, 100, 100])
SLOW = compared(Row("ack, p99", "ms", at_most(1)), [4], [1])


def test_what_was_measured_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    The file has the rows of all workloads that did not fail, and the calibrations from before and after.
    """
    monkeypatch.setattr(workloads, "calibrate", lambda _: ONCE)

    def failing() -> list[Compared]:
        raise NotMeasurable("there is no disk")

    named = {"a": ("A", lambda: [FAST]), "b": ("B", failing), "c": ("C", lambda: [SLOW])}
    path = tmp_path / "results.json"
    chosen = argparse.Namespace(workloads=list(named), short=False, results=path)
    assert measure_all(chosen, named.__getitem__, Results(ORIGIN, "Compared", "Kafka")) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "Measured on 2026-11-27 (3 rounds): x86_64, 2 cores; Python 3.11.7. Calibration: Python 1.0 M "
    )
    assert "| produce | MB/s |" in out
    rows = [Result.of(FAST), Result.of(SLOW)]
    assert Results.read(path) == Results(replace(ORIGIN, after=ONCE), "Compared", "Kafka", rows=rows)
    assert rows[0] == Result("produce", "MB/s", (200, 100, 300), (100, 100, 100), (2, 1, 3), ">= 1.5")


def test_a_short_run_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Its file is marked, so that nobody takes it for a result.
    """
    monkeypatch.setattr(workloads, "calibrate", lambda _: ONCE)
    path = tmp_path / "results.json"
    chosen = argparse.Namespace(workloads=["a"], short=True, results=path)
    measure_all(chosen, lambda _: ("A", lambda: [FAST]), Results(ORIGIN))
    assert Results.read(path).short


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
    Results(ORIGIN, "A & B", "Kafka", rows=[Result.of(FAST), Result.of(SLOW)]).write(tmp_path / "some.json")
    assert plot.main([str(tmp_path / "some.json"), "--into", str(tmp_path)]) == 0
    svg = ElementTree.parse(tmp_path / "some.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    texts = [text.text for text in svg.iter(f"{space}text")]
    assert {"A & B", "produce", "ack, p99", "200 : 100 MB/s", "4.00 : 1.00 ms"} < set(texts)
    [even] = [float(line.attrib["x1"]) for line in svg.iter(f"{space}line") if line.attrib["class"] == "even"]
    fast, slow = (float(point.attrib["cx"]) for point in svg.iter(f"{space}circle"))
    assert slow < even < fast


def test_a_row_keeps_what_it_cost(tmp_path: Path) -> None:
    """
    Processor time, the client's cores and the remark of both servers are in the file, and a value of 0 is.
    """
    measured = [Measured(1.0, 0.5, 0.0, 0.99)], [Measured(2.0, 2.5, 0.7, 1.0)]
    result = Result.of(Compared(Row("cold", "MB/s", per="GB", remark="{:.0%} from disk"), *measured))
    path = tmp_path / "results.json"
    Results(ORIGIN, rows=[result]).write(path)
    [read] = Results.read(path).rows
    assert (read.server_cpu_s, read.client_cores, read.per) == ((0.5, 2.5), (0.0, 0.7), "GB")
    assert read.remark == "99% / 100% from disk"


def test_rows_are_on_lines_of_their_own(tmp_path: Path) -> None:
    """
    So a change of one row of a results file changes one line.
    """
    path = tmp_path / "results.json"
    changes = []
    for rows in ([FAST, SLOW], [FAST, FAST]):
        Results(ORIGIN, rows=[Result.of(row) for row in rows]).write(path)
        changes.append(path.read_text().splitlines())
    before, after = changes
    assert len([line for line, other in zip(before, after, strict=True) if line != other]) == 1


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"origin": {}}', '{"origin": {"date": "", "x": 1}}'])
def test_what_is_no_results_file(tmp_path: Path, text: str) -> None:
    """
    The message names the file, and the command ends with a usage error.
    """
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(NoResults, match=str(path)):
        Results.read(path)
    with pytest.raises(SystemExit) as ended:
        plot.main([str(path), "--into", str(tmp_path)])
    assert ended.value.code == 2


def test_a_missing_results_file(tmp_path: Path) -> None:
    with pytest.raises(NoResults, match=r"missing\.json: No such file or directory"):
        Results.read(tmp_path / "missing.json")


def test_results_that_compare_nothing_have_no_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Results(ORIGIN).write(tmp_path / "alone.json")
    with pytest.raises(SystemExit):
        plot.main([str(tmp_path / "alone.json"), "--into", str(tmp_path)])
    assert "nothing to draw" in capsys.readouterr().err
