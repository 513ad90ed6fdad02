"""
Archives and tables of latest values.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.spark.archive.conftest import archives

__all__ = ["archives"]


@pytest.fixture
def tables(topics: Any, archives: Any, tmp_path: Path) -> Any:
    from tests.spark.compact.tables import Tables

    return Tables(topics, archives, tmp_path / "tables")
