"""
How far a long work is.
"""

import io

import pytest

from kgateway.cli.bar import Bar


class Terminal(io.StringIO):
    """
    Where a person looks.
    """

    def isatty(self) -> bool:
        return True


def test_of_how_much_may_not_be_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Then it is only told how much there was, and how fast.
    """
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    Bar().show(3 << 20, None, 2)
    assert terminal.getvalue() == "\r3.0 MiB, 1.5 MiB/s \x1b[K"


def test_who_waits_sees_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    On a terminal, in one line that goes when it is over; what is no terminal is left clean.
    """
    for terminal, shown in (
        (Terminal(), "\r[########......................] 25%, 3.0 MiB of 12.0 MiB, 1.5 MiB/s \x1b[K\r\x1b[K"),
        (io.StringIO(), ""),
    ):
        monkeypatch.setattr("sys.stderr", terminal)
        bar = Bar()
        bar.show(3 << 20, 12 << 20, 2)
        bar.show(3 << 20, 12 << 20, 2.1)
        bar.clear()
        assert terminal.getvalue() == shown
