"""
The results of benchmarks that print tables.
"""

from pathlib import Path

import pytest

from bench import recording, server
from bench.calibration import Calibration
from bench.recording import recorded, results_file, tables
from bench.results import Results

ONCE = Calibration(1e6, 1_000, 1_000, 1_000, 100)
TWICE = Calibration(2e6, 1_000, 1_000, 1_000, 90)


@pytest.fixture(autouse=True)
def _calibrations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.results.calibrate", lambda _: ONCE)
    monkeypatch.setattr(recording, "calibrate", lambda: TWICE)
    monkeypatch.setattr("bench.machine.kgateway", lambda: "1.2 (some build)")


def test_printed_tables_are_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The file has the tables under the names of their subjects, and the calibrations from before and after.
    """
    path = tmp_path / "results.json"
    with recorded(path, conditions="3 rounds") as record:
        with record.of("first"):
            print("some text\n\n| work | MB/s |\n|---|---:|\n| a | 1 |\n| b |  |\n")
        with record.of("second"):
            print("| n |\n|---|\n| 1 |\n\n| m |\n|---|\n| 2 |")
    found = Results.read(path)
    assert [str(table) for table in found.tables["first"]] == ["| work | MB/s |\n|---|---:|\n| a | 1 |\n| b |  |"]
    assert [table.rows for table in found.tables["second"]] == [[["1"]], [["2"]]]
    assert (found.origin.before, found.origin.after) == (ONCE, TWICE)
    out = capsys.readouterr().out
    assert "| b |  |" in out
    assert "(3 rounds)" in out.splitlines()[0]
    assert "kgateway 1.2 (some build)" in out.splitlines()[0]
    assert out.splitlines()[-1].endswith(
        "Python 1.0 M steps/s (+100%), memcpy 1.0 GB/s (+0%), CRC-32C 1.0 GB/s (+0%), "
        "loopback 1,000 round trips/s (+0%), 100 fsyncs/s (-10%)."
    )


def test_nothing_is_written_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Without a file the tables are printed only.
    """
    monkeypatch.chdir(tmp_path)
    with recorded(None) as record, record.of("first"):
        print("| n |\n|---|\n| 1 |")
    assert list(tmp_path.iterdir()) == []


def test_text_has_no_tables() -> None:
    assert tables("no table\nhere\n") == []


def test_unknown_parts_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """
    The command lists the known ones.
    """
    with pytest.raises(SystemExit, match="2"):
        server.main(["startup", "start"])
    assert "there is no start: it is one of startup, " in capsys.readouterr().err


def test_results_that_cannot_be_written_are_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "missing" / "results.json"
    with pytest.raises(SystemExit):
        results_file("wire", ["--results", str(path)])
    assert f"{path} cannot be written" in capsys.readouterr().err
    assert results_file("wire", ["--results", str(tmp_path / "results.json")]) == tmp_path / "results.json"
    assert results_file("wire", ["--results", "results.json"]) == Path("results.json")
