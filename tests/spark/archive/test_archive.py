"""
Topics are archived, in real Spark, from a running gateway.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import pyarrow.parquet as pq
import pytest

from kgateway.broker.log.data_folder.session import CLEAN
from kgateway.spark.archive.folder import archives_in
from kgateway.spark.archive.manifest import ArchiveTaken, Gap, Identity, Manifest, Manifests, Tile, tile_of_name
from kgateway.spark.archive.store import LocalNewFile, LocalStore
from kgateway.spark.archive.task import MANY
from kgateway.spark.archive.verification import Outcome, Verification
from kgateway.spark.errors import Unreadable
from kgateway.spark.http.client import Access
from tests.spark.archive.archives import Archives, fault_texts
from tests.spark.folders import ORDERS, batch, marker, segment
from tests.spark.gateway import Topics, numbered


@pytest.fixture
def of_folder(spark: Any, tmp_path: Path) -> Archives:
    """
    Archives of a data folder that a test writes by hand.
    """
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / CLEAN).write_text("{}")
    return Archives(spark, tmp_path / "archives", {"kgateway.log.folder": str(tmp_path / "data")})


def inodes(archives: Archives, topic: str) -> dict[str, int]:
    return {name: (archives.path / topic / name).stat().st_ino for name in archives.names(topic)}


def test_all_records_with_all_that_they_have(topics: Topics, archives: Archives) -> None:
    """
    The rows are those that Spark reads of the topic, with nulls, empty values, headers and timestamps.
    """
    topic = topics.make(
        {
            "value": b"v",
            "key": b"k",
            "partition": 1,
            "headers": [("a", b"1"), ("b", None)],
            "timestamp": 1_700_000_000_123,
        },
        {"value": None, "key": None, "partition": 1, "timestamp": 1},
        {"value": b"", "key": b"", "partition": 0, "timestamp": 1},
        *numbered(3_000),
    )
    archives.archive(topic)
    theirs = topics.read(topic, includeHeaders="true").orderBy("partition", "offset").toArrow().to_pylist()
    assert archives.rows(topic) == theirs
    assert len(theirs) == 3_003


def test_names_and_footers_describe_a_file(topics: Topics, archives: Archives) -> None:
    """
    A file's name, its footer and the manifest agree.
    """
    topic = topics.make(*numbered(3_000))
    files = archives.archive(topic).files
    assert [file.name for file in files] == archives.names(topic)
    ranges = [(0, 0, 999), (0, 1_000, 1_499), (1, 0, 999), (1, 1_000, 1_499)]
    assert [(file.partition, file.first, file.last) for file in files] == ranges
    for file, (partition, first, last) in zip(files, ranges, strict=True):
        footer = pq.read_metadata(archives.path / topic / file.name).metadata
        wanted = {"topic": topic, "partition": partition, "first_offset": first, "last_offset": last}
        for name, value in (wanted | {"count": last + 1 - first, "checksum": file.checksum}).items():
            assert footer[f"kgateway.{name}".encode()].decode() == str(value)
        assert tile_of_name(topic, file.name) == Tile(partition=partition, first=first, last=last)
        assert file.name.endswith(f"-{last + 1 - first}-{file.checksum}.parquet")


def test_a_second_job_archives_only_new_records(topics: Topics, archives: Archives) -> None:
    topic = topics.make(*numbered(100))
    archives.archive(topic)
    before = inodes(archives, topic)
    archives.archive(topic)
    assert inodes(archives, topic) == before
    topics.fill(topic, numbered(50, first=100))
    archives.archive(topic)
    assert before.items() < inodes(archives, topic).items()
    assert archives.offsets(topic) == list(range(75))
    assert fault_texts(archives.verify(topic)) == []


def test_files_end_when_they_are_large_enough(topics: Topics, archives: Archives) -> None:
    """
    A task writes several files, none much larger than requested.
    """
    topic = topics.make(*[{"value": b"%05d" % number + bytes(5_000), "partition": 0} for number in range(2_000)])
    archives.file_bytes, archives.task_records = 3 << 20, 10_000
    files = archives.archive(topic).files
    assert len(files) > 2
    assert all(3 << 20 <= file.raw_bytes < 6 << 20 for file in files[:-1])
    assert archives.offsets(topic) == list(range(2_000))


def test_a_late_start_begins_where_the_log_does(topics: Topics, archives: Archives) -> None:
    """
    Records deleted before the archive began are no gap.
    """
    topic = topics.make(*numbered(100))
    topics.delete_records(topic, 0, 20)
    manifest = archives.archive(topic)
    assert [(tile.partition, tile.first, tile.last) for tile in manifest.tiles] == [(0, 20, 49), (1, 0, 49)]
    assert fault_texts(archives.verify(topic)) == []


def test_records_deleted_before_their_turn_are_a_gap(topics: Topics, archives: Archives) -> None:
    """
    Deleted records become a gap, which is no loss.
    """
    topic = topics.make(*numbered(100))
    archives.archive(topic)
    topics.fill(topic, numbered(100, first=100))
    topics.delete_records(topic, 0, 70)
    manifest = archives.archive(topic)
    assert [tile for tile in manifest.tiles if isinstance(tile, Gap)] == [Gap(partition=0, first=50, last=69)]
    assert archives.offsets(topic) == [*range(50), *range(70, 100)]
    outcome = archives.verify(topic)
    assert fault_texts(outcome) == []
    assert "offsets 50 to 69 had been deleted from the log before they were archived" in [
        one.reason for one in outcome.findings
    ]
    assert (outcome.compared, outcome.alone) == (130, 50)


def test_records_deleted_between_plan_and_task_are_a_gap(topics: Topics, archives: Archives) -> None:
    """
    The log may lose some or all of a plan before it is carried out.
    """
    topic = topics.make(*numbered(100))
    job = archives.job(topic)
    extents = job.extents()
    job._plan(extents, {partition: extent.end for partition, extent in extents.items()})
    topics.delete_records(topic, 0, 20)
    topics.delete_records(topic, 1, 50)
    manifest = archives.archive(topic)
    tiles = [(type(tile).__name__, tile.partition, tile.first, tile.last) for tile in manifest.tiles]
    assert tiles == [("Gap", 0, 0, 19), ("File", 0, 20, 49), ("Gap", 1, 0, 49)]
    assert fault_texts(archives.verify(topic)) == []


def test_markers_aborted_and_compacted_records_are_counted(of_folder: Archives, tmp_path: Path) -> None:
    """
    Each kind is counted separately, because none is a loss.
    """
    compacted = [batch(0, 10), batch(15, 5), marker(20, 7), batch(21, 4)]
    segment(tmp_path / "data" / str(ORDERS), 0, compacted)
    [file] = of_folder.archive("orders").files
    assert (file.first, file.last, file.count, file.markers, file.aborted, file.compacted) == (0, 24, 19, 1, 0, 5)
    outcome = of_folder.verify("orders")
    assert (fault_texts(outcome), outcome.compared) == ([], 19)


def test_records_compacted_since_are_no_fault(of_folder: Archives, tmp_path: Path) -> None:
    """
    The archive keeps records that the log has compacted away, and the others are compared.
    """
    segment(tmp_path / "data" / str(ORDERS), 0, [batch(0, 10), batch(10, 10)])
    of_folder.archive("orders")
    segment(tmp_path / "data" / str(ORDERS), 0, [batch(0, 5), batch(10, 10)])
    outcome = of_folder.verify("orders")
    assert (fault_texts(outcome), outcome.compared, outcome.alone) == ([], 15, 5)


def test_a_range_of_markers_only(of_folder: Archives, tmp_path: Path) -> None:
    """
    A range without records becomes a file without rows.
    """
    segment(tmp_path / "data" / str(ORDERS), 0, [marker(0, 7), marker(1, 8)])
    [file] = of_folder.archive("orders").files
    assert (file.count, file.markers) == (0, 2)
    assert fault_texts(of_folder.verify("orders")) == []


@pytest.fixture
def killed(topics: Topics, archives: Archives, monkeypatch: pytest.MonkeyPatch) -> str:
    """
    A topic whose job was killed between writing and committing.
    """
    topic = topics.make(*numbered(3_000))
    job = archives.job(topic)
    extents = job.extents()
    job._plan(extents, {partition: extent.end for partition, extent in extents.items()})
    with monkeypatch.context() as patched:
        patched.setattr(job, "_commit", lambda manifest: None)
        job._write()
    topics.fill(topic, numbered(100, first=3_000))
    assert archives.names(topic) == []
    return topic


def staged(archives: Archives, topic: str) -> dict[str, int]:
    folder = archives.folder(topic)
    return {name: (Path(folder.staged) / name).stat().st_ino for name in folder.staged_names()}


def test_the_plan_of_a_killed_job_is_carried_out(killed: str, archives: Archives) -> None:
    """
    The next job keeps complete files, removes partial ones, and makes the same files.
    """
    folder, before = Path(archives.folder(killed).staged), staged(archives, killed)
    assert len(before) == 2
    (folder / ".part-1").write_bytes(b"PAR1")
    (folder / "other.parquet").write_bytes(b"PAR1")
    os.unlink(folder / min(before))
    archives.archive(killed)
    after = inodes(archives, killed)
    assert after[max(before)] == before[max(before)]
    assert min(before) in after
    assert os.listdir(folder) == []
    assert archives.offsets(killed) == list(range(1_550))
    assert fault_texts(archives.verify(killed)) == []


def test_files_of_a_killed_job_are_kept(topics: Topics, killed: str, archives: Archives) -> None:
    """
    A complete file is not read again, even if the log has lost its records meanwhile.
    """
    for partition in (0, 1):
        topics.delete_records(killed, partition, 1_000)
    manifest = archives.archive(killed)
    assert len(manifest.files) == len(manifest.tiles)
    assert archives.offsets(killed) == list(range(1_550))
    assert fault_texts(archives.verify(killed)) == []


def test_a_gap_takes_no_time(topics: Topics, archives: Archives) -> None:
    """
    No tasks are made for gaps, however long.
    """
    topic = topics.make(*numbered(10))
    archives.archive(topic)
    topics.fill(topic, numbered(2_000, first=10))
    for partition in (0, 1):
        topics.delete_records(topic, partition, 1_000)
    archives.task_records = 10
    job = archives.job(topic)
    assert list(job.rounds(job.extents())) == [2_000, 0]
    assert fault_texts(archives.verify(topic)) == []


def test_committed_files_are_published_later(topics: Topics, archives: Archives) -> None:
    """
    A job that is killed after its commit leaves files in the staging folder, which the next job publishes.
    """
    topic = topics.make(*numbered(100))
    manifest = archives.archive(topic)
    folder = archives.folder(topic)
    for file in manifest.files:
        os.replace(folder.path / file.name, folder.staged / file.name)
    outcome = archives.verify(topic)
    assert fault_texts(outcome) == []
    assert len([one for one in outcome.findings if "not where readers of the folder look" in one.reason]) == 2
    archives.archive(topic)
    assert archives.offsets(topic) == list(range(50))


def small(topics: Topics, archives: Archives, rounds: int = MANY) -> str:
    """
    A topic whose archive has many small files.
    """
    topic = topics.make(partitions=1)
    for number in range(rounds):
        topics.fill(topic, [{"value": b"%d" % (10 * number + at)} for at in range(10)])
        archives.archive(topic)
    return topic


def test_small_files_are_merged(topics: Topics, archives: Archives) -> None:
    """
    Neighbours become one file with the same rows; a second merge has nothing to do.
    """
    topic = small(topics, archives)
    before = archives.rows(topic)
    assert len(archives.names(topic)) == MANY
    job = archives.job(topic)
    assert job.merge() == MANY
    [name] = archives.names(topic)
    assert "-00000000000000000000-00000000000000000159-160-" in name
    assert archives.rows(topic) == before
    assert job.merge() == 0
    assert fault_texts(archives.verify(topic)) == []


def test_a_merge_that_was_killed(topics: Topics, archives: Archives, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A merge killed after its commit is reported by verify, and completed by the next job.
    """
    topic = small(topics, archives)
    before, job = archives.rows(topic), archives.job(topic)
    with monkeypatch.context() as patched:
        patched.setattr("kgateway.spark.archive.folder.Folder.publish", lambda *_: None)
        job.merge()
    assert archives.rows(topic) == before
    faults = fault_texts(archives.verify(topic))
    assert len(faults) == MANY
    assert all("another file has replaced it" in fault for fault in faults)
    archives.archive(topic)
    assert len(archives.names(topic)) == 1
    assert archives.rows(topic) == before
    assert fault_texts(archives.verify(topic)) == []


def test_a_damaged_file_is_not_merged(topics: Topics, archives: Archives) -> None:
    """
    A merge would hide the damage.
    """
    topic = small(topics, archives)
    path = archives.path / topic / archives.names(topic)[3]
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)
    with pytest.raises(Unreadable, match="does not have the records that were written to it"):
        archives.job(topic).merge()


@pytest.mark.parametrize("others", [1, 12])  # twelve numbers: the first job's file existed and is gone
def test_a_second_job_takes_the_archive_over(topics: Topics, archives: Archives, others: int) -> None:
    """
    The first job ends at its next commit, and has changed nothing.
    """
    topic = topics.make(*numbered(100))
    first = archives.job(topic)
    for _ in range(others):
        archives.archive(topic)
    before = inodes(archives, topic)
    with pytest.raises(ArchiveTaken, match="another job has written"):
        list(first.rounds(first.extents()))
    assert inodes(archives, topic) == before
    assert fault_texts(archives.verify(topic)) == []


class Overtaken(LocalStore):
    """
    Does something else, once, before a file is made.
    """

    def __init__(self, first: Callable[[], object]) -> None:
        self._first = [first]

    def make(self, folder: PurePath) -> LocalNewFile:
        while self._first:
            self._first.pop()()
        return super().make(folder)


def test_a_number_used_before(tmp_path: Path) -> None:
    """
    A number may be free again, but a job that finds higher ones removes what it wrote.
    """
    manifests = Manifests(tmp_path, LocalStore())
    first = manifests.commit(Manifest(identity=Identity(topic="t")))

    def others() -> None:
        manifest = first
        for _ in range(12):
            manifest = manifests.commit(manifest)

    with pytest.raises(ArchiveTaken, match=f"another job has written {tmp_path}/0*13.json"):
        Manifests(tmp_path, Overtaken(others)).commit(first)
    assert [int(name[:-5]) for name in sorted(os.listdir(tmp_path))] == [*range(4, 14)]


def test_an_archive_without_a_manifest(tmp_path: Path) -> None:
    """
    Commands and verify report it; a folder of something else is no archive.
    """
    for name in ("orders/_manifest", "others"):
        (tmp_path / name).mkdir(parents=True)
    [found] = archives_in(tmp_path, Access())
    assert found.path == tmp_path / "orders"
    [outcome] = Verification(None, found, "orders", None).steps()
    assert isinstance(outcome, Outcome)
    assert fault_texts(outcome) == [f"manifest: there is no archive in {found.path}: no manifest"]


def test_a_recreated_topic_is_another_topic(topics: Topics, archives: Archives) -> None:
    """
    Records of the new topic are not added to the archive of the old one.
    """
    topic = topics.make(*numbered(10))
    archives.archive(topic)
    topics.delete(topic)
    topics.make(*numbered(100), name=topic)
    with pytest.raises(Unreadable, match="was deleted and recreated since it was archived"):
        archives.archive(topic)
    assert any("was deleted and recreated" in fault for fault in fault_texts(archives.verify(topic)))
    assert fault_texts(archives.verify(topic, log=False)) == []


def test_an_archive_keeps_its_isolation(topics: Topics, archives: Archives) -> None:
    """
    Another isolation level is refused.
    """
    topic = topics.make(*numbered(10))
    archives.archive(topic)
    with pytest.raises(Unreadable, match=r"begun with kafka\.isolation\.level=read_committed"):
        replace(archives, options=archives.options | {"kafka.isolation.level": "read_uncommitted"}).archive(topic)


def test_a_log_that_lost_its_end(of_folder: Archives, tmp_path: Path) -> None:
    """
    A log that became shorter is an error before anything is written.
    """
    segment(tmp_path / "data" / str(ORDERS), 0, [batch(0, 10), batch(10, 10)])
    of_folder.archive("orders")
    segment(tmp_path / "data" / str(ORDERS), 0, [batch(0, 10)])
    with pytest.raises(Unreadable, match="orders-0 ends before offset 19, which existed before"):
        of_folder.archive("orders")
    assert "orders-0: the log ends at offset 10, but the archive has it up to 19" in fault_texts(
        of_folder.verify("orders")
    )
