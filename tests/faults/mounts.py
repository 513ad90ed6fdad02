"""
File systems that only the processes of one test see, in a mount namespace that ends with the test.
"""

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

_WAIT = "echo entered; exec cat"  # runs until its input is closed
_WAYS = (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"])


class PrivateMounts:
    """
    The mount namespace while it is entered; a test is skipped where the machine allows none.
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
        The command prefix that runs a command in the namespace, in the same process.
        """
        user = ["--user", "--preserve-credentials"] if self._is_user else []
        return ["nsenter", "--mount", *user, f"--target={self._holder.pid}", "--wd=."]

    def run(self, *command: str | Path) -> None:
        subprocess.run([*self.prefix, *map(str, command)], check=True)

    def path(self, path: Path) -> Path:
        """
        The path of a namespace's file for processes outside it.
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
