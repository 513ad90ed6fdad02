"""
Has compaction done by a process of its own, so that nobody else waits for the processor.

    python -m kgateway.broker.log.compaction.helper MEMORY_BYTES

reads a job from its standard input, as JSON in one line, and writes the outcome, or why there is none. The input stays
open for as long as somebody waits: when it ends, so does the process, whatever became of its gateway.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from threading import Lock, Thread
from typing import Any, TextIO

from kgateway.broker.log.compaction.cleaning import Full, Job, Outcome, Rewritten, compact
from kgateway.broker.log.local_disk import LocalDisk
from kgateway.broker.log.walking import Damaged

_NICENESS = 10  # those who are waited for come first


class Helper:
    """
    One process at a time.
    """

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    def compact(self, job: Job) -> Outcome:
        """
        Wait for the outcome; in a thread. An OSError or Damaged as the process has met it, an OSError where it was
        stopped.
        """
        with self._lock:
            if self._stopped:
                raise OSError("compaction is stopped")
            process = self._process = _start(self._memory_bytes)
        try:
            # Not `communicate`, which closes the input at once.
            assert process.stdin
            assert process.stdout
            process.stdin.write(f"{json.dumps(asdict(job))}\n")
            process.stdin.flush()
            told = process.stdout.read()
        finally:
            process.kill()
            process.__exit__(None, None, None)
        return _outcome(told, process.returncode)

    def stop(self) -> None:
        """
        End what runs, and begin nothing any more.
        """
        with self._lock:
            self._stopped = True
            if self._process:
                self._process.kill()


def _start(memory_bytes: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "kgateway.broker.log.compaction.helper", str(memory_bytes)]
    path = os.pathsep.join(sys.path)
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def _outcome(told: str, code: int) -> Outcome:
    if not told:
        raise OSError(f"the process that compacts ended with {code}, and told nothing")
    fields = json.loads(told)
    kind = fields.pop("failed", None)
    if kind == "damaged":
        raise Damaged(fields["position"], fields["reason"])
    if kind:
        raise OSError(fields["errno"], fields["reason"], fields["path"])
    fields["rewritten"] = [Rewritten(**row) for row in fields["rewritten"]]
    return Outcome(**fields)


def main(memory_bytes: int, given: TextIO, told: TextIO, leave: Callable[[], None]) -> None:
    """
    Do one job; leave where the other side does.
    """
    job = _job(json.loads(given.readline()))

    def watch() -> None:
        given.read()
        leave()

    Thread(target=watch, daemon=True).start()
    json.dump(_done(job, memory_bytes), told)


def _job(fields: dict[str, Any]) -> Job:
    fields["segments"] = [Full(**row) for row in fields["segments"]]
    fields["last_offsets"] = {int(key): offset for key, offset in fields["last_offsets"].items()}
    return Job(**fields)


def _done(job: Job, memory_bytes: int) -> dict[str, Any]:
    try:
        return asdict(compact(job, LocalDisk(), memory_bytes))
    except Damaged as error:
        return {"failed": "damaged", "position": error.position, "reason": error.reason}
    except OSError as error:
        return {"failed": "system", "errno": error.errno, "reason": error.strerror, "path": error.filename}


if __name__ == "__main__":
    with suppress(OSError):
        os.nice(_NICENESS)
    main(int(sys.argv[1]), sys.stdin, sys.stdout, lambda: os._exit(1))
