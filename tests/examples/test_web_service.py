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
