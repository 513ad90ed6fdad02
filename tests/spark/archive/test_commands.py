"""
The commands `kgateway spark archive` and `verify`.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgateway.spark.archive.job import ArchiveJob
from tests.spark.archive.archives import Archives
from tests.spark.gateway import Topics, numbered
from tests.spark.jobs import PATIENCE_S, ROOT, Ended, runner


def test_archive_and_verify(topics: Topics, tmp_path: Path) -> None:
    """
    Both print their summary and nothing else, also about damage.
    """
    topic, into = topics.make(*numbered(1_000)), str(tmp_path / "archives")
    done = Ended(topics, "archive", topic, "--into", into, "--once", "--master", "local[2]")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == f"topic {topic}"
    assert lines[2].split()[:5] == ["0", "0", "499", "500", "1"]
    assert lines[4].startswith("1,000 records (")
    done = Ended(topics, "verify", "--in", into, "--master", "local[2]", "--json")
    assert (done.code, done.err) == (0, "")
    [told] = json.loads(done.out)["archives"]
    assert (told["topic"], told["compared"], told["findings"]) == (topic, 1_000, [])
    next((tmp_path / "archives" / topic).glob("*.parquet")).unlink()
    done = Ended(topics, "verify", topic, "--in", into, "--master", "local[2]")
    assert (done.code, done.err) == (1, "")
    assert "the file is missing: offsets 0 to 499 (500 records) are in no file" in done.out
    assert done.out.endswith(": 1 fault\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("archive nowhere --into a --once", 1, "archive: there is no topic or partition nowhere in the cluster"),
        ("archive t --into a --option subscribe.pattern=x", 2, "archive: there is no option subscribe"),
        (f"archive t --into {__file__} --once", 2, f"archive: error: argument --into: {__file__} is not a folder"),
        ("verify --in nowhere", 2, "verify: there is no archive in nowhere"),
    ],
)
def test_mistakes_are_reported_in_one_line(topics: Topics, arguments: str, code: int, said: str) -> None:
    """
    Mistakes are reported before Spark starts, where possible.
    """
    done = Ended(topics, *arguments.split())
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(f"kgateway spark {said}")
    assert done.err.count("\n") == 1


def test_another_job(
    topics: Topics, archives: Archives, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    The job that is overtaken says so and ends.
    """
    topic, rounds = topics.make(*numbered(10)), ArchiveJob.rounds

    def overtaken(job: ArchiveJob, extents: Any) -> Iterator[int]:
        archives.job(topic)
        return rounds(job, extents)

    monkeypatch.setattr(ArchiveJob, "rounds", overtaken)
    with pytest.raises(SystemExit) as end:
        runner(topics, monkeypatch, "archive")(topic, "--into", archives.path, "--once")
    assert end.value.code == 1
    told = capsys.readouterr().err
    assert re.fullmatch(r"kgateway spark archive: another job has written .*: is one still running .*\n", told)


def test_help_needs_no_spark() -> None:
    """
    Help works without the extra, and names only jobs that exist.
    """
    script = "import sys; sys.modules['pyspark'] = None; from kgateway.cli.main import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", script, "spark", "archive", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=ROOT)
    assert done.returncode == 0
    assert "$ kgateway spark archive orders --into archive --once" in done.stdout
