"""
Archives of the gateway that runs.
"""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def archives(topics: Any, tmp_path: Path) -> Any:
    """
    In a folder of their own.
    """
    from tests.spark.archive.archives import Archives

    options = {"kafka.bootstrap.servers": topics.kafka.bootstrap, "kafka.isolation.level": "read_committed"}
    return Archives(topics.spark, tmp_path / "archives", options)
