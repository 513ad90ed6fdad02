"""
The control sockets of real processes, one after the other and two at a time.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from kgateway.control.client import ask

ROOT = Path(__file__).parents[2]
PATH = "kgateway.sock"


@contextmanager
def gateway() -> Iterator[tuple["subprocess.Popen[str]", IO[str]]]:
    """
    A process with a control socket in this folder, and its output.
    """
    command = [sys.executable, "-m", "tests.control.gateway", PATH]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield process, process.stdout
        finally:
            process.kill()


def test_sockets_are_replaced_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A killed gateway's file is replaced, a second gateway is refused, and the first removes the file when it ends.
    """
    monkeypatch.chdir(tmp_path)  # a relative path is short enough for a socket everywhere
    with gateway() as (process, said):
        assert said.readline() == "open\n"
        process.kill()
        process.wait()
    assert Path(PATH).exists()
    with gateway() as (process, said):
        assert said.readline() == "open\n"
        assert ask(PATH, "echo", {"limit": 20}) == {"limit": 20}
        with gateway() as (second, refusal):
            assert refusal.readline().startswith(f"another gateway responds at {PATH}")
            assert second.wait() == 0
        process.terminate()
        assert process.wait() == 0
    assert not Path(PATH).exists()
