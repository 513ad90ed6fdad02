"""
What packaging/Containerfile does, without an engine for containers: the command of its first stage, in a folder that
has nothing but what the stage copies, then the entry point and the health check.

These tests are not among the default ones, because pip downloads the requirements: `tox -e release` runs them.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kgateway import __version__
from tests.packaging.containerfile import ROOT, command, copied, environment, only

_INSTALLED = "/opt/kgateway"  # in the image
_LEFT_BY_OTHERS = shutil.ignore_patterns("__pycache__", "dropin.cache", "*.egg-info", "build")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    What the first stage installs.
    """
    source, installed = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("image") / "kgateway"
    for name, target in copied().items():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / target, symlinks=True, ignore=_LEFT_BY_OTHERS)
        else:
            shutil.copy(ROOT / name, source / target)
    name, _, default = only("ARG", 1).partition("=")
    run = only("RUN", 1).replace(_INSTALLED, str(installed))
    subprocess.run(run, shell=True, cwd=source, env=os.environ | {name: default}, check=True)
    return installed


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Callable[[list[str]], list[str]]:
    """
    Makes `env` start a command with the variables of the image and nothing else.
    """
    variables = environment() | {"PATH": f"{installed}/bin:/usr/bin:/bin", "KGATEWAY_LISTEN": "tcp:0"}
    return lambda words: ["env", "-i", *(f"{name}={value}" for name, value in variables.items()), *words]


@pytest.fixture
def gateway(run: Callable[[list[str]], list[str]], tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """
    A gateway that has said that it is ready.
    """
    words = run(command("ENTRYPOINT"))
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout
            assert any(f"kgateway {__version__} is ready: " in line for line in process.stdout)
            yield process
        finally:
            process.kill()


def test_a_container_is_healthy_until_it_is_stopped(
    gateway: subprocess.Popen[str], run: Callable[[list[str]], list[str]], tmp_path: Path
) -> None:
    """
    The health check succeeds in the folder of the entry point, and fails after SIGTERM.
    """
    health = run(command("HEALTHCHECK"))
    began = time.monotonic()
    subprocess.run(health, cwd=tmp_path, check=True)
    assert time.monotonic() - began < 5  # its timeout
    gateway.send_signal(getattr(signal, only("STOPSIGNAL", 2)))
    gateway.wait(30)
    assert subprocess.run(health, cwd=tmp_path, capture_output=True, check=False).returncode != 0


def test_the_data_are_in_the_volume(gateway: subprocess.Popen[str], tmp_path: Path) -> None:
    """
    Data folder and control socket are made where the process runs, which is the volume.
    """
    assert {path.name for path in tmp_path.iterdir()} == {"kgateway-data", "kgateway.sock"}


def test_the_first_process_of_a_container_stops(installed: Path, tmp_path: Path) -> None:
    """
    SIGTERM ends the gateway although it is the first process of its container, for which signals that nobody handles
    are ignored.
    """
    if shutil.which("unshare") is None or subprocess.run(["unshare", "--pid", "true"], check=False).returncode:
        pytest.skip("this user cannot make a namespace of processes")
    serve = [str(installed / "bin" / "kgateway"), "serve", "--listen", "tcp:0"]
    words = ["unshare", "--pid", "--fork", "--kill-child", *serve]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert any(" is ready: " in line for line in process.stdout)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            os.kill(int(children[0]), signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
