"""
Copiers as processes: one after another with the same transactional id, and now and then two at a time.
"""

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from threading import Lock, Thread

from tests.clients.transactions.workers.reports import Wanted

_ROOT = Path(__file__).parents[3]
_LIVES = 10_000  # the most lives of one copier


class Life:
    """
    A process, running from its creation. The callback gets it when it has ended.
    """

    def __init__(self, command: Sequence[str], how: Wanted, log: Path, ended: Callable[["Life"], None]) -> None:
        self.how = how
        self.outcomes: dict[str, bool] = {}  # mark -> whether the transaction is committed
        self.why: str | None = None  # it ended by itself
        self.is_ready = self.was_killed = self.was_replaced = self.has_ended = False
        self._ended = ended
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [*command, json.dumps(asdict(how))],
                cwd=_ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def kill(self) -> None:
        self.was_killed = True
        self._process.kill()

    def wait(self) -> None:
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout
        assert self._process.stdin
        for line in self._process.stdout:
            if line.endswith(b"\n"):  # or it was killed in the middle of the line
                self._take(json.loads(line))
        if self._process.wait() and not self.was_killed:
            self.why = f"exit code {self._process.returncode}"
        self._process.stdout.close()
        self._process.stdin.close()
        self.has_ended = True
        self._ended(self)

    def _take(self, line: dict[str, str]) -> None:
        match line["told"]:
            case "ready":
                self.is_ready = True
            case "committed" | "aborted":
                self.outcomes[line["mark"]] = line["told"] == "committed"
            case "ended":
                self.why = line["why"]
            case other:
                raise ValueError(other)


class Copier:
    """
    A process copies at all times with this transactional id: the newest life is followed by another when it ends.
    """

    def __init__(self, command: Sequence[str], how: Wanted, log: Path) -> None:
        self.lives: list[Life] = []
        self._command = command
        self._how = how
        self._log = log
        self._lock = Lock()
        self._stopping = False
        self.twin()

    def kill(self) -> None:
        with self._lock:
            self.lives[-1].kill()

    def twin(self) -> None:
        """
        Start another life beside the running ones.
        """
        with self._lock:
            self._begin()

    def stop(self) -> None:
        """
        End all lives for good.
        """
        with self._lock:
            self._stopping = True
        for life in self.lives:
            life.kill()
            life.wait()

    @property
    def are_replaced_gone(self) -> bool:
        """
        Whether only the newest life runs, and has fenced those before it.
        """
        *replaced, newest = self.lives
        return newest.is_ready and all(life.has_ended for life in replaced)

    def _begin(self) -> None:
        for life in self.lives:
            life.was_replaced = True
        how = replace(self._how, seed=self._how.seed * _LIVES + len(self.lives))
        self.lives.append(Life(self._command, how, self._log, self._go_on))

    def _go_on(self, ended: Life) -> None:
        with self._lock:
            if ended is self.lives[-1] and not self._stopping:
                self._begin()
