"""
docs/benchmarks.md, which `python -m bench.page` makes of results files.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import page as command
from bench import trees
from bench.calibration import Calibration
from bench.kafka import latency
from bench.page import Measurements, Page, page
from bench.results import Origin, Result, Results, Table

DOCS = Path(__file__).parents[2] / "docs"
ACK, ACK_P99, *_ = (row.work for row in latency.WORKLOAD.rows)
TEMPLATE = """\
An ack takes {{ratio kafka | ACK}} times as long.

{{compared acks | The acks | kafka.latency}}

The end.
""".replace("ACK", ACK)
EXPLAINED = TEMPLATE.replace(
    "The end.", f"{{{{missed 2026-11-20 kafka | {ACK}}}}}\n- **It is slow.**\n{{{{end}}}}\n\nThe end."
)


def row(work: str, ratio: float) -> Result:
    return Result(work, "ms", (ratio, ratio, ratio), (1.0, 1.0, 1.0), (ratio, ratio, ratio), "<= 7")


def results(date: str, rows: Sequence[Result] = (), **more: Any) -> Results:
    return Results(Origin(date, "a machine", {"Python": "3.11.7"}), "A title", "Kafka", rows=list(rows), **more)


def made(folder: Path, *files: Results, template: str = TEMPLATE) -> Page:
    """
    The page of these results files.
    """
    for number, file in enumerate(files):
        file.write(folder / f"{len(files) - number}.json")  # their names say nothing about their order
    return Page(template, Measurements(folder))


def test_the_page_is_generated() -> None:
    """
    `python -m bench.page` changes nothing.
    """
    current = page()
    assert (DOCS / "benchmarks.md").read_text() == current.text
    plots = {path.stem: path.read_text() for path in (DOCS / "images" / "benchmarks").glob("*.svg")}
    assert plots == current.plots


def test_nothing_on_the_page_needs_attention() -> None:
    """
    Each result is on the page, each missed goal is explained, and each explanation is as new as the result.
    """
    assert page().complaints == []


def test_the_newest_results_count(tmp_path: Path) -> None:
    """
    A newer file replaces the rows that it has; the page tells where the others are from.
    """
    old = results("2026-11-20", [row(ACK, 3), row(ACK_P99, 0.5)])
    new = results("2026-11-21T10:00Z", [row(ACK, 0.25)])
    found = made(tmp_path, old, new)
    assert "An ack takes 0.25 times as long." in found.text
    assert f"| {ACK} | ms | 0.250 |" in found.text
    assert f"| {ACK_P99} | ms | 0.500 |" in found.text
    assert "- `latency`: measured on 2026-11-21: a machine" in found.text
    assert "- `latency`: measured on 2026-11-20: a machine" in found.text
    assert "Measured on 2026-11-20 and 2026-11-21" in found.plots["acks"]
    assert found.complaints == []


def test_a_superseded_file_is_named(tmp_path: Path) -> None:
    """
    A file without anything that is shown can be deleted.
    """
    found = made(tmp_path, results("2026-11-20", [row(ACK, 0.5)]), results("2026-11-21", [row(ACK, 0.25)]))
    assert found.complaints == ["2.json has nothing that is not in newer files: delete it"]


def test_short_runs_are_not_used(tmp_path: Path) -> None:
    """
    What they measured means nothing.
    """
    short = results("2026-11-22", [row(ACK, 9)], short=True)
    found = made(tmp_path, results("2026-11-20", [row(ACK, 0.5)]), short)
    assert f"| {ACK} | ms | 0.500 |" in found.text
    assert found.complaints == ["1.json is of a short run, and is not used"]


def test_the_goal_is_that_of_today(tmp_path: Path) -> None:
    """
    A result is judged by the goal that its workload has now.
    """
    found = made(tmp_path, results("2026-11-20", [row(ACK, 3)]), template=EXPLAINED)
    assert f"| {ACK} | ms | 3.00 | 1.00 | 3.00 | <= 1 | **MISSED** |" in found.text
    assert "- **It is slow.**\n\nThe end.\n" in found.text


def test_an_explanation_goes_with_the_miss(tmp_path: Path) -> None:
    """
    If the goal is met, the text about it is not shown.
    """
    found = made(tmp_path, results("2026-11-20", [row(ACK, 1)]), template=EXPLAINED)
    assert "slow" not in found.text
    assert "Python 3.11.7.\n\nThe end.\n" in found.text
    assert found.complaints == [f"the text of 2026-11-20 explains {ACK}, which misses no goal"]


def test_an_unexplained_miss_is_named(tmp_path: Path) -> None:
    found = made(tmp_path, results("2026-11-20", [row(ACK, 1), row(ACK_P99, 2)]))
    assert found.complaints == [f"no text explains a missed goal: kafka, {ACK_P99}"]


def test_an_explanation_names_each_row_that_it_covers(tmp_path: Path) -> None:
    """
    A pattern could cover rows that the text does not mention, and a row that meets its goal needs no text.
    """
    template = EXPLAINED.replace(
        "{{missed 2026-11-20 kafka |", f"{{{{missed 2026-11-20 kafka | {ACK_P99} | one record* |"
    )
    found = made(tmp_path, results("2026-11-20", [row(ACK, 3), row(ACK_P99, 0.5)]), template=template)
    assert "slow" in found.text
    assert found.complaints == [
        f"the text of 2026-11-20 explains {ACK_P99}, which misses no goal",
        "there is no row one record*",
    ]


def test_an_old_explanation_is_named(tmp_path: Path) -> None:
    """
    An explanation of an older result may not be true any more.
    """
    found = made(tmp_path, results("2026-11-21", [row(ACK, 3)]), template=EXPLAINED)
    assert found.complaints == [f"the text of 2026-11-20 on {ACK} is older than its result of 2026-11-21"]


def test_results_that_are_not_shown_are_named(tmp_path: Path) -> None:
    """
    A row that no workload has any more, and a table that the template does not mention, would vanish unnoticed.
    """
    tables = {"idle": [Table(["n"], ["---"], [["1"]])]}
    found = made(tmp_path, results("2026-11-20", [row(ACK, 1), row("renamed", 1)], tables=tables))
    assert found.complaints == ["the page does not show idle", "the page does not show kafka, renamed, ms"]


def test_a_ratio_near_its_goal_has_more_digits(tmp_path: Path) -> None:
    """
    In a sentence as in the table, it never looks as if it met a goal that it misses.
    """
    found = made(tmp_path, results("2026-11-20", [row(ACK, 1.0004)]))
    assert "An ack takes 1.0004 times as long." in found.text
    assert "| 1.0004 | <= 1 | **MISSED** |" in found.text


def test_an_earlier_version_is_compared(tmp_path: Path) -> None:
    """
    Results of bench.trees have a table and a plot, as those of another server have.
    """
    work = trees.WORKLOADS["produce"].rows[0]
    rate = Result(work.work, work.unit, (3, 3, 3), (2, 2, 2), (1.5, 1.5, 1.5))
    template = "{{compared trees | Compared with 9738dfe | trees.produce}}\n"
    found = made(tmp_path, replace(results("2026-11-20", [rate]), other=trees.OTHER), template=template)
    assert "| work | unit | kgateway | the earlier version | ratio | goal |" in found.text
    assert "| 1.50 | >= 1.6 | **MISSED** |" in found.text
    assert list(found.plots) == ["trees"]


def test_a_plot_tells_whether_modules_were_compiled(tmp_path: Path) -> None:
    found = results("2026-11-20", [row(ACK, 1)])
    compiled = replace(found, origin=replace(found.origin, versions={"kgateway": "0.1.0 (compiled)"}))
    plot = made(tmp_path, compiled).plots["acks"]
    assert "Measured on 2026-11-20: a machine; kgateway 0.1.0 (compiled)</text>" in plot


def test_a_missing_value_is_named(tmp_path: Path) -> None:
    """
    The page is made nevertheless.
    """
    lacking = ("date kafka | gone", "ratios kafka | a* | b", "tables gone", "compared synced | Synced | kafka.synced")
    directives = "\n\n".join(f"{{{{{directive}}}}}" for directive in lacking)
    found = made(tmp_path, results("2026-11-20", [row(ACK, 1)]), template=f"{TEMPLATE}\n{directives}")
    assert found.text.endswith("The end.\n\n?\n\n?\n\n?\n\n?\n")
    assert found.complaints == [
        "no results file has a* or b",
        "no results file has gone",
        "no results file has rows of kafka.synced",
        "no results file has tables of gone",
    ]


def test_printed_tables_are_shown(tmp_path: Path) -> None:
    """
    All tables of a subject stand above what they were measured on.
    """
    printed = [Table(["n"], ["---:"], [["1"]]), Table(["m"], ["---:"], [["2"]])]
    found = made(tmp_path, results("2026-11-20", tables={"idle": printed}), template="{{tables idle}}\n")
    assert found.text == (
        "| n |\n|---:|\n| 1 |\n\n| m |\n|---:|\n| 2 |\n\nMeasured on 2026-11-20: a machine; Python 3.11.7.\n"
    )


def test_text_with_values_is_wrapped(tmp_path: Path) -> None:
    """
    A value may be longer or shorter than its directive; each item of a list is wrapped by itself.
    """
    value, words = f"{{{{ratio kafka | {ACK}}}}}", "word " * 30
    template = f"{words}\n{value}.\n\n- {words}\n  {value}.\n- {value}.\n"
    found = made(tmp_path, results("2026-11-20", [row(ACK, 0.25)]), template=template).text
    lines = found.splitlines()
    assert all(len(line) <= 120 for line in lines)
    assert "   " not in found
    assert [line[:7] for line in lines] == ["word wo", "word wo", "", "- word ", "  word ", "- 0.25."]


def test_tables_of_several_runs(tmp_path: Path) -> None:
    """
    Tables of several subjects share the origin of one run; of two runs, each has its own.
    """
    template, tables = "{{tables a b}}\n", [Table(["n"], ["---:"], [["1"]])]
    together = made(tmp_path, results("2026-11-20", tables={"a": tables, "b": tables}), template=template)
    assert together.text.endswith("| 1 |\n\nMeasured on 2026-11-20: a machine; Python 3.11.7.\n")
    found = made(
        tmp_path,
        *(results(f"2026-11-2{day}", tables={name: tables}) for day, name in enumerate("ab", 1)),
        template=template,
    )
    assert found.text.endswith(
        "\n- `a`: measured on 2026-11-21: a machine; Python 3.11.7.\n"
        "- `b`: measured on 2026-11-22: a machine; Python 3.11.7.\n"
    )


def test_runs_on_one_machine(tmp_path: Path) -> None:
    """
    What two runs have in common is told once; each has its own calibration.
    """
    tables = [Table(["n"], ["---:"], [["1"]])]
    for name, rate in (("a", 1e6), ("b", 2e6)):
        calibration = Calibration(rate, 1_000, 1_000, 1_000, 100)
        origin = Origin("2026-11-20", "a machine", {"Python": "3.11.7"}, before=calibration)
        Results(origin, tables={name: tables}).write(tmp_path / f"{name}.json")
    text = " ".join(made(tmp_path, template="{{tables a b}}\n").text.split())
    assert "| Measured on 2026-11-20: a machine; Python 3.11.7. Calibration of `a`: Python 1.0 M " in text
    assert " 100 fsyncs/s. Calibration of `b`: Python 2.0 M " in text


def test_a_misspelt_directive_is_named(tmp_path: Path) -> None:
    found = made(tmp_path, results("2026-11-20", tables={"idle": []}), template="{{tables idle}}\n\n{{oh}}\n")
    assert found.complaints == ["not a directive: {{oh}}"]


def test_the_command_writes_page_and_plots(tmp_path: Path) -> None:
    """
    Plots that the page does not have any more are deleted.
    """
    images = tmp_path / "images" / "benchmarks"
    images.mkdir(parents=True)
    (images / "old.svg").touch()
    assert command.main(["--into", str(tmp_path)]) == 0
    assert (tmp_path / "benchmarks.md").read_text() == page().text
    assert {path.stem for path in images.iterdir()} == page().plots.keys()
