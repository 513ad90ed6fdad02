"""
Jobs without Java or a server: what is missing is said in plain lines.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kgateway.cli.main import main
from kgateway.client.connection import NothingListens
from kgateway.spark.sql.tables import Tables
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


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("archive orders --into a --once", 1),
        ("verify orders --in a", 2),
        ("compact orders --output a", 1),
        ("sql VALUES(1) --to-topic orders", 1),
    ],
)
def test_a_missing_server_is_an_error_at_once(command: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Nothing is retried, and Java is not even started.
    """
    name, *more = command.split()
    with pytest.raises(SystemExit) as end:
        main(["spark", name, *more, "--bootstrap", "127.0.0.1:1"])
    assert end.value.code == code
    assert capsys.readouterr().err == f"kgateway spark {name}: nothing listens at 127.0.0.1:1\n"


def test_topics_of_a_missing_server_are_an_error_at_once() -> None:
    """
    A statement names its topics only to Spark, so Spark has started by then.
    """
    with Tables(None, {"kafka.bootstrap.servers": "127.0.0.1:1"}, {}, print) as tables, pytest.raises(NothingListens):
        tables.topics()
