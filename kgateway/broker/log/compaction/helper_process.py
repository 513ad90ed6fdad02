"""
Runs compaction in a process of its own, so that nobody else waits for the processor.

    python -m kgateway.broker.log.compaction.helper_process MEMORY_BYTES

reads jobs from its standard input, each as JSON in one line, and writes the outcome of each, or why there is none, in a
line too. When its input ends, so does the process, whatever became of its gateway.
"""

import gc
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

from kgateway.broker.log.compaction.compaction_round import (
    CompactionJob,
    CompactionOutcome,
    FullSegment,
    RewrittenSegment,
    compact,
)
from kgateway.broker.log.compaction.record_filter import LastBatch
from kgateway.broker.log.files.local_disk import LocalDisk
from kgateway.broker.log.segments.batch_scan import Damaged
from kgateway.broker.partition.transactions import AbortedTransaction

_NICENESS = 10  # the gateway comes first
_GARBAGE_THRESHOLD = 100_000  # rounds leave no cycles; to look for them as often as usual takes a third of the time


class HelperProcess:
    """
    One process, from the first job on until there is nothing to do for a while.
    """

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    def compact(self, job: CompactionJob) -> CompactionOutcome:
        """
        Wait, in a thread, for the outcome. Raises OSError or Damaged as the process did, and OSError if it was
        stopped.
        """
        with self._lock:
            if self._stopped:
                raise OSError("compaction was stopped")
            process = self._process = self._process or _start(self._memory_bytes)
        answer = _answer(process, job)
        if not answer:
            self.rest()
            raise OSError(f"the compaction process ended with {process.returncode} and reported nothing")
        return _outcome(answer)

    def rest(self) -> None:
        """
        End the process until there is another job; called in the thread that waits for jobs.
        """
        with self._lock:
            process, self._process = self._process, None
        if process:
            process.kill()
            with suppress(BrokenPipeError):  # it did not read the last job
                process.__exit__(None, None, None)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._process:
                self._process.kill()


def _start(memory_bytes: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "kgateway.broker.log.compaction.helper_process", str(memory_bytes)]
    path = os.pathsep.join(sys.path)
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def _answer(process: "subprocess.Popen[str]", job: CompactionJob) -> str:
    assert process.stdin
    assert process.stdout
    with suppress(BrokenPipeError):
        process.stdin.write(f"{json.dumps(asdict(job))}\n")
        process.stdin.flush()
    return process.stdout.readline()


def _outcome(answer: str) -> CompactionOutcome:
    fields = json.loads(answer)
    kind = fields.pop("failed", None)
    if kind == "damaged":
        raise Damaged(fields["position"], fields["reason"])
    if kind:
        raise OSError(fields["errno"], fields["reason"], fields["path"])
    fields["rewritten"] = [
        RewrittenSegment(**row | {"aborted": _aborted(row["aborted"])}) for row in fields["rewritten"]
    ]
    return CompactionOutcome(**fields)


def main(memory_bytes: int, given: TextIO, told: TextIO, leave: Callable[[], None]) -> None:
    """
    Do one job after the other; exit when the other side does, even in the middle of a job.
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


def _job(fields: dict[str, Any]) -> CompactionJob:
    fields["segments"] = [FullSegment(**row) for row in fields["segments"]]
    fields["last_batches"] = {int(key): LastBatch(*row) for key, row in fields["last_batches"].items()}
    fields["aborted"] = _aborted(fields["aborted"])
    return CompactionJob(**fields)


def _aborted(rows: list[list[int]]) -> list[AbortedTransaction]:
    return [AbortedTransaction(*row) for row in rows]


def _done(job: CompactionJob, memory_bytes: int) -> dict[str, Any]:
    try:
        return asdict(compact(job, LocalDisk(), memory_bytes))
    except Damaged as error:
        return {"failed": "damaged", "position": error.position, "reason": error.reason}
    except OSError as error:
        return {"failed": "system", "errno": error.errno, "reason": error.strerror, "path": error.filename}


if __name__ == "__main__":
    with suppress(OSError):
        os.nice(_NICENESS)
    gc.set_threshold(_GARBAGE_THRESHOLD)
    main(int(sys.argv[1]), sys.stdin, sys.stdout, lambda: os._exit(1))
