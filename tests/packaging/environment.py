"""
A fresh virtual environment, of this Python or another one, out of sight of the checkout.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kgateway.testing.kafka import Kafka


class Environment:
    def __init__(self, folder: Path, base_python: str = sys.executable) -> None:
        subprocess.run([base_python, "-m", "venv", folder], check=True)
        self.python = folder / "bin" / "python"

    def pip(self, *arguments: str | Path) -> None:
        """
        Run pip, and expect success.
        """
        self.run("-m", "pip", "--disable-pip-version-check", *arguments)

    def run(self, *arguments: str | Path, stdin: str = "") -> str:
        """
        The output of Python in a folder without this checkout.
        """
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        run = subprocess.run(
            [self.python, *arguments],
            cwd=self.python.parent,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    @contextmanager
    def kafka(self, *options: str, folder: Path | None = None) -> Iterator[Kafka]:
        """
        A gateway of this environment, started in the folder.
        """
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "executable", str(self.python))
            patch.delenv("PYTHONPATH", raising=False)
            with Kafka(*options, folder=folder) as kafka:
                yield kafka

    def plugins(self, kafka: Kafka) -> list[dict[str, Any]]:
        """
        The output of `kgateway plugins` for a gateway.
        """
        answer = self.run("-m", "kgateway", "plugins", "--json", "--control-socket", kafka.control_socket)
        rows: list[dict[str, Any]] = json.loads(answer)["plugins"]
        return rows
