"""
Archives that are compacted themselves, in real Spark, and what verify says of them.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgateway.spark.archive.manifest import Manifest, Taken
from kgateway.spark.archive.parquet import Target
from kgateway.spark.archive.tiles import File
from kgateway.spark.compact.compaction import Aim, Compaction
from kgateway.spark.compact.rewriting import Rewrite
from kgateway.spark.compact.sources import manifest_of
from kgateway.spark.failures import Unreadable
from tests.spark.archive.archives import Archives, said
from tests.spark.compact.history import merged, some, values, without_replaced
from tests.spark.gateway import Row, Topics

FAR_MS = 1 << 45


def compacted(archives: Archives, topic: str, **aim: Any) -> Manifest:
    """
    All that the job does.
    """
    job = Compaction(archives.spark, archives.folder(topic), Aim(**{"by_key": True} | aim))
    for _ in job.look():
        pass
    job.plan()
    for _ in job.write():
        pass
    return job.manifest


def removed(manifest: Manifest) -> int:
    """
    How many records have gone of it.
    """
    return sum(file.removed for file in manifest.files)


@pytest.fixture
def topic(topics: Topics, archives: Archives) -> str:
    """
    A topic of some hundred records, in several files.
    """
    archives.task_records = 40
    topic = topics.make(*some(300, seed=1))
    archives.archive(topic)
    return topic


def test_by_key(topic: str, archives: Archives) -> None:
    """
    What is replaced goes, the rest stays as it was, tombstones too; tiles are the same, and verify can tell.
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
    assert (said(outcome), outcome.compared, outcome.proven) == ([], len(wanted), removed(manifest))
    assert said(archives.verify(topic, log=False)) == []
    assert not (archives.path / topic / "_compacting").exists()


def test_again_changes_nothing(topic: str, archives: Archives) -> None:
    """
    Not a file.
    """
    first = compacted(archives, topic)
    files = {name: (archives.path / topic / name).stat().st_ino for name in archives.names(topic)}
    again = compacted(archives, topic)
    assert (again.tiles, again.removals) == (first.tiles, first.removals)
    assert {name: (archives.path / topic / name).stat().st_ino for name in archives.names(topic)} == files


def test_the_archive_goes_on(topics: Topics, topic: str, archives: Archives) -> None:
    """
    Behind what was compacted; small files are merged, and all of it is compacted once more.
    """
    compacted(archives, topic)
    topics.fill(topic, some(200, seed=2))
    archives.archive(topic)
    assert said(archives.verify(topic)) == []
    rows = archives.rows(topic)
    merged(archives, topic)
    assert archives.rows(topic) == rows
    manifest = compacted(archives, topic)
    assert archives.rows(topic) == without_replaced(rows)
    outcome = archives.verify(topic)
    assert (said(outcome), outcome.proven) == ([], removed(manifest))
    assert removed(manifest) + len(archives.rows(topic)) == 500


def test_the_tail_stays_as_it_is(topics: Topics, archives: Archives) -> None:
    """
    From the first file on that has a record that is not old, in each partition, also if later ones are old.
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
    assert (said(outcome), outcome.proven) == ([], 20)


def test_old_tombstones_go(topics: Topics, archives: Archives) -> None:
    """
    With all that they have removed, but not those of the tail; verify knows how old they had to be.
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
    assert (said(outcome), outcome.proven) == ([], 4)
    compacted(archives, topic, tombstones_before_ms=FAR_MS)
    assert archives.offsets(topic) == [5]
    assert said(archives.verify(topic)) == []
    newest = manifest_of(archives.folder(topic))
    archives.folder(topic).manifests.commit(replace(newest, removals=manifest.removals))
    [fault] = said(archives.verify(topic))
    words = "gone, as if by compaction, and the archive has no later record of their keys"
    assert fault == f"{topic}-0: offsets 4, 6 are {words}"


def test_by_time(topics: Topics, archives: Archives) -> None:
    """
    What is before the first record that is not old goes, as whole files and as a part of one; verify can tell.
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
    assert (said(outcome), outcome.compared, outcome.proven) == ([], 15, 25)
    assert removed(compacted(archives, topic, by_key=False, before_ms=125)) == 25
    topics.fill(topic, [{"value": b"40", "partition": 0}])
    archives.archive(topic)
    merged(archives, topic)
    assert archives.offsets(topic) == [*range(25, 41)]
    assert said(archives.verify(topic)) == []


def test_records_without_a_key(topics: Topics, archives: Archives) -> None:
    """
    Are refused, and nothing is changed; or they stay.
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
    assert said(archives.verify(topic)) == []


def test_a_damaged_file_is_not_believed(topic: str, archives: Archives) -> None:
    """
    Neither what it says of other files, nor of itself.
    """
    path = archives.path / topic / archives.names(topic)[-1]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    before = archives.names(topic)
    with pytest.raises(Unreadable, match="was changed since it was written"):
        compacted(archives, topic)
    assert archives.names(topic) == before


def test_what_the_log_has_no_more_is_not_proven(topics: Topics, topic: str, archives: Archives) -> None:
    """
    And is no fault.
    """
    manifest = compacted(archives, topic)
    topics.delete_records(topic, 0, manifest.ends[0])
    outcome = archives.verify(topic)
    assert said(outcome) == []
    assert outcome.proven == sum(file.removed for file in manifest.files if file.partition == 1)


def forged(archives: Archives, topic: str, offset: int, change: Callable[[File], File] = lambda file: file) -> None:
    """
    Have a record gone of the archive as compaction does it, but one that should not.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = archives.folder(topic)
    manifest = manifest_of(folder)
    [file] = [file for file in manifest.files if file.partition == 0 and file.first <= offset <= file.last]
    listed = archives.path / "listed.parquet"
    pq.write_table(pa.table({"partition": pa.array([0], pa.int32()), "offset": [offset]}), listed)
    made = Rewrite(Target(folder, manifest.identity, 0, "zstd"), file, (listed,)).run()
    assert made
    folder.publish(folder.manifests.commit(manifest.with_tiles([change(made)], [file])))


def test_a_latest_record_that_is_gone_is_a_fault(topic: str, archives: Archives) -> None:
    """
    Whatever the manifest says; one that is not is none.
    """
    compacted(archives, topic)
    rows = [row for row in archives.rows(topic) if row["partition"] == 0]
    last = rows[-1]["offset"]
    forged(archives, topic, last)
    words = "gone, as if by compaction, and the archive has no later record of their keys"
    assert said(archives.verify(topic)) == [f"{topic}-0: offset {last} is {words}"]


def test_a_record_that_was_replaced_may_be_gone(topic: str, archives: Archives) -> None:
    """
    It is what compaction does.
    """
    rows = [row for row in archives.rows(topic) if row["partition"] == 0]
    offsets = {row["offset"] for row in without_replaced(rows)}
    forged(archives, topic, next(row["offset"] for row in rows if row["offset"] not in offsets))
    outcome = archives.verify(topic)
    assert (said(outcome), outcome.proven) == ([], 1)


def test_more_is_gone_than_was_removed(topic: str, archives: Archives) -> None:
    """
    The number is in the manifest and in the file, and the log is asked.
    """
    compacted(archives, topic)
    offset = archives.offsets(topic)[0]
    forged(archives, topic, offset, lambda file: replace(file, removed=file.removed - 1))
    faults = said(archives.verify(topic))
    assert any("its footer is not that of the file that was written: removed" in fault for fault in faults)
    assert any("records are in the log alone, and compaction has removed" in fault for fault in faults)


def test_two_jobs_at_once(topics: Topics, topic: str, archives: Archives) -> None:
    """
    The later one takes the archive over, whichever job it is; the other changes nothing more.
    """
    job = Compaction(archives.spark, archives.folder(topic), Aim(by_key=True))
    assert [*job.look()]
    job.plan()
    topics.fill(topic, some(10, seed=4))
    archives.archive(topic)
    with pytest.raises(Taken, match="another job has written"):
        list(job.write())
    assert said(archives.verify(topic)) == []
    archiving = archives.job(topic)
    topics.fill(topic, some(10, seed=5))
    compacted(archives, topic)
    with pytest.raises(Taken, match="another job has written"):
        list(archiving.rounds(archiving.extents()))
    assert archives.verify(topic).faults == 0


def test_what_an_archive_has_planned_stays_planned(topics: Topics, topic: str, archives: Archives) -> None:
    """
    A job of archiving was killed when its tasks had written; compaction comes in between.
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
    assert said(archives.verify(topic)) == []


@pytest.mark.parametrize("seed", range(2))
def test_whatever_is_done_in_whatever_order(topics: Topics, archives: Archives, seed: int) -> None:
    """
    Records come, are archived, compacted up to some time and merged: the latest values are those of all records, and
    verify finds nothing wrong.
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
        assert said(outcome) == [], step
        assert outcome.proven == removed(manifest_of(archives.folder(topic)))
        assert outcome.compared == len(archives.rows(topic))


def test_a_folder_with_an_odd_name(topics: Topics, archives: Archives, tmp_path: Path) -> None:
    """
    Is no pattern to Spark.
    """
    here = replace(archives, path=tmp_path / "in [a-z] {b} 100%")
    topic = topics.make(*some(100, seed=7))
    here.archive(topic)
    before = here.rows(topic)
    assert removed(compacted(here, topic)) > 0
    assert here.rows(topic) == without_replaced(before)
    assert said(here.verify(topic)) == []


def test_no_archive(archives: Archives, tmp_path: Path) -> None:
    """
    Is not compacted, and none is made.
    """
    with pytest.raises(Unreadable, match="no manifest"):
        compacted(archives, "nothing")
    assert not (archives.path / "nothing").exists()
