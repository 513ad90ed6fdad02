"""
An archive job, killed at random moments while records arrive, loses none and stores none twice. SPARK_KILLS is the
number of kills (default 3); SPARK_KILLS_SEED repeats the moments of an earlier run.
"""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka import Producer

from kgateway.spark.seaweed.filer import WritableFiler
from tests.spark.archive.archives import Archives, fault_texts
from tests.spark.gateway import PARTITIONS, Topics, numbered
from tests.spark.jobs import ROOT

KILLS = int(os.environ.get("SPARK_KILLS", "3"))
SEED = int(os.environ.get("SPARK_KILLS_SEED", random.randrange(1 << 32)))
COMMITS = 4  # of a job before it may be killed
PATIENCE_S = 180
LATEST_S = 2.0  # after the job's commits
RECORDS_A_SECOND = 2_000


@contextmanager
def producing(topics: Topics, topic: str) -> Iterator[list[int]]:
    """
    Append records until the block ends; the list then gets their number.
    """
    over, counts = Event(), list[int]()

    def produce() -> None:
        producer, count = Producer({"bootstrap.servers": topics.kafka.bootstrap, "linger.ms": 20}), 0
        while not over.wait(0.05):
            for _ in range(RECORDS_A_SECOND // 20):
                producer.produce(topic, value=b"%d" % count, partition=count % PARTITIONS)
                count += 1
            producer.poll(0)
        assert producer.flush(30) == 0
        counts.append(count)

    thread = Thread(target=produce)
    thread.start()
    try:
        yield counts
    finally:
        over.set()
        thread.join()


def killed(topics: Topics, archives: Archives, topic: str, chance: random.Random) -> int:
    """
    Run a job until it has committed several times, and kill it a little later; returns the newest manifest.
    """
    archive = f"archive {topic} --into {archives.path} --every 1 --task-records 500 --master local[2]"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "KGATEWAY_BOOTSTRAP": topics.kafka.bootstrap}
    job = subprocess.Popen([sys.executable, "-m", "kgateway", "spark", *archive.split()], env=environment)
    began = newest(archives, topic)
    deadline = time.monotonic() + PATIENCE_S
    while newest(archives, topic) < began + COMMITS:
        assert job.poll() is None, "the job has ended"
        assert time.monotonic() < deadline, "the job commits nothing"
        time.sleep(0.01)
    time.sleep(chance.uniform(0, LATEST_S))
    job.send_signal(signal.SIGKILL)
    job.wait()
    return newest(archives, topic)


def newest(archives: Archives, topic: str) -> int:
    manifest = archives.folder(topic).manifests.newest()
    return manifest.number if manifest else 0


@pytest.fixture(params=["archives", "there"])
def somewhere(request: pytest.FixtureRequest) -> Archives:
    """
    A folder of this machine, or one in a filer.
    """
    found: Archives = request.getfixturevalue(request.param)
    return found


def test_kills(topics: Topics, somewhere: Archives) -> None:
    """
    After the next job has ended, readers of the folder find each record once, and verify agrees.
    """
    topic, chance = topics.make(), random.Random(SEED)
    with producing(topics, topic) as counts:
        for number in range(KILLS):
            print(f"kill {number} of seed {SEED} at manifest {killed(topics, somewhere, topic, chance)}")
            faults = fault_texts(somewhere.verify(topic))
            assert all("another file has replaced it" in fault for fault in faults), f"seed {SEED}: {faults}"
    job = somewhere.job(topic)
    for _ in job.rounds(job.extents()):
        pass
    job.merge()
    [count] = counts
    found = sorted(int(row["value"]) for row in somewhere.rows(topic))
    assert found == list(range(count)), f"seed {SEED}"
    outcome = somewhere.verify(topic)
    assert (fault_texts(outcome), outcome.compared) == ([], count), f"seed {SEED}"
    print(f"{KILLS} kills: {count:,} records in {len(somewhere.names(topic))} files, none lost, none doubled")


class Ended(BaseException):
    """
    Raised where the process would end.
    """


CHANGES_HERE = [(os, name) for name in ("link", "replace", "unlink")]
CHANGES_THERE = [(WritableFiler, "ask")]


def ending(patched: pytest.MonkeyPatch, archives: Archives, last: int) -> None:
    """
    End the job before the n-th of its changes, or of its requests to the filer.
    """
    counting = itertools.count()

    def instead(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*arguments: Any, **named: Any) -> Any:
            if next(counting) >= last:
                raise Ended
            return change(*arguments, **named)

        return changed

    for owner, name in CHANGES_HERE if isinstance(archives.path, Path) else CHANGES_THERE:
        patched.setattr(owner, name, instead(getattr(owner, name)))


def archive_and_merge(archives: Archives, topic: str) -> None:
    job = archives.job(topic)
    for _ in job.rounds(job.extents()):
        pass
    job.merge()


def test_each_step_may_be_the_last(topics: Topics, somewhere: Archives, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The next job repairs what a job that ends before any of its changes leaves. Before that, readers find no record
    twice, and the only findings are files that a merge has not removed yet.
    """
    topic = topics.make(*numbered(200))
    monkeypatch.setattr("kgateway.spark.archive.task.MANY", 2)
    for last in itertools.count():
        here = replace(somewhere, path=somewhere.path / str(last), task_records=50)
        with monkeypatch.context() as patched:
            ending(patched, here, last)
            try:
                archive_and_merge(here, topic)
                is_over = True
            except Ended:
                is_over = False
        manifest = here.folder(topic).manifests.newest()
        if manifest:
            faults = fault_texts(here.verify(topic))
            assert all("another file has replaced it" in fault for fault in faults), (last, faults)
            places = [(row["partition"], row["offset"]) for row in here.rows(topic)]
            assert len(places) == len(set(places)), last
        archive_and_merge(here, topic)
        assert [int(row["value"]) for row in here.rows(topic)] == [*range(0, 200, 2), *range(1, 200, 2)], last
        assert len(here.names(topic)) == 2, last
        folder = here.folder(topic)
        assert folder.store.names(folder.staged) == [], last
        assert fault_texts(here.verify(topic)) == [], last
        if is_over:
            break
    assert last > 20
