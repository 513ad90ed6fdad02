"""
Jobs of `kgateway spark`, run within the test and its Spark.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from kgateway.cli import spark as spark_command
from kgateway.cli.parsing import Parser
from tests.spark.gateway import Topics

Run = Callable[..., list[str]]


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
