"""
Statements, run by the command in the tests' Spark.
"""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def archives(topics: Any, tmp_path: Path) -> Any:
    from tests.spark.archive.archives import Archives

    options = {"kafka.bootstrap.servers": topics.kafka.bootstrap, "kafka.isolation.level": "read_committed"}
    return Archives(topics.spark, tmp_path / "archives", options)


@pytest.fixture
def sql(topics: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """
    The command, in a folder of its own.
    """
    from kgateway.cli.spark.session import hush_errors
    from tests.spark.jobs import runner

    hush_errors()
    monkeypatch.chdir(tmp_path)
    return runner(topics, monkeypatch, "sql")
