"""
The process that compacts.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from io import StringIO
from queue import Queue
from threading import Event, Thread
from typing import Any

import pytest

from kgateway.broker.log.compaction import helper_process
from kgateway.broker.log.compaction.compaction_round import CompactionJob, compact
from kgateway.broker.log.compaction.helper_process import HelperProcess, main
from kgateway.broker.log.compaction.record_filter import LastBatch
from kgateway.broker.log.segments.batch_scan import Damaged
from kgateway.broker.partition.transactions import AbortedTransaction
from kgateway.records.batch import batches
from kgateway.records.control import Marker, marker_batch
from tests.broker.log.compaction.jobs import TOKEN, Jobs, keyed

MEMORY_BYTES = 1 << 20
_PATIENCE_S = 30


@pytest.fixture
def two() -> Iterator[HelperProcess]:
    found = HelperProcess(MEMORY_BYTES)
    yield found
    found.stop()
    found.rest()


class Asking(Thread):
    """
    A thread that waits, as the gateway does.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._call = call
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self._call()
        except Exception as error:
            self.error = error

    def ended(self) -> Exception | None:
        self.join(_PATIENCE_S)
        assert not self.is_alive()
        return self.error


def long(jobs: Jobs) -> CompactionJob:
    """
    A job of many seconds: the same segment, again and again.
    """
    jobs.write([keyed(b"a")])
    return jobs.job(segments=jobs.full * 15_000)


def test_it_does_the_job(jobs: Jobs, two: HelperProcess) -> None:
    """
    The outcome is the same as without a process.
    """
    jobs.write(
        [keyed(b"a", b"b", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)],
        [marker_batch(7, 0, Marker(False, 3), 5), keyed(b"a", b"b")],
    )
    last, aborted = {7: LastBatch(0, 1)}, [AbortedTransaction(7, 0, 2, 3)]
    outcome = two.compact(jobs.job(last_batches=last, aborted=aborted))
    assert jobs.left(outcome) == [2, 3, 4]
    assert outcome.rewritten[0].aborted == aborted
    assert next(batches(jobs.data(outcome.rewritten[0]))).header.producer_id == 7
    assert outcome == compact(jobs.job(last_batches=last, aborted=aborted, token="other"), jobs.disk)
    assert (outcome.records_seen, outcome.records_kept, len(outcome.rewritten)) == (4, 2, 1)
    assert two.compact(jobs.job(first_dirty=5)).keys == 0


def test_one_process_until_it_rests(jobs: Jobs, two: HelperProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It runs jobs one after the other, even after a failed one; after a rest another process is started.
    """
    processes, start = list["subprocess.Popen[str]"](), helper_process._start

    def noted(memory_bytes: int) -> "subprocess.Popen[str]":
        processes.append(start(memory_bytes))
        return processes[-1]

    monkeypatch.setattr(helper_process, "_start", noted)
    jobs.write([keyed(b"a")], [keyed(b"a")])
    for token in ("one", "two"):
        assert two.compact(jobs.job(token=token)).records_seen == 2
        with pytest.raises(FileNotFoundError):
            two.compact(jobs.job(folder="/nowhere"))
    assert len(processes) == 1
    two.rest()
    assert processes[0].returncode == -9
    two.rest()
    assert two.compact(jobs.job(token="three")).records_seen == 2
    assert len(processes) == 2


def test_another_process_after_one_that_was_killed(jobs: Jobs, two: HelperProcess) -> None:
    jobs.write([keyed(b"a")], [keyed(b"a")])
    two.compact(jobs.job(token="one"))
    assert two._process
    two._process.kill()
    two._process.wait(_PATIENCE_S)
    with pytest.raises(OSError, match="ended with -9 and reported nothing"):
        two.compact(jobs.job(token="two"))
    assert two.compact(jobs.job(token="three")).records_seen == 2


def test_it_has_the_memory_that_it_was_given(jobs: Jobs) -> None:
    """
    It cannot get more.
    """
    jobs.write([keyed(b"a", b"b")], [keyed(b"a")])
    one = HelperProcess(1)
    assert one.compact(jobs.job()).cleaned_to == 1
    one.rest()


def test_damage_is_told(jobs: Jobs, two: HelperProcess) -> None:
    """
    It is reported as if it had been found in this process.
    """
    jobs.write([keyed(b"a"), keyed(b"a")])
    path = jobs.segment_list.segments[0].path
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(Damaged) as damaged:
        two.compact(jobs.job())
    assert damaged.value.position == len(data) // 2
    assert damaged.value.reason == f"{path.name}: the CRC of the batch does not match its contents"


def test_errors_of_the_system_are_told(jobs: Jobs, two: HelperProcess) -> None:
    """
    They have their number and the file's name.
    """
    jobs.write([keyed(b"a")])
    path = jobs.segment_list.segments[0].path
    path.unlink()
    with pytest.raises(FileNotFoundError) as error:
        two.compact(jobs.job())
    assert (error.value.filename, error.value.strerror) == (str(path), "No such file or directory")


def test_a_process_that_tells_nothing(jobs: Jobs, two: HelperProcess, capfd: pytest.CaptureFixture[str]) -> None:
    """
    A process that dies by itself has not done the job.
    """
    with pytest.raises(OSError, match="the compaction process ended with 1 and reported nothing"):
        two.compact(jobs.job(segments=[None]))
    assert "Traceback" in capfd.readouterr().err


def test_stop(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It ends the running process, fails the waiting job, and starts no other.
    """
    processes, start = Queue["subprocess.Popen[str]"](), helper_process._start

    def noted(memory_bytes: int) -> "subprocess.Popen[str]":
        process = start(memory_bytes)
        processes.put(process)
        return process

    monkeypatch.setattr(helper_process, "_start", noted)
    job, stopped = long(jobs), HelperProcess(MEMORY_BYTES)
    asking = Asking(lambda: stopped.compact(job))
    process = processes.get(timeout=_PATIENCE_S)
    stopped.stop()
    assert isinstance(asking.ended(), OSError)
    assert process.returncode == -9
    with pytest.raises(OSError, match="compaction was stopped"):
        stopped.compact(job)
    assert processes.empty()
    stopped.stop()


COMMAND = [sys.executable, "-m", "kgateway.broker.log.compaction.helper_process", str(MEMORY_BYTES)]


def started(job: CompactionJob, command: list[str]) -> "subprocess.Popen[bytes]":
    """
    Start the process with this job, outside the helper of this gateway.
    """
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin
    process.stdin.write(json.dumps(asdict(job)).encode() + b"\n")
    process.stdin.flush()
    return process


def test_it_ends_with_its_gateway(jobs: Jobs) -> None:
    """
    When its input is closed, as by the death of the gateway, it ends in the middle of its job, without an outcome.
    """
    with started(long(jobs), COMMAND) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.close()
        assert process.wait(_PATIENCE_S) == 1
        assert process.stdout.read() == b""


def test_it_is_nice(jobs: Jobs) -> None:
    """
    It has the lowest priority.
    """
    run = (
        f"import runpy, sys; sys.argv[1:] = ['{MEMORY_BYTES}']; "
        "runpy.run_module('kgateway.broker.log.compaction.helper_process', run_name='__main__')"
    )
    with started(jobs.job(), [sys.executable, "-c", run]) as process:
        assert process.stdin
        assert process.stdout
        assert b'"cleaned_to": 0' in process.stdout.readline()
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == min(os.nice(0) + 10, 19)
        process.stdin.close()
        assert process.wait(_PATIENCE_S) == 1


def test_jobs_are_lines() -> None:
    """
    Outcomes are lines too, and the end of the input ends the process.
    """
    left = Event()
    told = StringIO()
    row = {
        "folder": "/nowhere",
        "token": TOKEN,
        "segments": [{"base": 0, "end": 5, "size": 9}],
        "first_dirty": 0,
        "log_start": 0,
        "now_ms": 0,
        "delete_retention_ms": 0,
        "deletions_stay_from": 0,
        "segment_bytes": 9,
        "segment_index_bytes": 9,
        "index_interval_bytes": 9,
        "last_batches": {"7": [0, 3]},
        "aborted": [[7, 0, 3, 4]],
    }
    main(MEMORY_BYTES, StringIO(2 * (json.dumps(row) + "\n")), told, left.set)
    reason = "No such file or directory"
    failed = {"failed": "system", "errno": 2, "reason": reason, "path": f"/nowhere/{0:020d}.log"}
    assert [json.loads(line) for line in told.getvalue().splitlines()] == [failed, failed]
    assert left.wait(_PATIENCE_S)
