"""
Jobs that compact, killed at random moments: no latest value is lost, and what they leave is put in order by the next
one. SPARK_KILLS says how often, three times if not given; SPARK_KILLS_SEED makes the moments those of an earlier run.
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
from kgateway.spark.compact.sources import manifest_of
from tests.spark.archive.archives import Archives, said
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
    Run a job until it works, and kill it a little later; its exit code where it had ended.
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


def has_come_to(archives: Archives, topic: str, number: int) -> bool:
    """
    Whether there is a manifest of this number, or a later one.
    """
    return manifest_of(archives.folder(topic)).number >= number


def of_manifest(archives: Archives, topic: str) -> list[Row]:
    """
    What the archive has, for who goes by its manifest.
    """
    folder = archives.folder(topic)
    batches = [rows for file in manifest_of(folder).files for rows in rows_of(folder.store, folder.place(file.name))]
    found: list[Row] = pa.Table.from_batches(batches).to_pylist()
    return found


def check(archives: Archives, topic: str, every: list[Row], told: str) -> None:
    """
    The latest values are those of all records; what is wrong is only that replaced files are still there.
    """
    assert values(of_manifest(archives, topic)) == values(every), told
    faults = said(archives.verify(topic))
    assert all("another file has taken its place" in fault for fault in faults), (told, faults)
    places = [(row["partition"], row["offset"]) for row in archives.rows(topic)]
    assert len(places) == len(set(places)), told


def test_kills_of_an_archive(topics: Topics, archives: Archives) -> None:
    """
    Each job does a part; when one ends, all is done.
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
        code = killed(topics, arguments, partial(has_come_to, archives, topic, began), chance)
        told = f"seed {SEED}, kill {number}: {manifest_of(archives.folder(topic)).removals}, exit code {code}"
        print(told)
        assert code in (None, 0), told
        check(archives, topic, every, told)
    before = values(every)
    compacted(archives, topic, tombstones_before_ms=time.time_ns() // 1_000_000)
    assert values(archives.rows(topic)) == before
    assert len(archives.rows(topic)) == len(before)
    assert said(archives.verify(topic)) == []
    assert os.listdir(archives.folder(topic).staged) == []


def test_kills_of_a_table(topics: Topics, archives: Archives, tables: Tables) -> None:
    """
    There is always one: the one before, or the new one.
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
    A job that ends before one of the changes that it makes in the folder leaves what the next one puts in order;
    some of the changes are tried, others the next time.
    """
    every = some(200, seed=SEED, keys=10)
    topic = topics.make(*every)
    for last in itertools.count(SEED % STEP, STEP):
        here = replace(archives, path=archives.path / str(last), task_records=25)
        here.archive(topic)
        with monkeypatch.context() as patched:
            patched.setattr("kgateway.spark.compact.compaction._TASKS_A_CORE", 1)
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
        assert said(here.verify(topic)) == [], last
        if is_over:
            break
    assert last > 20


def of_log(topics: Topics, topic: str) -> list[Row]:
    """
    All records.
    """
    records = topics.read(topic, includeHeaders="true").orderBy("partition", "offset")
    found: list[Row] = records.toArrow().to_pylist()
    return found
