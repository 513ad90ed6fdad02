"""
Colours on terminals.
"""

import io
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout

import pytest

from kgateway.cli.common.colours import Colour, coloured
from kgateway.cli.common.output import Column, safe_lines, table
from tests.cli.tools import ROOT


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """
    A terminal that has colours.
    """
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def test_colours_are_for_terminals(terminal: Terminal) -> None:
    """
    Text has a colour on a terminal, but not in a pipe.
    """
    assert coloured("text", Colour.RED, terminal) == "\x1b[31mtext\x1b[0m"
    assert coloured("text", None, terminal) == "text"
    assert coloured("text", Colour.RED, io.StringIO()) == "text"


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", None)])
def test_a_terminal_may_have_no_colours(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, variable: str, value: str | None
) -> None:
    """
    NO_COLOR and a dumb terminal are respected.
    """
    if value is None:
        monkeypatch.delenv(variable)
    else:
        monkeypatch.setenv(variable, value)
    assert coloured("text", Colour.RED, terminal) == "text"


def test_colours_of_a_table(terminal: Terminal) -> None:
    """
    The headings are bold, and columns are as wide as without colours. What clients chose is still escaped.
    """
    columns = (Column("GROUP", 20), Column("STATE", 20, colours={"Dead": Colour.RED}), Column("N", 5))
    with redirect_stdout(terminal):
        rows = table(columns, [("a\x1b[2J", "Dead", 1), ("b", "Stable", 2)])
    lines = [line for row in rows for line in safe_lines(row)]
    assert lines == [
        "\x1b[1mGROUP     STATE   N\x1b[0m",
        "a\\x1b[2J  \x1b[31mDead\x1b[0m    1",
        "b         Stable  2",
    ]
    assert safe_lines("one\n\x1b[2J") == ["one", "\\x1b[2J"]


@pytest.mark.parametrize("changed", [lambda environ: {**environ, "NO_COLOR": "1"}, lambda environ: environ])
def test_an_error_on_a_terminal(changed: Callable[[dict[str, str]], dict[str, str]]) -> None:
    """
    The name of the command is red.
    """
    plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    environ = changed({**plain, "TERM": "xterm", "PYTHONPATH": str(ROOT)})
    ours, theirs = pty.openpty()
    try:
        subprocess.run([sys.executable, "-m", "kgateway", "topic"], stderr=theirs, env=environ, check=False)
        shown = os.read(ours, 1000).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    name = "kgateway:" if "NO_COLOR" in environ else "\x1b[31mkgateway:\x1b[0m"
    assert shown == f"{name} error: there is no command 'topic'; did you mean topics?\r\n"
