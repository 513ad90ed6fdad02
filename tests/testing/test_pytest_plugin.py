"""
The fixtures, in a run of pytest without any of our conftest modules.
"""

import os
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

from kgateway.testing import pytest_plugin

ROOT = Path(__file__).parents[2]

TESTS = """
import socket
import pytest

gone, shared = [], []

def test_one(kafka, shared_kafka):
    assert kafka.port != shared_kafka.port
    gone.append(kafka.port)
    shared.append(shared_kafka.port)

def test_another(kafka, shared_kafka):
    assert [shared_kafka.port] == shared
    assert kafka.port not in gone + shared
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", gone[0]))

def test_several(start_kafka):
    two = start_kafka("--listen", "a=tcp:0:interface=127.0.0.1", "--listen", "b=tcp:0:interface=127.0.0.1")
    other = start_kafka(patience_s=20)
    assert len({*two.addresses, other.bootstrap}) == 3
    gone.append(other.port)

def test_several_are_gone():
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", gone[1]))
"""


def run(folder: Path, text: str) -> str:
    """
    The output of pytest for these tests, all of which pass.
    """
    (folder / "test_it.py").write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        pytest_plugin.__name__,
        "-p",
        "no:cacheprovider",
        "-q",
        "test_it.py",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_fixtures(tmp_path: Path) -> None:
    """
    `kafka` is new for each test, `shared_kafka` the same for all; `start_kafka` starts any number. All of them end,
    the first and the last after the test.
    """
    assert "4 passed" in run(tmp_path, TESTS)


def test_the_fixtures_are_found_by_themselves() -> None:
    """
    pytest loads them where kgateway is installed, under the name of their module; otherwise `-p` would load them
    twice.
    """
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg")
    entry = settings["options.entry_points"]["pytest11"].strip()
    assert entry == f"{pytest_plugin.__name__} = {pytest_plugin.__name__}"
