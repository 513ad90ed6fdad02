"""
packaging/Containerfile, as far as it can be tried without an engine for containers: `tox -e release` also runs what
its first stage runs.
"""

import os
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

from kgateway.testing.kafka import Kafka
from tests.packaging.containerfile import ROOT, command, copied, environment, instructions, only

_USED = {
    "ARG",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "RUN",
    "STOPSIGNAL",
    "USER",
    "VOLUME",
    "WORKDIR",
}


def _run(words: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """
    Run a command of the image with the `kgateway` of this environment.
    """
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environ = os.environ | environment() | {"PATH": path} | variables
    return subprocess.run(words, cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False)


def test_each_instruction_exists() -> None:
    """
    Two stages of instructions that every engine knows. The entry point is the gateway itself, which gets the signals.
    """
    rows = instructions()
    assert {row.name for row in rows} <= _USED
    assert [row.stage for row in rows if row.name == "FROM"] == [1, 2]
    assert command("ENTRYPOINT") == ["kgateway", "serve"]


def test_what_is_copied_exists() -> None:
    """
    Each source is in the checkout, and .dockerignore lets it through, and nothing else.
    """
    ignored, *rest = [
        line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")
    ]
    assert ignored == "*"
    assert {line[1:] for line in rest if line.startswith("!")} == set(copied())
    assert [source for source in copied() if not (ROOT / source).exists()] == []


def test_every_package_is_copied() -> None:
    """
    setup.cfg names no package that the image lacks, and the links inside lead to what is copied.
    """
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    include = setup["options.packages.find"]["include"].split()
    assert {name.partition(".")[0] for name in include} <= set(copied())
    links = [path.resolve().relative_to(ROOT) for path in (ROOT / "kgateway").iterdir() if path.is_symlink()]
    assert [link for link in links if link.parts[0] not in copied()] == []


def test_the_user_is_not_root() -> None:
    """
    The user is a number, by which Kubernetes knows it, and owns the folder of the volume, where the process runs.
    """
    number, group = only("USER", 2).split(":")
    assert number == group != "0"
    folder = only("VOLUME", 2)
    assert folder == only("WORKDIR", 2)
    assert f"--uid {number}" in only("RUN", 2)
    assert f"--create-home --home-dir {folder} " in only("RUN", 2)


def test_a_running_gateway_is_healthy(tmp_path: Path) -> None:
    """
    The command of HEALTHCHECK succeeds beside a gateway that advertises an address that nobody can reach, and fails
    when the gateway is gone.
    """
    with Kafka("--advertise", "unreachable.invalid:9092", folder=tmp_path) as kafka:
        healthy = _run(command("HEALTHCHECK"), tmp_path, KGATEWAY_CONTROL_SOCKET=kafka.control_socket)
    assert healthy.returncode == 0, healthy.stderr
    gone = _run(command("HEALTHCHECK"), tmp_path, KGATEWAY_CONTROL_SOCKET=kafka.control_socket)
    assert gone.returncode != 0
