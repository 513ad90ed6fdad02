"""
Tables of latest values, in real Spark, of archives and of a gateway that runs.
"""

import os
import random
import shutil
from dataclasses import replace

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from kgateway.client.offsets import Extent
from kgateway.spark.archive.manifest import ArchiveTaken
from kgateway.spark.compact.latest_table import table_of_archive
from kgateway.spark.compact.table_snapshots import CURRENT, Snapshots
from kgateway.spark.compact.table_sources import ArchiveSource, LogSource
from kgateway.spark.errors import Unreadable
from tests.spark.compact.history import merged, some, without_replaced, without_tombstones
from tests.spark.compact.tables import Tables
from tests.spark.compact.test_compaction import compacted
from tests.spark.gateway import Row


def wanted(rows: list[Row], *, keep_tombstones: bool = False) -> list[Row]:
    """
    The expected rows of a table; the rows are in order of offsets.
    """
    latest = without_replaced(rows)
    return latest if keep_tombstones else without_tombstones(latest)


@pytest.mark.parametrize("keep_tombstones", [False, True])
def test_the_latest_of_each_key(tables: Tables, keep_tombstones: bool) -> None:
    """
    Rows have all columns, from the archive and from the topic.
    """
    tables.options = {"keep_tombstones": keep_tombstones}
    topic = tables.topics.make(*some(1_000, seed=1))
    made = tables.of_archive(topic)
    rows = wanted(tables.archives.rows(topic), keep_tombstones=keep_tombstones)
    assert tables.rows(topic) == rows
    assert (made.read, sum(made.snapshot.counts.values())) == (1_000, len(rows))
    assert any(row["value"] is None for row in rows) == keep_tombstones
    tables.of_log(topic, "other")
    assert tables.rows(topic, "other") == rows


def test_files_moved_during_a_read(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    They are read at their new place; a file that vanished without a reason is reported.
    """
    topic, reads, archives = tables.topics.make(*some(300, seed=11)), list[int](), tables.archives
    read, archives.task_records = ArchiveSource.records, 50

    def merging(source: ArchiveSource, starts: dict[int, int]) -> DataFrame:
        found = read(source, starts)
        if not reads:
            merged(archives, topic)
        reads.append(len(archives.names(topic)))
        return found

    monkeypatch.setattr(ArchiveSource, "records", merging)
    tables.of_archive(topic)
    assert reads == [2, 2]
    assert tables.rows(topic) == wanted(archives.rows(topic))
    (archives.path / topic / archives.names(topic)[0]).unlink()
    tables.options = {"keep_tombstones": True}
    with pytest.raises(Unreadable, match="parquet is missing: run `kgateway spark verify`"):
        tables.of_archive(topic)


def test_nothing_new_changes_nothing(tables: Tables) -> None:
    """
    Without new records no file of the table changes; other options make another table.
    """
    topic = tables.topics.make(*some(100, seed=2))
    first = tables.of_archive(topic)
    files = tables.table(topic).snapshots.files(first.snapshot)
    again = tables.of_archive(topic)
    assert (again.snapshot, again.read) == (first.snapshot, None)
    assert tables.table(topic).snapshots.files(again.snapshot) == files
    tables.options = {"keep_tombstones": True}
    other = tables.of_archive(topic)
    assert (other.snapshot.number, other.before) == (2, None)
    assert tables.rows(topic) == wanted(tables.archives.rows(topic), keep_tombstones=True)


@pytest.mark.parametrize("seed", range(3))
def test_an_update_equals_a_table_from_scratch(tables: Tables, seed: int) -> None:
    """
    The table is updated with new records in many steps while files are merged.
    """
    chance, topic = random.Random(seed), tables.topics.make()
    tables.options = {"keep_tombstones": bool(seed % 2)}
    for step in range(5):
        tables.topics.fill(topic, some(chance.randrange(1, 120), seed=100 * seed + step, keys=chance.choice([3, 30])))
        made = tables.of_archive(topic)
        assert (made.before is not None) == (step > 0)
        assert len([*(tables.path / "latest" / topic / "_snapshots").iterdir()]) == min(step + 1, 2)
        rows = wanted(tables.archives.rows(topic), **tables.options)
        assert tables.rows(topic) == rows, step
        assert made.read
        if made.before:
            ends = {index: extent.end for index, extent in made.before.state.extents.items()}
            new = sum(row["offset"] >= ends.get(row["partition"], 0) for row in tables.archives.rows(topic))
            assert made.read == sum(made.before.counts.values()) + new
        if chance.random() < 0.5:
            merged(tables.archives, topic)


def test_records_without_a_key(tables: Tables) -> None:
    """
    They are refused and nothing is left behind, or all of them are kept, even those without a value.
    """
    keyless: list[Row] = [
        {"value": b"a", "partition": 1},
        {"value": None, "partition": 1},
        {"value": b"b", "partition": 1},
    ]
    topic = tables.topics.make(*some(50, seed=3), *keyless)
    first = sum(row["partition"] == 1 for row in some(50, seed=3))
    with pytest.raises(Unreadable, match=f"3 records have no key, the first at offset {first} of partition 1"):
        tables.of_archive(topic)
    assert [*tables.table(topic).snapshots.path.glob("*/*")] == []
    tables.options = {"keep_keyless": True}
    tables.of_archive(topic)
    assert tables.rows(topic) == wanted(tables.archives.rows(topic))
    assert [row["value"] for row in tables.rows(topic) if row["key"] is None] == [b"a", None, b"b"]


def test_an_empty_archive_has_an_empty_table(tables: Tables) -> None:
    """
    The table can be read and updated.
    """
    topic = tables.topics.make()
    tables.of_log(topic)
    assert tables.rows(topic) == []
    tables.of_archive(topic, "other")
    assert tables.rows(topic, "other") == []
    tables.topics.fill(topic, some(10, seed=4))
    tables.of_log(topic)
    assert tables.of_archive(topic, "other").before
    assert tables.rows(topic) == tables.rows(topic, "other") == wanted(tables.archives.rows(topic))


def test_a_table_without_rows(tables: Tables) -> None:
    """
    A table is empty if all its keys are deleted.
    """
    rows: list[Row] = [{"key": b"%d" % (at % 5), "value": None, "partition": 0} for at in range(20)]
    made = tables.of_archive(topic := tables.topics.make(*rows))
    assert (tables.rows(topic), made.read, made.snapshot.counts) == ([], 20, {})


def test_a_log_is_read_from_scratch(tables: Tables) -> None:
    """
    An update could miss what the log has lost, such as a tombstone. A log that lost its start is no error.
    """
    topic = tables.topics.make(*[{"key": b"%d" % at, "value": b"v", "partition": 0} for at in range(50)])
    tables.of_log(topic)
    tables.topics.fill(topic, [{"key": b"0", "value": b"w", "partition": 0}])
    made = tables.of_log(topic)
    assert (made.before, made.read) == (None, 51)
    tables.topics.delete_records(topic, 0, 20)
    assert tables.of_log(topic).read == 31
    assert [row["offset"] for row in tables.rows(topic)] == [*range(20, 51)]


def test_a_compacted_archive_is_read_from_scratch(tables: Tables) -> None:
    """
    Records that compaction removed, tombstones too, are no longer in the table.
    """
    tables.options = {"keep_tombstones": True}
    topic = tables.topics.make(*some(200, seed=12))
    tables.of_archive(topic)
    before = tables.rows(topic)
    compacted(tables.archives, topic, tombstones_before_ms=1 << 45)
    made = tables.of_archive(topic)
    assert made.before is None
    assert tables.rows(topic) == tables.archives.rows(topic) == without_tombstones(before)
    assert len(before) > len(tables.rows(topic))


def test_a_recreated_archive_is_read_from_scratch(tables: Tables) -> None:
    """
    A recreated archive ends earlier, like a restored backup, or begins later.
    """
    topic, archives = tables.topics.make(*some(50, seed=13)), tables.archives
    archives.archive(topic)
    shutil.copytree(archives.path / topic, archives.path / "backup")
    tables.topics.fill(topic, some(50, seed=14))
    tables.of_archive(topic)
    shutil.rmtree(archives.path / topic)
    os.replace(archives.path / "backup", archives.path / topic)
    made = table_of_archive(tables.table(topic), tables.topics.spark, archives.folder(topic))
    assert (made.before, made.read) == (None, 50)
    assert tables.rows(topic) == wanted(archives.rows(topic))
    shutil.rmtree(archives.path / topic)
    tables.topics.delete_records(topic, 0, 5)
    assert tables.of_archive(topic).before is None
    assert tables.rows(topic) == wanted(archives.rows(topic))


def test_records_lost_during_a_read(tables: Tables) -> None:
    """
    The loss is reported, and the table does not change.
    """
    topic = tables.topics.make(*some(50, seed=16))
    tables.of_log(topic)
    before = tables.rows(topic)
    tables.topics.fill(topic, some(50, seed=17))
    source = LogSource(tables.topics.spark, tables.archives.place, topic, 100)
    assert source.state.extents[0].start == 0
    tables.topics.delete_records(topic, 0, 5)
    with pytest.raises(PySparkException, match=f"{topic}-0 has lost offset 0 and later ones while they were read"):
        tables.table(topic).make(tables.topics.spark, source)
    assert tables.rows(topic) == before
    assert [*tables.table(topic).snapshots.path.glob("_snapshots/.*")] == []


def test_a_log_that_lost_its_end(tables: Tables) -> None:
    """
    The loss is reported, and the table does not change.
    """
    topic = tables.topics.make(*some(50, seed=15))
    snapshots, made = tables.table(topic).snapshots, tables.of_log(topic)
    state = made.snapshot.state
    ends = {index: Extent(start, end + 10) for index, (start, end) in state.extents.items()}
    making = snapshots.new_folder()
    making.mkdir()
    snapshots.publish(replace(made.snapshot, number=2, state=replace(state, extents=ends)), making)
    with pytest.raises(Unreadable, match=f"{topic}-0 ends before offset"):
        tables.of_log(topic)
    assert snapshots.newest() == replace(made.snapshot, number=2, state=replace(state, extents=ends))


def test_a_recreated_topic_is_another_topic(tables: Tables) -> None:
    """
    Its values are not added to the table of the earlier topic.
    """
    topic = tables.topics.make(*some(50, seed=5))
    tables.of_log(topic)
    before = tables.rows(topic)
    tables.topics.delete(topic)
    tables.topics.make(*some(100, seed=6), name=topic)
    with pytest.raises(Unreadable, match="was deleted and recreated since"):
        tables.of_log(topic)
    assert tables.rows(topic) == before


def test_a_killed_job_is_cleaned_up(tables: Tables) -> None:
    """
    An unfinished table is deleted. A finished but unchecked one is checked.
    """
    topic = tables.topics.make(*some(50, seed=7))
    tables.of_log(topic)
    before = tables.rows(topic)
    tables.topics.fill(topic, some(50, seed=8))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Snapshots, "_turn", lambda self, number: None)
        assert tables.of_log(topic).snapshot.number == 2
    assert tables.rows(topic) == before
    snapshots = tables.table(topic).snapshots
    (snapshots.new_folder() / "_temporary").mkdir(parents=True)
    made = tables.of_log(topic)
    assert (made.snapshot.number, made.read) == (2, None)
    tables.archives.archive(topic)
    assert tables.rows(topic) == wanted(tables.archives.rows(topic))
    folders = [path.name for path in (snapshots.path / "_snapshots").iterdir()]
    assert sorted(folders) == ["00000000000000000001", "00000000000000000002"]


def test_a_second_job_gives_up(tables: Tables) -> None:
    """
    It does not touch what the first job has begun, says so, and succeeds once that has ended.
    """
    topic = tables.topics.make(*some(50, seed=9))
    first = tables.table(topic).snapshots
    with first.lock():
        making = first.new_folder()
        making.mkdir()
        with pytest.raises(ArchiveTaken, match=f"another job is working on {first.path}: wait until it has ended"):
            tables.of_log(topic)
        assert making.exists()
    assert tables.of_log(topic).snapshot.number == 1
    assert not making.exists()


def test_two_jobs_at_once(tables: Tables) -> None:
    """
    Only one of them makes the next table; the other says so.
    """
    topic = tables.topics.make(*some(50, seed=9))
    first = tables.table(topic).snapshots
    made = tables.of_log(topic)
    making = first.new_folder()
    making.mkdir()
    with pytest.raises(ArchiveTaken, match="another job has created"):
        first.publish(made.snapshot, making)
    assert tables.table(topic).snapshots.newest() == made.snapshot


def test_a_number_used_before(tables: Tables) -> None:
    """
    The number may be free again if other jobs were fast; `current` remains theirs.
    """
    topic = tables.topics.make(*some(50, seed=9))
    first = tables.of_log(topic).snapshot
    snapshots = tables.table(topic).snapshots
    for number in range(3):
        tables.topics.fill(topic, some(10, seed=number))
        newest = tables.of_log(topic).snapshot
    making = snapshots.new_folder()
    making.mkdir()
    with pytest.raises(ArchiveTaken, match=r"another job has created .*/0*4 meanwhile"):
        snapshots.publish(replace(first, number=2), making)
    assert snapshots.newest() == newest
    assert (snapshots.path / CURRENT / "_snapshot.json").exists()
    assert sorted(int(path.name) for path in (snapshots.path / "_snapshots").iterdir()) == [3, 4]


def test_a_damaged_snapshot_is_not_updated(tables: Tables) -> None:
    """
    The error says what to do.
    """
    topic = tables.topics.make(*some(50, seed=10))
    tables.of_log(topic)
    path = tables.path / "latest" / topic / CURRENT / "_snapshot.json"
    path.write_text(path.read_text().replace('"end": ', '"end": 1'))
    with pytest.raises(Unreadable, match="is damaged or missing: remove its folder"):
        tables.of_log(topic)
