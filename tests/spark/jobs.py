"""
Jobs of `kgateway spark`, run within the test and its Spark, or as they are called.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from kgateway.cli import spark as spark_command
from kgateway.cli.parsing import Parser
from tests.spark.gateway import Topics

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180
Run = Callable[..., list[str]]


class Ended:
    """
    A command that has ended.
    """

    def __init__(self, topics: Topics, *arguments: str) -> None:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "KGATEWAY_BOOTSTRAP": topics.kafka.bootstrap}
        command = [sys.executable, "-m", "kgateway", "spark", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr


def runner(topics: Topics, monkeypatch: pytest.MonkeyPatch, job: str) -> Run:
    """
    Runs one job with these options; its lines.
    """
    monkeypatch.setattr(f"kgateway.cli.spark_{job}.session", lambda options: nullcontext(topics.spark))

    def run(*given: object) -> list[str]:
        parser = Parser(prog="kgateway spark")
        spark_command.add_arguments(parser)
        options: Any = parser.parse_args([job, "--bootstrap", topics.kafka.bootstrap, *map(str, given)])
        return [*spark_command.run(options)]

    return run
