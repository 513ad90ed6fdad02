"""
Compaction jobs, killed at random moments, lose no latest value, and the next job repairs what they leave. SPARK_KILLS
is the number of kills (default 3); SPARK_KILLS_SEED repeats the moments of an earlier run.
"""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

from kgateway.spark.archive.parquet import rows_of
from kgateway.spark.compact.table_sources import manifest_of
from tests.spark.archive.archives import Archives, fault_texts
from tests.spark.archive.test_kills import Ended, ending
from tests.spark.compact.history import some, values, without_replaced, without_tombstones
from tests.spark.compact.tables import Tables
from tests.spark.compact.test_compaction import compacted
from tests.spark.gateway import Row, Topics
from tests.spark.jobs import ROOT

KILLS = int(os.environ.get("SPARK_KILLS", "3"))
SEED = int(os.environ.get("SPARK_KILLS_SEED", random.randrange(1 << 32)))
PATIENCE_S = 180
LATEST_S = 2.0  # after the job has begun to work
ROUND = 2_000  # records
KEYS = 300
STEP = 9


def killed(topics: Topics, arguments: str, has_begun: Callable[[], bool], chance: random.Random) -> int | None:
    """
    Run a job until it works, and kill it a little later; returns its exit code if it ended before.
    """
    environment = os.environ | {"PYTHONPATH": str(ROOT), "KGATEWAY_BOOTSTRAP": topics.kafka.bootstrap}
    command = [sys.executable, "-m", "kgateway", "spark", "compact", *arguments.split(), "--master", "local[2]"]
    job = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE_S
    while job.poll() is None and not has_begun():
        assert time.monotonic() < deadline, "the job does nothing"
        time.sleep(0.01)
    time.sleep(chance.uniform(0, LATEST_S))
    code = job.poll()
    job.send_signal(signal.SIGKILL)
    job.wait()
    return code


def has_reached(archives: Archives, topic: str, number: int) -> bool:
    """
    Whether a manifest of this number or a later one exists.
    """
    return manifest_of(archives.folder(topic)).number >= number


def of_manifest(archives: Archives, topic: str) -> list[Row]:
    """
    The rows that readers of the manifest find.
    """
    folder = archives.folder(topic)
    batches = [rows for file in manifest_of(folder).files for rows in rows_of(folder.store, folder.find(file.name))]
    found: list[Row] = pa.Table.from_batches(batches).to_pylist()
    return found


def check(archives: Archives, topic: str, every: list[Row], told: str) -> None:
    """
    The latest values are those of all records; the only findings are replaced files that still exist.
    """
    assert values(of_manifest(archives, topic)) == values(every), told
    faults = fault_texts(archives.verify(topic))
    assert all("another file has replaced it" in fault for fault in faults), (told, faults)
    places = [(row["partition"], row["offset"]) for row in archives.rows(topic)]
    assert len(places) == len(set(places)), told


def test_kills_of_an_archive(topics: Topics, archives: Archives) -> None:
    """
    Each job does a part; in the end everything is compacted.
    """
    topic, chance, every = topics.make(), random.Random(SEED), list[Row]()
    archives.task_records = 50
    arguments = f"{topic} --in {archives.path} --in-place key --tombstones-older-than 1d"
    for number in range(KILLS):
        rows = some(ROUND, seed=SEED + number, keys=KEYS)
        topics.fill(topic, rows)
        every += rows
        archives.archive(topic)
        began = manifest_of(archives.folder(topic)).number + chance.randrange(1, 4)
        code = killed(topics, arguments, partial(has_reached, archives, topic, began), chance)
        told = f"seed {SEED}, kill {number}: {manifest_of(archives.folder(topic)).removals}, exit code {code}"
        print(told)
        assert code in (None, 0), told
        check(archives, topic, every, told)
    before = values(every)
    compacted(archives, topic, tombstones_before_ms=time.time_ns() // 1_000_000)
    assert values(archives.rows(topic)) == before
    assert len(archives.rows(topic)) == len(before)
    assert fault_texts(archives.verify(topic)) == []
    assert os.listdir(archives.folder(topic).staged) == []


def test_kills_of_a_table(topics: Topics, archives: Archives, tables: Tables) -> None:
    """
    A table always exists, the previous or the new one.
    """
    topic, chance, every = topics.make(), random.Random(SEED), list[Row]()
    arguments = f"{topic} --in {archives.path} --output {tables.path / 'latest'}"
    tables.of_archive(topic)
    folder = tables.table(topic).snapshots.path / "_snapshots"
    for number in range(KILLS):
        before = tables.rows(topic)
        topics.fill(topic, some(ROUND, seed=SEED + number, keys=KEYS))
        archives.archive(topic)
        code = killed(topics, arguments, lambda: any(folder.glob(".making-*")), chance)
        every = without_tombstones(without_replaced(archives.rows(topic)))
        which = "old" if tables.rows(topic) == before else "new"
        told = f"seed {SEED}, kill {number}: exit code {code}, the table is {which}"
        print(told)
        assert code in (None, 0), told
        assert tables.rows(topic) in (before, every), told
    tables.of_archive(topic)
    assert tables.rows(topic) == every
    assert [*folder.glob(".*")] == []


def test_each_step_may_be_the_last(topics: Topics, archives: Archives, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The next job repairs what a job leaves that ends before one of its changes in the folder; each run tries some of
    the changes.
    """
    every = some(200, seed=SEED, keys=10)
    topic = topics.make(*every)
    for last in itertools.count(SEED % STEP, STEP):
        here = replace(archives, path=archives.path / str(last), task_records=25)
        here.archive(topic)
        with monkeypatch.context() as patched:
            patched.setattr("kgateway.spark.archive.task._TASKS_A_CORE", 1)
            ending(patched, here, last)
            try:
                compacted(here, topic)
                is_over = True
            except Ended:
                is_over = False
        check(here, topic, every, f"seed {SEED}, change {last}")
        compacted(here, topic)
        assert here.rows(topic) == without_replaced(of_log(topics, topic)), last
        assert os.listdir(here.folder(topic).staged) == [], last
        assert not (here.path / topic / "_compacting").exists(), last
        assert fault_texts(here.verify(topic)) == [], last
        if is_over:
            break
    assert last > 20


def of_log(topics: Topics, topic: str) -> list[Row]:
    records = topics.read(topic, includeHeaders="true").orderBy("partition", "offset")
    found: list[Row] = records.toArrow().to_pylist()
    return found
