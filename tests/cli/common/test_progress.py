"""
Progress of long work.
"""

import io
import re
import subprocess
import sys

import pytest

from kgateway.cli.common import progress
from kgateway.cli.common.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal_of(monkeypatch: pytest.MonkeyPatch, redrawn_s: float = 0.0) -> Terminal:
    """
    A terminal of 80 columns on which each step draws the bar at once.
    """
    found = Terminal()
    monkeypatch.setattr("sys.stderr", found)
    monkeypatch.setattr(progress, "_REDRAWN_S", redrawn_s)
    monkeypatch.setenv("COLUMNS", "81")
    monkeypatch.setenv("LINES", "24")
    return found


def test_an_unknown_total(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Without a total the line shows the amount, the time and the rate.
    """
    terminal = terminal_of(monkeypatch)
    with Progress() as shown:
        shown.show(3 << 20, None)
    lines = terminal.getvalue().split("\r")
    assert re.fullmatch(r"3\.00MiB \[00:00, .*iB/s\] *", lines[-3])


def test_a_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The bar is one line, which makes room for output and is cleared at the end.
    """
    terminal = terminal_of(monkeypatch)
    with Progress("archiving orders", "offsets") as shown:
        shown.show(3_000, 12_000)
        shown.clear()
        shown.show(6_000, 12_000)
    assert "\n" not in terminal.getvalue()
    _, *lines, last = terminal.getvalue().split("\r")
    drawn = [line for line in lines if line.strip()]
    assert [re.sub(r"\|.*\|", "|...|", line)[:44] for line in drawn[-2:]] == [
        "archiving orders:  25%|...| 3.00k/12.0k [00:",
        "archiving orders:  50%|...| 6.00k/12.0k [00:",
    ]
    assert all(len(line) <= 81 and "offsets/s" in line for line in drawn[-2:])
    assert (lines[-1].strip(), last) == ("", "")


def test_short_work_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A bar that would be cleared at once is not drawn.
    """
    terminal = terminal_of(monkeypatch, redrawn_s=60)
    with Progress() as shown:
        shown.show(1, 2)
        shown.clear()
    assert terminal.getvalue() == ""


def test_a_bar_is_not_drawn_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Most steps draw nothing.
    """
    terminal = terminal_of(monkeypatch, redrawn_s=0.2)
    shown = Progress()
    shown._began -= 1
    for done in range(10_000):
        shown.show(done, 10_000)
    assert 1 <= terminal.getvalue().count("%") < 20


def test_a_file_gets_no_bar() -> None:
    """
    Nothing is written to a stderr that is no terminal, and tqdm is not imported.
    """
    script = (
        "import sys; from kgateway.cli.common import progress; progress._REDRAWN_S = 0.0\n"
        "with progress.Progress() as shown: shown.show(1, 2); shown.clear()\n"
        "print('tqdm' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("False\n", "")
