"""
Jobs that are interrupted: one line says what was done and how to continue, and they can be continued.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgateway.spark.signals import Interrupted, running
from tests.spark.gateway import Topics
from tests.spark.jobs import PATIENCE_S, ROOT, Ended

ROWS, RATE = 2_000, 200


class Job:
    """
    A program in a process group of its own.
    """

    def __init__(self, topics: Topics, folder: Path, *arguments: str) -> None:
        own = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "KGATEWAY_BOOTSTRAP": topics.kafka.bootstrap}
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=folder,
            env=os.environ | own,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def interrupt(self, number: signal.Signals, after: str) -> tuple[int, list[str]]:
        """
        Signal the whole group twice when this was printed, as `timeout` does; the exit code and the lines behind it.
        """
        assert self._process.stdout
        try:
            for line in self._process.stdout:
                if after in line:
                    break
            for _ in range(2):
                os.killpg(self._process.pid, number)
            rest, _ = self._process.communicate(timeout=PATIENCE_S)
        finally:
            self._process.kill()
        return self._process.returncode, rest.splitlines()


def test_a_backfill_is_interrupted_and_continued(
    topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Ctrl-C and SIGTERM end it; the third run finishes it, with each row once.
    """
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("id\n" + "".join(f"{number}\n" for number in range(ROWS)))
    topic = topics.make()
    given = "backfill", "rows.csv", "--topic", topic, "--key", "id", "--master", "local[2]"
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        job = Job(topics, tmp_path, "-m", "kgateway", "spark", *given, "--rate", str(RATE))
        ended, [line] = job.interrupt(number, after="2,000 rows for")
        assert ended == code, line
        assert line.startswith("kgateway spark backfill: interrupted: ")
        assert line.endswith(f" of 2,000 rows are in {topic}; run the same command again to continue")
    done = Ended(topics, *given)
    assert done.code == 0, done.err
    ids = [int(row.key) for row in topics.read(topic).collect()]
    assert sorted(ids) == [*range(ROWS)]


@pytest.mark.parametrize("after", ["Spark is starting", "orders are in the topic"])
def test_the_pipeline_is_interrupted(topics: Topics, tmp_path: Path, after: str) -> None:
    """
    Whether Spark starts or works.
    """
    ended, lines = Job(topics, tmp_path, str(ROOT / "examples" / "pipeline.py"), "--orders", "3000").interrupt(
        signal.SIGINT, after
    )
    assert ended == 130
    assert lines[-1] == "interrupted: all orders that were sent are kept; run it again to continue"
    assert "Traceback" not in "\n".join(lines)
    assert "Exception" not in "\n".join(lines)


class Spark:
    """
    Takes the place of a SparkSession.
    """

    def __init__(self, *signals: signal.Signals) -> None:
        self.is_stopped = False
        for number in signals:
            signal.raise_signal(number)

    def stop(self) -> None:
        from py4j.protocol import Py4JNetworkError

        signal.raise_signal(signal.SIGINT)
        self.is_stopped = True
        raise Py4JNetworkError("Java is gone")


@pytest.fixture
def handlers() -> Iterator[dict[signal.Signals, Any]]:
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield found
    for number, handler in found.items():
        signal.signal(number, handler)


def test_a_signal_ends_the_job_once(handlers: dict[signal.Signals, Any]) -> None:
    """
    Later signals, and what fails on the way out, do not matter.
    """

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGINT)
            raise OSError("the connection is closed")

    spark: Any = Spark()
    with pytest.raises(Interrupted) as ended, running(lambda: spark):
        work()
    assert (ended.value.exit_code, spark.is_stopped) == (143, True)


def test_a_signal_waits_for_spark_to_start(handlers: dict[signal.Signals, Any]) -> None:
    started: list[Any] = []

    def start() -> Any:
        started.append(Spark(signal.SIGINT))
        return started[0]

    with pytest.raises(Interrupted), running(start):
        pytest.fail("the job does not begin")
    assert started[0].is_stopped


def test_handlers_are_restored(handlers: dict[signal.Signals, Any]) -> None:
    """
    A job that was not interrupted leaves no trace.
    """
    spark: Any = Spark()
    with running(lambda: spark):
        assert signal.getsignal(signal.SIGTERM) != handlers[signal.SIGTERM]
    assert {number: signal.getsignal(number) for number in handlers} == handlers
