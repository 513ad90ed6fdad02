"""
The processes of a Spark application: its driver, and the executors that the driver's Java starts.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

CLUSTER = "local-cluster[2,1,700]"  # two executors, each a process
_EXECUTOR = "CoarseGrainedExecutorBackend"


class Application:
    """
    An application that is restarted whenever it has ended.
    """

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.starts = 0
        self._log = folder / "application.log"
        self._command = [sys.executable, *arguments]
        self._environment = os.environ | {
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": str(folder / "work"),
            "SPARK_LOCAL_DIRS": str(folder / "local"),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._groups = list[int]()
        self.ensure()

    def ensure(self) -> None:
        if self._process and self._process.poll() is None:
            return
        self.starts += 1
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )
        self._groups.append(self._process.pid)

    def kill_driver(self) -> None:
        """
        Kill the driver's Python; its Java ends when it notices.
        """
        assert self._process
        self._process.kill()
        self._process.wait()

    def kill_executor(self) -> bool:
        """
        Kill one of the executors, if there is one.
        """
        assert self._process
        found = [pid for pid in _session(self._process.pid) if _EXECUTOR in _words(pid)]
        for pid in found[:1]:
            os.kill(pid, signal.SIGKILL)
        return bool(found)

    def stop(self) -> None:
        for group in self._groups:
            for pid in _session(group):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if self._process:
            self._process.wait()

    def output(self) -> str:
        return self._log.read_text(errors="replace")[-4_000:]


def _session(leader: int) -> list[int]:
    """
    The processes that this one started, and their children.
    """
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int((folder / "stat").read_text().rpartition(")")[2].split()[3]) == leader:
                found.append(int(folder.name))
    return found


def _words(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""
