"""
Archives are compacted in place, in real Spark, and verified.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgateway.spark.archive.manifest import ArchiveTaken, File, Manifest
from kgateway.spark.archive.parquet import Target
from kgateway.spark.compact.archive_compaction import Compaction, CompactionGoal
from kgateway.spark.compact.table_sources import manifest_of
from kgateway.spark.compact.tasks import RewriteTask
from kgateway.spark.errors import Unreadable
from tests.spark.archive.archives import Archives, fault_texts
from tests.spark.compact.history import merged, some, values, without_replaced
from tests.spark.gateway import Row, Topics

FAR_MS = 1 << 45


def compacted(archives: Archives, topic: str, **aim: Any) -> Manifest:
    job = Compaction(archives.spark, archives.folder(topic), CompactionGoal(**{"by_key": True} | aim))
    for _ in job.look():
        pass
    job.plan()
    for _ in job.write():
        pass
    return job.manifest


def removed(manifest: Manifest) -> int:
    """
    The number of records that compaction removed.
    """
    return sum(file.removed for file in manifest.files)


@pytest.fixture
def topic(topics: Topics, archives: Archives) -> str:
    """
    A topic of several hundred records, in several files.
    """
    archives.task_records = 40
    topic = topics.make(*some(300, seed=1))
    archives.archive(topic)
    return topic


def test_by_key(topic: str, archives: Archives) -> None:
    """
    Obsolete records are removed, all others and tombstones are kept, the tiles are unchanged, and verify proves it.
    """
    before, tiles = archives.rows(topic), manifest_of(archives.folder(topic)).tiles
    manifest = compacted(archives, topic)
    wanted = without_replaced(before)
    assert archives.rows(topic) == wanted
    assert any(row["value"] is None for row in wanted)
    assert removed(manifest) == len(before) - len(wanted) > 100
    ranges = [(tile.partition, tile.first, tile.last) for tile in manifest.tiles]
    assert ranges == [(tile.partition, tile.first, tile.last) for tile in tiles]
    assert {file.compacted for file in manifest.files} == {0}
    outcome = archives.verify(topic)
    assert (fault_texts(outcome), outcome.compared, outcome.proven) == ([], len(wanted), removed(manifest))
    assert fault_texts(archives.verify(topic, log=False)) == []
    assert not (archives.path / topic / "_compacting").exists()


def test_a_second_compaction_changes_no_file(topic: str, archives: Archives) -> None:
    first = compacted(archives, topic)
    files = {name: (archives.path / topic / name).stat().st_ino for name in archives.names(topic)}
    again = compacted(archives, topic)
    assert (again.tiles, again.removals) == (first.tiles, first.removals)
    assert {name: (archives.path / topic / name).stat().st_ino for name in archives.names(topic)} == files


def test_archiving_continues_after_compaction(topics: Topics, topic: str, archives: Archives) -> None:
    """
    New records are archived behind the compacted ones; small files are merged, and compacted again.
    """
    compacted(archives, topic)
    topics.fill(topic, some(200, seed=2))
    archives.archive(topic)
    assert fault_texts(archives.verify(topic)) == []
    rows = archives.rows(topic)
    merged(archives, topic)
    assert archives.rows(topic) == rows
    manifest = compacted(archives, topic)
    assert archives.rows(topic) == without_replaced(rows)
    outcome = archives.verify(topic)
    assert (fault_texts(outcome), outcome.proven) == ([], removed(manifest))
    assert removed(manifest) + len(archives.rows(topic)) == 500


def test_the_tail_is_unchanged(topics: Topics, archives: Archives) -> None:
    """
    In each partition everything from the first file with a record that is not old is kept, even old records.
    """
    archives.task_records = 10
    rows: list[Row] = [
        {"key": b"k%d" % (at % 3), "value": b"%d" % at, "partition": 0, "timestamp": 2_000 if at == 25 else 5}
        for at in range(40)
    ]
    topic = topics.make(*rows)
    archives.archive(topic)
    assert len(archives.names(topic)) == 4
    assert removed(compacted(archives, topic, before_ms=5)) == 0
    assert removed(compacted(archives, topic, before_ms=2_000)) == 20
    assert archives.offsets(topic) == [*range(20, 40)]
    outcome = archives.verify(topic)
    assert (fault_texts(outcome), outcome.proven) == ([], 20)


def test_old_tombstones_are_removed(topics: Topics, archives: Archives) -> None:
    """
    They are removed after the records that they delete, except in the tail; verify knows the age.
    """
    keys = [b"a", b"b", b"c", b"a", b"b", b"d", b"c"]
    rows = [{"key": key, "value": b"v", "partition": 0, "timestamp": 10 + at} for at, key in enumerate(keys)]
    for gone in (3, 4, 6):
        rows[gone]["value"] = None
    topic = topics.make(*rows)
    archives.archive(topic)
    manifest = compacted(archives, topic, tombstones_before_ms=14)
    assert archives.offsets(topic) == [4, 5, 6]
    assert manifest.removals.tombstones_before_ms == 14
    outcome = archives.verify(topic)
    assert (fault_texts(outcome), outcome.proven) == ([], 4)
    compacted(archives, topic, tombstones_before_ms=FAR_MS)
    assert archives.offsets(topic) == [5]
    assert fault_texts(archives.verify(topic)) == []
    newest = manifest_of(archives.folder(topic))
    archives.folder(topic).manifests.commit(replace(newest, removals=manifest.removals))
    [fault] = fault_texts(archives.verify(topic))
    words = "missing although the archive has no later record with the same key"
    assert fault == f"{topic}-0: offsets 4, 6 are {words}"


def test_by_time(topics: Topics, archives: Archives) -> None:
    """
    Everything before the first record that is not old is removed, be it whole files or part of one; verify proves it.
    """
    archives.task_records = 10
    rows: list[Row] = [{"value": b"%d" % at, "partition": 0, "timestamp": 100 + at} for at in range(40)]
    rows[30]["timestamp"] = 1
    topic = topics.make(*rows)
    archives.archive(topic)
    manifest = compacted(archives, topic, by_key=False, before_ms=125)
    assert archives.offsets(topic) == [*range(25, 40)]
    counts = [(file.first, file.last, file.count, file.removed) for file in manifest.files]
    assert counts == [(0, 9, 0, 10), (10, 19, 0, 10), (20, 29, 5, 5), (30, 39, 10, 0)]
    outcome = archives.verify(topic)
    assert (fault_texts(outcome), outcome.compared, outcome.proven) == ([], 15, 25)
    assert removed(compacted(archives, topic, by_key=False, before_ms=125)) == 25
    topics.fill(topic, [{"value": b"40", "partition": 0}])
    archives.archive(topic)
    merged(archives, topic)
    assert archives.offsets(topic) == [*range(25, 41)]
    assert fault_texts(archives.verify(topic)) == []


def test_records_without_a_key(topics: Topics, archives: Archives) -> None:
    """
    Compaction refuses them without a change, or keeps them.
    """
    topic = topics.make(*some(100, seed=3), {"value": b"a", "partition": 0}, {"value": b"b", "partition": 0})
    archives.archive(topic)
    before = archives.rows(topic)
    with pytest.raises(Unreadable, match="2 records have no key"):
        compacted(archives, topic)
    assert archives.rows(topic) == before
    assert not (archives.path / topic / "_compacting").exists()
    compacted(archives, topic, keep_keyless=True)
    assert archives.rows(topic) == without_replaced(before)
    assert [row["value"] for row in archives.rows(topic) if row["key"] is None] == [b"a", b"b"]
    assert fault_texts(archives.verify(topic)) == []


def test_a_damaged_file_stops_compaction(topic: str, archives: Archives) -> None:
    path = archives.path / topic / archives.names(topic)[-1]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    before = archives.names(topic)
    with pytest.raises(Unreadable, match="was changed since it was written"):
        compacted(archives, topic)
    assert archives.names(topic) == before


def test_records_missing_from_the_log_are_not_proven(topics: Topics, topic: str, archives: Archives) -> None:
    """
    Unproven records are no fault.
    """
    manifest = compacted(archives, topic)
    topics.delete_records(topic, 0, manifest.ends[0])
    outcome = archives.verify(topic)
    assert fault_texts(outcome) == []
    assert outcome.proven == sum(file.removed for file in manifest.files if file.partition == 1)


def forged(archives: Archives, topic: str, offset: int, change: Callable[[File], File] = lambda file: file) -> None:
    """
    Remove a record as compaction does, but wrongly.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = archives.folder(topic)
    manifest = manifest_of(folder)
    [file] = [file for file in manifest.files if file.partition == 0 and file.first <= offset <= file.last]
    listed = archives.path / "listed.parquet"
    pq.write_table(pa.table({"partition": pa.array([0], pa.int32()), "offset": [offset]}), listed)
    made = RewriteTask(Target(folder, manifest.identity, 0, "zstd"), file, (listed,)).run()
    assert made
    folder.publish(folder.manifests.commit(manifest.with_tiles([change(made)], [file])))


def test_a_missing_latest_record_is_a_fault(topic: str, archives: Archives) -> None:
    """
    It is one whatever the manifest says.
    """
    compacted(archives, topic)
    rows = [row for row in archives.rows(topic) if row["partition"] == 0]
    last = rows[-1]["offset"]
    forged(archives, topic, last)
    words = "missing although the archive has no later record with the same key"
    assert fault_texts(archives.verify(topic)) == [f"{topic}-0: offset {last} is {words}"]


def test_an_obsolete_record_may_be_missing(topic: str, archives: Archives) -> None:
    rows = [row for row in archives.rows(topic) if row["partition"] == 0]
    offsets = {row["offset"] for row in without_replaced(rows)}
    forged(archives, topic, next(row["offset"] for row in rows if row["offset"] not in offsets))
    outcome = archives.verify(topic)
    assert (fault_texts(outcome), outcome.proven) == ([], 1)


def test_more_is_missing_than_was_removed(topic: str, archives: Archives) -> None:
    """
    The counts in manifest and file are compared with the log.
    """
    compacted(archives, topic)
    offset = archives.offsets(topic)[0]
    forged(archives, topic, offset, lambda file: replace(file, removed=file.removed - 1))
    faults = fault_texts(archives.verify(topic))
    assert any("its footer is not that of the file that was written: removed" in fault for fault in faults)
    assert any("records are only in the log, but compaction has removed" in fault for fault in faults)


def test_two_jobs_at_once(topics: Topics, topic: str, archives: Archives) -> None:
    """
    The later job takes the archive over, whatever its kind; the other changes nothing more.
    """
    job = Compaction(archives.spark, archives.folder(topic), CompactionGoal(by_key=True))
    assert [*job.look()]
    job.plan()
    topics.fill(topic, some(10, seed=4))
    archives.archive(topic)
    with pytest.raises(ArchiveTaken, match="another job has written"):
        list(job.write())
    assert fault_texts(archives.verify(topic)) == []
    archiving = archives.job(topic)
    topics.fill(topic, some(10, seed=5))
    compacted(archives, topic)
    with pytest.raises(ArchiveTaken, match="another job has written"):
        list(archiving.rounds(archiving.extents()))
    assert archives.verify(topic).faults == 0


def test_a_planned_archive_stays_planned(topics: Topics, topic: str, archives: Archives) -> None:
    """
    Compaction keeps the plan of a killed archive job.
    """
    topics.fill(topic, some(100, seed=6))
    job = archives.job(topic)
    extents = job.extents()
    job._plan(extents, {partition: extent.end for partition, extent in extents.items()})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(job, "_commit", lambda manifest: None)
        job._write()
    staged = archives.folder(topic).staged_names()
    assert staged
    manifest = compacted(archives, topic)
    assert manifest.planned
    assert archives.folder(topic).staged_names() == staged
    archives.archive(topic)
    assert len(archives.rows(topic)) == 400 - removed(manifest)
    assert fault_texts(archives.verify(topic)) == []


@pytest.mark.parametrize("seed", range(2))
def test_any_order_of_operations(topics: Topics, archives: Archives, seed: int) -> None:
    """
    However writing, archiving, compacting and merging alternate, the latest values are those of all records, and
    verify finds no fault.
    """
    chance, topic, every = random.Random(seed), topics.make(), list[Row]()
    archives.task_records = 30
    for step in range(6):
        rows = some(chance.randrange(1, 80), seed=100 * seed + step, keys=chance.choice([3, 30]))
        topics.fill(topic, rows)
        every += rows
        archives.archive(topic)
        tombstones = chance.choice([None, FAR_MS])
        compacted(archives, topic, before_ms=chance.choice([None, 500, 1_000]), tombstones_before_ms=tombstones)
        assert values(archives.rows(topic)) == values(every), step
        if chance.random() < 0.5:
            merged(archives, topic)
        outcome = archives.verify(topic)
        assert fault_texts(outcome) == [], step
        assert outcome.proven == removed(manifest_of(archives.folder(topic)))
        assert outcome.compared == len(archives.rows(topic))


def test_a_folder_with_an_odd_name(topics: Topics, archives: Archives, tmp_path: Path) -> None:
    """
    Spark reads no pattern in the name.
    """
    here = replace(archives, path=tmp_path / "in [a-z] {b} 100%")
    topic = topics.make(*some(100, seed=7))
    here.archive(topic)
    before = here.rows(topic)
    assert removed(compacted(here, topic)) > 0
    assert here.rows(topic) == without_replaced(before)
    assert fault_texts(here.verify(topic)) == []


def test_no_archive(archives: Archives, tmp_path: Path) -> None:
    """
    A missing archive is an error, and none is created.
    """
    with pytest.raises(Unreadable, match="no manifest"):
        compacted(archives, "nothing")
    assert not (archives.path / "nothing").exists()
