"""
`kgateway log dump` shows the files of a log.
"""

import sys
from pathlib import Path

import pytest

from kgateway.records.builder import BatchBuilder
from tests.broker.log.log_brokers import START_MS
from tests.cli.log_folder import BATCH, FIRST, SECOND, Run, change


def test_batches_are_a_table(data: Path, run: Run) -> None:
    """
    Each batch is a line below the name of its file.
    """
    ended = run("dump", data, "--from", "16", "--limit", "2")
    assert ended.code == 0
    headings = "OFFSETS BYTE SIZE CODEC FROM TO PRODUCER FLAG EPOCH CRC"
    assert [" ".join(line.split()) for line in ended.lines[:6]] == [
        f"data/{FIRST}.log:",
        headings,
        f"16-16 {16 * BATCH} {BATCH} none 2027-01-15T08:00:16.000Z +0ms 0/0/16 - 0 ok",
        f"data/{SECOND}.log:",
        headings,
        f"17-17 0 {BATCH} none 2027-01-15T08:00:17.000Z +0ms 0/0/17 - 0 ok",
    ]
    assert len({len(line) for line in ended.lines[1:6] if " " in line.strip()}) <= 2


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--limit", "-1", "must be a whole number of at least 1, not '-1'"),
        ("--limit", "0", "must be a whole number of at least 1, not '0'"),
        ("--limit", "x", "must be a whole number of at least 1, not 'x'"),
        ("--from", "-5", "must be a whole number from 0 to 9223372036854775807, not '-5'"),
        ("--from", str(1 << 63), "must be a whole number from 0 to 9223372036854775807, not '9223372036854775808'"),
    ],
)
def test_a_limit_and_an_offset_are_whole_numbers(data: Path, run: Run, option: str, value: str, says: str) -> None:
    ended = run("dump", data, option, value)
    assert (ended.code, ended.lines) == (2, [])
    assert ended.errors == f"kgateway log dump: error: argument {option}: {says}\n"


def test_segments_before_the_offset_are_left_out(data: Path, run: Run) -> None:
    """
    Even their names are not shown.
    """
    lines = run("dump", data / "orders-0", "--from", "20", "--limit", "1").lines
    assert lines[0] == f"data/{SECOND}.log:"
    assert lines[2].startswith("20-20 ")
    assert len(lines) == 3


def test_an_empty_file_takes_a_line(data: Path, run: Run) -> None:
    """
    There are no headings without rows.
    """
    assert run("dump", data, "--partition", "orders-1").lines == [f"data/orders-1/{0:020d}.log: empty"]


def test_records_are_shown_below_their_batch(data: Path, run: Run) -> None:
    """
    They have time, key, value and headers, printable; nothing is cut in a pipe.
    """
    builder = BatchBuilder(is_transactional=True)
    for number in range(3):
        builder.append(b"k\n\xff", None if number else b"value", timestamp=START_MS, headers=[("h", b"\x1b[2J")])
    Path("1.log").write_bytes(builder.build())
    ended = run("dump", "--records", "--from", "1", "--limit", "1", "1.log")
    assert ended.lines[1].split()[-4:] == ["-", "T", "-1", "ok"]
    assert ended.lines[2] == '                1 2027-01-15T08:00:00.000Z "k\\n\\xff" null [h="\\x1b[2J"]'
    assert len(ended.lines) == 3
    assert max(map(len, run("dump", "--records", data).lines)) > 1000


def test_lines_fit_the_terminal(data: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert max(map(len, run("dump", "--records", data).lines)) == 100


def test_a_damaged_batch(data: Path, run: Run) -> None:
    """
    Its header is shown as far as it is readable, with the fault; later batches are shown.
    """
    change(data / f"{FIRST}.log", 2 * BATCH + 100, b"x")
    lines = run("dump", data / f"{FIRST}.log", "--limit", "4").lines
    assert [line.split()[-1] for line in lines[1:4]] == ["ok", "ok", "BAD"]
    assert lines[4] == f"  byte {2 * BATCH}, {BATCH} bytes: the CRC of the batch does not match its contents"
    assert lines[5].startswith("3-3 ")


def test_other_files(data: Path, run: Run) -> None:
    """
    Indexes, snapshots and leader epochs are recognized by their names.
    """
    assert run("dump", data / f"{SECOND}.index").lines[:2] == [
        "             OFFSET       BYTE",
        f"                 18      {BATCH}",
    ]
    assert run("dump", data / f"{SECOND}.timeindex", "--limit", "1").lines == [
        "             OFFSET LARGEST TIME SO FAR",
        "                 18 2027-01-15T08:00:18.000Z",
    ]
    assert run("dump", data / "orders-0/leader-epoch-checkpoint").lines == ["0", "1", "0 0"]
    snapshot = run("dump", data / "orders-0" / f"{40:020d}.snapshot").lines
    assert snapshot[0].split() == ["PRODUCER", "EPOCH", "SEQUENCES", "OFFSETS", "TIME"]
    assert snapshot[-1].split() == ["0", "0", "39-39", "39-39", "2027-01-15T08:00:39.000Z"]


def test_unreadable_files(data: Path, run: Run) -> None:
    """
    The reason is one line on stderr, with exit code 2.
    """
    Path("picture.jpg").touch()
    for path, told in (
        ("picture.jpg", "picture.jpg is not a file of a log; name a .log"),
        ("nowhere.log", "nowhere.log cannot be read: No such file or directory\n"),
        ("nowhere", "nowhere cannot be read: No such file or directory\n"),
        (".", ". is not a data folder; did you mean data?\n"),
    ):
        ended = run("dump", path)
        assert ended.code == 2
        assert ended.errors.startswith(f"kgateway log dump: {told}")
    assert "has no log of orders-9" in run("dump", data, "--partition", "orders-9").errors


def test_files_to_be_removed(data: Path, run: Run) -> None:
    """
    Deleted files can be shown while they exist, and so can the file of log start offsets.
    """
    log = data / f"{SECOND}.log"
    index = data / f"{SECOND}.index"
    shown = [run("dump", path).lines for path in (log, index)]
    for path in (log, index):
        path.rename(path.with_name(f"{path.name}.deleted"))
    assert [run("dump", path.with_name(f"{path.name}.deleted")).lines for path in (log, index)] == shown
    path = data / "log-start-offset-checkpoint"
    path.write_bytes(b"0\n1\norders 0 3\n")
    assert run("dump", path).lines == ["0", "1", "orders 0 3"]
