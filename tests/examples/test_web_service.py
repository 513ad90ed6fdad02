"""
The web service example.
"""

import os
import subprocess
import sys
from pathlib import Path


def test_its_tests_pass(examples: Path) -> None:
    """
    pytest runs them where kgateway is installed.
    """
    plugins = ("-p", "kgateway.testing.pytest_plugin", "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", *plugins, "-q", str(examples / "web_service")]
    environment = {**os.environ, "PYTHONPATH": str(examples.parent)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "4 passed" in ended.stdout


def test_compaction_is_for_totals_only(examples: Path) -> None:
    """
    The page does not advise to compact the topic: its visits have the product as key, and all of them count.
    """
    page = " ".join((examples / "web_service" / "README.md").read_text().split())
    assert "Do not compact the topic" in page
    assert [told.split(". ")[-1] for told in page.split("`cleanup.policy=compact`")[:-1]] == [
        "Alternatively, write totals instead of visits, with the product as the key: such a topic can have "
    ]
