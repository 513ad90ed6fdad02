"""
The commands of the pages about Spark print what the pages show.
"""

from pathlib import Path

import pytest

from tests.docs.test_console import SPARK, run

PATIENCE_S = 600  # Spark takes its time to start, and longer beside other tests


@pytest.mark.parametrize("name", sorted(SPARK))
def test_commands_print_what_the_page_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.docs.console.PATIENCE_S", PATIENCE_S)
    run(name, tmp_path, present=set())
