"""
A shell with `kgateway` on its PATH.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from kgateway.testing.kafka import Kafka
from tests.cli.tools import PATIENCE_S, ROOT


class Shell:
    """
    Runs command lines in a folder.
    """

    def __init__(self, kafka: Kafka, folder: Path) -> None:
        self._folder = folder
        programs = folder / "programs"
        programs.mkdir()
        program = programs / "kgateway"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m kgateway "$@"\n')
        program.chmod(0o755)
        self._environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "KGATEWAY_BOOTSTRAP": kafka.bootstrap,
            "KGATEWAY_CONTROL_SOCKET": kafka.control_socket,
            "COLUMNS": "80",
        }

    def run(self, line: str) -> tuple[int, str]:
        """
        The exit code, and the combined output and messages.
        """
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            check=False,
        )
        return done.returncode, done.stdout.decode()
