"""
Has compaction done by a process of its own, so that nobody else waits for the processor.

    python -m kgateway.broker.log.compaction.helper MEMORY_BYTES

reads jobs from its standard input, each as JSON in one line, and writes the outcome of each, or why there is none, in a
line too. When its input ends, so does the process, whatever became of its gateway.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TextIO

from kgateway.broker.aborted import AbortedTransaction
from kgateway.broker.log.compaction.cleaning import Full, Job, Outcome, Rewritten, compact
from kgateway.broker.log.compaction.retaining import LastBatch
from kgateway.broker.log.local_disk import LocalDisk
from kgateway.broker.log.walking import Damaged

_NICENESS = 10  # those who are waited for come first


class Helper:
    """
    One process, from the first job on until there is nothing to do for a while.
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
            process = self._process = self._process or _start(self._memory_bytes)
        told = _told(process, job)
        if not told:
            self.rest()
            raise OSError(f"the process that compacts ended with {process.returncode}, and told nothing")
        return _outcome(told)

    def rest(self) -> None:
        """
        End the process, until there is another job; in the thread that waits for jobs.
        """
        with self._lock:
            process, self._process = self._process, None
        if process:
            process.kill()
            with suppress(BrokenPipeError):  # what it was told last it did not read
                process.__exit__(None, None, None)

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


def _told(process: "subprocess.Popen[str]", job: Job) -> str:
    """
    Nothing where it ends before it has done the job.
    """
    assert process.stdin
    assert process.stdout
    with suppress(BrokenPipeError):
        process.stdin.write(f"{json.dumps(asdict(job))}\n")
        process.stdin.flush()
    return process.stdout.readline()


def _outcome(told: str) -> Outcome:
    fields = json.loads(told)
    kind = fields.pop("failed", None)
    if kind == "damaged":
        raise Damaged(fields["position"], fields["reason"])
    if kind:
        raise OSError(fields["errno"], fields["reason"], fields["path"])
    fields["rewritten"] = [Rewritten(**row | {"aborted": _aborted(row["aborted"])}) for row in fields["rewritten"]]
    return Outcome(**fields)


def main(memory_bytes: int, given: TextIO, told: TextIO, leave: Callable[[], None]) -> None:
    """
    Do one job after the other; leave where the other side does, also in the middle of one.
    """
    jobs = SimpleQueue[str]()

    def watch() -> None:
        for line in iter(given.readline, ""):
            jobs.put(line)
        leave()
        jobs.put("")

    Thread(target=watch, daemon=True).start()
    for line in iter(jobs.get, ""):
        print(json.dumps(_done(_job(json.loads(line)), memory_bytes)), file=told, flush=True)


def _job(fields: dict[str, Any]) -> Job:
    fields["segments"] = [Full(**row) for row in fields["segments"]]
    fields["last_batches"] = {int(key): LastBatch(*row) for key, row in fields["last_batches"].items()}
    fields["aborted"] = _aborted(fields["aborted"])
    return Job(**fields)


def _aborted(rows: list[list[int]]) -> list[AbortedTransaction]:
    return [AbortedTransaction(*row) for row in rows]


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
