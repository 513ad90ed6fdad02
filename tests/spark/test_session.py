"""
Jobs without Java: what is missing is said in plain lines.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.spark.jobs import PATIENCE_S, ROOT


def failed(**environment: str) -> list[str]:
    """
    The messages of a query that cannot run.
    """
    inherited = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    command = [sys.executable, "-m", "kgateway", "spark", "sql", "SELECT 1"]
    own = inherited | {"PYTHONPATH": str(ROOT)} | environment
    done = subprocess.run(command, env=own, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr.splitlines()


def test_there_is_no_java(tmp_path: Path) -> None:
    said = "Spark needs Java 17 or newer: there is no `java` on the PATH, and JAVA_HOME is not set"
    assert failed(PATH=str(tmp_path)) == [f"kgateway spark sql: {said}"]


def test_java_does_not_start(tmp_path: Path) -> None:
    """
    Its own lines are printed as they are, and then the reason.
    """
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'no «memory»' >&2\nexit 1\n")
    java.chmod(0o755)
    *lines, reason = failed(JAVA_HOME=str(tmp_path))
    assert lines[0] == "no «memory»"
    assert reason.startswith("kgateway spark sql: Spark does not start: [JAVA_GATEWAY_EXITED] ")
