"""
The command `kgateway spark compact`.
"""

import io
import json
import re
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kgateway.cli.spark.session import stages
from tests.spark.gateway import Topics, numbered
from tests.spark.jobs import PATIENCE_S, Ended, Run, runner

LOCAL = ("--master", "local[2]")


def codecs(folder: Path) -> set[str]:
    """
    The codecs of all Parquet files in a folder.
    """
    groups = [pq.ParquetFile(path).metadata.row_group(0) for path in folder.rglob("*.parquet")]
    return {group.column(number).compression for group in groups for number in range(group.num_columns)}


@pytest.fixture
def compact(topics: Topics, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """
    The command, in a folder of its own.
    """
    monkeypatch.chdir(tmp_path)
    return runner(topics, monkeypatch, "compact")


def test_tables(topics: Topics, tmp_path: Path) -> None:
    """
    A table of a topic or of its archive has a summary; a second run finds nothing new.
    """
    topic, output, into = topics.make(*numbered(100), *numbered(100)), str(tmp_path / "latest"), str(tmp_path / "in")
    done = Ended(topics, "compact", topic, "--output", output, "--codec", "gzip", *LOCAL)
    assert (done.code, done.err) == (0, "")
    assert codecs(tmp_path / "latest") == {"GZIP"}
    lines = done.out.splitlines()
    assert lines[0] == f"topic {topic}"
    assert [line.split() for line in lines[2:4]] == [["0", "0", "99", "50"], ["1", "0", "99", "50"]]
    assert lines[4].startswith("snapshot 1: 100 of 200 records kept in ")
    done = Ended(topics, "compact", topic, "--output", output, *LOCAL)
    assert done.out.splitlines()[4] == "there are no new records: snapshot 1 remains current, with 100 records"
    assert Ended(topics, "archive", topic, "--into", into, "--once", *LOCAL).code == 0
    done = Ended(topics, "compact", "--in", into, "--output", output, "--json", *LOCAL)
    assert (done.code, done.err) == (0, "")
    [told] = json.loads(done.out)["tables"]
    assert (told["topic"], told["snapshot"], told["read"]) == (topic, 2, 200)


def test_archives(topics: Topics, tmp_path: Path) -> None:
    """
    An archive is compacted by key, then by time; verify reports what was removed and what is proven.
    """
    topic, into = topics.make(*numbered(100), *numbered(100)), str(tmp_path / "in")
    assert Ended(topics, "archive", topic, "--into", into, "--once", *LOCAL).code == 0
    assert codecs(tmp_path / "in") == {"ZSTD"}
    how = ("--in-place", "key", "--older-than", "1h", "--codec", "snappy")
    done = Ended(topics, "compact", "--in", into, *how, *LOCAL)
    assert (done.code, done.err) == (0, "")
    assert codecs(tmp_path / "in") == {"SNAPPY"}
    lines = done.out.splitlines()
    assert lines[1].split()[-1] == "removed"
    assert lines[2].split()[:4] + lines[2].split()[-1:] == ["0", "0", "99", "50", "50"]
    assert lines[4].startswith("100 records removed and ")
    before = ("--in-place", "time", "--before", "1970-01-01T00:00:01.050Z")
    done = Ended(topics, "compact", topic, "--in", into, *before, *LOCAL)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[4].startswith("50 records removed")
    done = Ended(topics, "verify", "--in", into, *LOCAL)
    assert (done.code, done.err) == (0, "")
    assert "150 records removed by compaction, 150 of them correctly, as the log shows\n" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--output x", "name topics, or the folder of archives with --in"),
        ("t --in-place key", "--in-place changes archives: name their folder with --in"),
        ("--in x --in-place time", "--in-place time needs --older-than AGE or --before TIME"),
        ("t --output x --older-than 7d", "--older-than and --before need --in-place"),
        ("--in x --in-place time --older-than 7d --tombstones-older-than 1d", "--tombstones-older-than needs"),
        ("--in x --in-place key --keep-tombstones", "--keep-tombstones needs --output"),
        ("--in x --in-place time --older-than 7d --keep-keyless", "--keep-keyless is for compaction by key"),
        ("--in nowhere --in-place key", "there is no archive in nowhere"),
        ("t --in nowhere --output x", "there is no archive in "),
    ],
)
def test_mistakes_are_reported_in_one_line(
    compact: Run, capsys: pytest.CaptureFixture[str], arguments: str, said: str
) -> None:
    """
    A mistake changes nothing.
    """
    with pytest.raises(SystemExit) as end:
        compact(*arguments.split())
    is_missing = "no archive" in said
    assert end.value.code == (1 if is_missing else 2)
    err = capsys.readouterr().err
    assert err.startswith(f"kgateway spark compact: {'' if is_missing else 'error: '}{said}")
    assert err.count("\n") == 1


def test_an_invalid_age(compact: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The error shows the format of an age.
    """
    with pytest.raises(SystemExit):
        compact("--in", "x", "--in-place", "key", "--older-than", "7 days")
    assert "'7 days' is not a duration such as 12h or 7d" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_progress(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The progress bar disappears at the end.
    """
    terminal, deadline = Terminal(), time.monotonic() + PATIENCE_S
    monkeypatch.setattr("sys.stderr", terminal)
    with stages(topics.spark, "compacting orders"):
        while not terminal.getvalue():
            topics.spark.range(10_000_000).selectExpr("sum(id % 7)").collect()
            assert time.monotonic() < deadline
    assert re.search(r"\rcompacting orders: +\d+%\|[# ]*\| [\d.]+k?/[\d.]+k? \[.* tasks/s\]", terminal.getvalue())
    assert re.search(r"\r +\r\Z", terminal.getvalue())
