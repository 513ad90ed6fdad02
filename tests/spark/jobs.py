"""
Jobs of `kgateway spark`, run in the test's Spark or as commands.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from kgateway.cli.commands import COMMANDS
from kgateway.cli.main import lines_of
from tests.spark.gateway import Topics

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180
Run = Callable[..., list[str]]


class Ended:
    def __init__(self, topics: Topics, *arguments: str) -> None:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "KGATEWAY_BOOTSTRAP": topics.kafka.bootstrap}
        command = [sys.executable, "-m", "kgateway", "spark", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr


def runner(topics: Topics, monkeypatch: pytest.MonkeyPatch, job: str) -> Run:
    """
    A function that runs a job with these options and returns its lines.
    """
    module = COMMANDS["spark"].subcommands[job].module
    monkeypatch.setattr(f"kgateway.cli.{module}.session", lambda options: nullcontext(topics.spark))

    def run(*given: object) -> list[str]:
        return [*lines_of(["spark", job, "--bootstrap", topics.kafka.bootstrap, *map(str, given)])]

    return run
