"""
File systems that only the processes of one test see: a mount namespace of its own, which ends with it.
"""

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

_WAIT = "echo entered; exec cat"  # until its input is closed
_WAYS = (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"])


class PrivateMounts:
    """
    The namespace, from when it is entered; a test is skipped where the machine gives none.
    """

    def __init__(self) -> None:
        for way in _WAYS if sys.platform == "linux" else ():
            self._holder = subprocess.Popen(
                [*way, "sh", "-c", _WAIT],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            assert self._holder.stdout
            if self._holder.stdout.readline():
                self._is_user = "--user" in way
                return
            self._end()
        pytest.skip("this machine permits no mount namespaces")

    @property
    def prefix(self) -> list[str]:
        """
        What stands before a command that is to run there. The process is that of the command.
        """
        user = ["--user", "--preserve-credentials"] if self._is_user else []
        return ["nsenter", "--mount", *user, f"--target={self._holder.pid}", f"--wd={os.getcwd()}"]

    def run(self, *command: str | Path) -> None:
        """
        A command there.
        """
        subprocess.run([*self.prefix, *map(str, command)], check=True)

    def path(self, path: Path) -> Path:
        """
        Where a file of the namespace is for others.
        """
        return Path(f"/proc/{self._holder.pid}/root{path}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        for pipe in (self._holder.stdin, self._holder.stdout):
            if pipe:
                pipe.close()
        self._holder.wait()
