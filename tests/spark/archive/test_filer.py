"""
Archives in a filer of SeaweedFS keep the promises of those on this machine.
"""

import json
import os
import re
from argparse import ArgumentTypeError
from dataclasses import replace
from pathlib import Path, PurePath
from time import monotonic, sleep
from typing import Any, cast
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.python.failure import Failure

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.cli.spark.locations import location
from kgateway.spark.archive.file_check import FileCheck
from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.manifest import ArchiveTaken, Manifest
from kgateway.spark.archive.parquet import rows_of
from kgateway.spark.archive.store import Store, read_file, store_of
from kgateway.spark.archive.task import MANY
from kgateway.spark.errors import WrongOption
from kgateway.spark.http.client import Access, RemoteError, UrlPath, url_path
from kgateway.spark.http.files import RemoteFiles
from kgateway.spark.seaweed.archive_store import FilerStore, filer_store
from kgateway.spark.seaweed.filer import WritableFiler
from tests.spark.archive.archives import Archives, fault_texts
from tests.spark.gateway import PARTITIONS, Topics, numbered
from tests.spark.jobs import PATIENCE_S, runner

SOON = Access(answer_s=5, patience_s=0.3)


@pytest.fixture
def store(url: str) -> FilerStore:
    return filer_store(url_path(url).origin, SOON)


def put(path: PurePath, data: bytes) -> None:
    """
    Store these bytes, replacing any.
    """
    with urlopen(Request(str(path), data, method="PUT")):
        pass


def make(store: Store, path: PurePath, *data: bytes) -> None:
    """
    Make a file as a job does.
    """
    making = store.make(path.parent)
    try:
        for part in data:
            making.write(part)
        making.finish(path.name)
    finally:
        making.discard()


def is_stored(store: FilerStore, file_id: str) -> bool:
    """
    Whether the volume has these bytes; a filer serves deleted ones too.
    """
    volume = store.filer.ask(lambda filer: filer.volumes.upload("/any", b"any")).server.http
    try:
        with urlopen(f"http://{volume}/{file_id}"):
            return True
    except HTTPError:
        return False


def chunk_of(store: FilerStore, path: UrlPath) -> str:
    """
    The chunk of a small file.
    """
    entry = store.filer.ask(lambda filer: filer.entry(path.target))
    assert entry
    [chunk] = entry.chunks
    return chunk.file_id


def wait_for_deletion(store: FilerStore, path: UrlPath) -> None:
    """
    Wait until the chunks of a file deleted now are gone: a filer deletes chunks later, in order.
    """
    make(store, path, b"that go")
    file_id, deadline = chunk_of(store, path), monotonic() + PATIENCE_S
    store.remove(path)
    while is_stored(store, file_id):
        assert monotonic() < deadline, "the filer deletes nothing"
        sleep(0.05)


class TestStore:
    def test_a_file_appears_whole(self, store: FilerStore, url: str) -> None:
        """
        A file of several chunks has random access, and is invisible before it has its name.
        """
        path, data = url_path(url) / "some" / "file", bytes(range(256)) * (17 << 12)
        making = store.make(path.parent)
        making.write(data)
        assert store.names(path.parent) == []
        making.finish("file")
        making.discard()
        assert store.names(path.parent) == ["file"]
        assert store.names(path.parent.parent) == store.folders(path.parent.parent) == ["some"]
        with store.open(path) as file:
            assert file.size() == len(data)
            assert file.seek((8 << 20) - 3) == (8 << 20) - 3
            assert file.read(6) == data[(8 << 20) - 3 :][:6]
        assert read_file(store, path) == data

    def test_an_existing_file_is_not_replaced(self, store: FilerStore, url: str) -> None:
        path = url_path(url) / "file"
        make(store, path, b"first")
        with pytest.raises(FileExistsError, match=re.escape(str(path))):
            make(store, path, b"second")
        assert read_file(store, path) == b"first"

    def test_a_move_replaces_its_target(self, store: FilerStore, url: str) -> None:
        """
        A missing source is an error.
        """
        one, other = url_path(url) / "one", url_path(url) / "some folder" / "other"
        make(store, one, b"some", b" bytes")
        make(store, other, b"of somebody else")
        file_id = chunk_of(store, one)
        store.move(one, other)
        wait_for_deletion(store, one)
        assert (is_stored(store, file_id), read_file(store, other)) == (True, b"some bytes")
        store.remove(other)
        assert not store.has(other)
        store.remove(other)
        with pytest.raises(FileNotFoundError, match=re.escape(str(one))):
            store.move(one, other)
        with pytest.raises(FileNotFoundError):
            read_file(store, one)

    def test_two_names_for_the_same_bytes(self, store: FilerStore, url: str) -> None:
        """
        A filer that is killed during a move leaves two entries. The next move keeps the bytes.
        """
        one, other = url_path(url) / "one", url_path(url) / "other"
        make(store, one, b"some bytes")
        found, file_id = store.filer.ask(lambda filer: filer.entry(one.target)), chunk_of(store, one)
        assert found
        store.filer.ask(lambda filer: filer.create(other.target, found, only_if_absent=True))
        store.move(one, other)
        wait_for_deletion(store, one)
        assert (is_stored(store, file_id), read_file(store, other)) == (True, b"some bytes")

    def test_a_move_whose_response_is_lost(self, store: FilerStore, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """
        The outcome is looked up, and the move repeated if it did not happen.
        """
        one, other, rename = url_path(url) / "one", url_path(url) / "other", Filer.rename
        steps = ["lost", "failed", "done"]

        def losing(filer: Filer, path: str, new: str) -> Deferred[None]:
            step = steps.pop(0)
            if step == "failed":
                return fail(RpcError(Status.UNAVAILABLE, "gone"))
            made = rename(filer, path, new)
            return made if step == "done" else made.addCallback(lambda _: fail(RpcError(Status.UNAVAILABLE, "gone")))

        monkeypatch.setattr(Filer, "rename", losing)
        make(store, one, b"some bytes")
        store.move(one, other)
        assert (steps, store.has(one), read_file(store, other)) == (["failed", "done"], False, b"some bytes")
        store.move(other, one)
        assert (steps, store.has(other), read_file(store, one)) == ([], False, b"some bytes")

    def test_a_link_whose_response_is_lost(self, store: FilerStore, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """
        The chunks tell whose file exists, and ours is kept.
        """
        lost, create = [1], Filer.create

        def losing(*arguments: Any, **named: Any) -> Deferred[bool]:
            made = create(*arguments, **named)
            if lost and lost.pop():
                made.addCallback(lambda _: Failure(RpcError(Status.UNAVAILABLE, "gone")).raiseException())
            return made

        monkeypatch.setattr(Filer, "create", losing)
        path = url_path(url) / "file"
        make(store, path, b"ours")
        assert (lost, read_file(store, path)) == ([], b"ours")
        lost.append(1)
        with pytest.raises(FileExistsError):
            make(store, path, b"others")
        assert (lost, read_file(store, path)) == ([], b"ours")

    def test_an_unreachable_filer_is_named(self, cluster: DevCluster, url: str) -> None:
        away = url_path("http://127.0.0.1:1/archives")
        with pytest.raises(RemoteError, match=r"cannot get http://127.0.0.1:1/archives"):
            store_of(away, SOON).names(away)


def test_an_archive(topics: Topics, there: Archives) -> None:
    """
    An archive is made in rounds, merged, verified, and readable as plain Parquet.
    """
    topic = topics.make()
    for number in range(MANY):
        topics.fill(topic, numbered(2, first=2 * number))
        there.archive(topic)
    folder = there.folder(topic)
    assert len(there.names(topic)) == MANY * PARTITIONS
    assert there.job(topic).merge() == MANY * PARTITIONS
    assert len(there.names(topic)) == PARTITIONS
    assert (fault_texts(there.verify(topic)), there.verify(topic).compared) == ([], 2 * MANY)
    assert folder.store.names(folder.staged) == []


def test_what_killed_jobs_leave(topics: Topics, there: Archives, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Files outside the plan are removed, those in the manifest are published, and another job's number is refused.
    """
    topic = topics.make(*numbered(100))
    folder, first = there.folder(topic), there.job(topic)
    with monkeypatch.context() as patched:
        patched.setattr(Folder, "publish", lambda *_: None)
        for _ in first.rounds(first.extents()):
            pass
    assert there.names(topic) == []
    assert len(folder.staged_names()) == PARTITIONS
    make(folder.store, folder.staged / f"{topic}-0-alien.parquet", b"PAR1")
    assert there.verify(topic).faults == 0
    topics.fill(topic, numbered(10, first=100))
    there.archive(topic)
    assert len(there.names(topic)) == 2 * PARTITIONS
    assert folder.staged_names() == []
    assert there.verify(topic).compared == 110
    with pytest.raises(ArchiveTaken, match="is one still running on this archive"):
        folder.manifests.commit(replace(first.manifest))


def test_damage_is_found(topics: Topics, there: Archives) -> None:
    """
    A missing file, a flipped bit and a stranger are found.
    """
    topic = topics.make(*numbered(100))
    manifest: Manifest = there.archive(topic)
    folder = there.folder(topic)
    gone, changed = (folder.path / file.name for file in manifest.files)
    data = bytearray(read_file(folder.store, changed))
    data[len(data) // 2] ^= 1
    put(changed, bytes(data))
    folder.store.remove(gone)
    put(folder.path / "stranger.parquet", b"PAR1")
    found = "\n".join(fault_texts(there.verify(topic)))
    assert f"{gone.name}: the file is missing" in found
    assert f"{changed.name}: the file was changed" in found
    assert "stranger.parquet: not a file of the archive" in found


def lose(store: FilerStore, path: UrlPath) -> None:
    """
    Make a volume forget the bytes of a file.
    """
    entry = store.filer.ask(lambda filer: filer.entry(path.target))
    assert entry
    [chunk] = entry.chunks
    chunk.file_id = ""
    chunk.fid.file_key += 1_000
    store.filer.ask(lambda filer: filer.update(path.target, entry))


def test_lost_bytes(topics: Topics, there: Archives) -> None:
    """
    Lost bytes are a fault of the file; an unreachable filer is none.
    """
    topic = topics.make(*numbered(10))
    manifest = there.archive(topic)
    file, folder = manifest.files[0], Folder(there.folder(topic).path, SOON)
    lose(cast(FilerStore, folder.store), cast(UrlPath, folder.path / file.name))
    [found] = FileCheck(folder, manifest.identity, file, None, None).run().findings
    assert found.place == file.name
    assert found.reason.startswith("it cannot be read: ")
    assert found.reason.endswith("offsets 0 to 4 (5 records) are in no file")
    away = Folder(url_path("http://127.0.0.1:1/archives") / topic, SOON)
    with pytest.raises(RemoteError, match="cannot get"):
        FileCheck(away, manifest.identity, file, None, None).run()


def test_unneeded_columns_are_not_fetched(topics: Topics, there: Archives, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = topics.make(*[{"key": b"k", "value": os.urandom(10_000), "partition": 0} for _ in range(100)])
    [file] = there.archive(topic).files
    folder, fetched, part = there.folder(topic), list[int](), RemoteFiles.part

    def watched(files: RemoteFiles, path: UrlPath, position: int, size: int) -> bytes:
        fetched.append(size)
        return part(files, path, position, size)

    monkeypatch.setattr(RemoteFiles, "part", watched)
    found = pa.Table.from_batches(rows_of(folder.store, folder.path / file.name, ["partition", "offset"]))
    assert found.to_pydict() == {"partition": [0] * 100, "offset": [*range(100)]}
    assert file.bytes > 1_000_000
    assert sum(fetched) < 100_000


def test_compaction(topics: Topics, there: Archives) -> None:
    """
    An archive is compacted in place, by key, and verify proves it.
    """
    from kgateway.spark.compact.archive_compaction import Compaction, CompactionGoal

    topic = topics.make(*[row | {"key": b"one"} for row in numbered(10)])
    there.archive(topic)
    job = Compaction(there.spark, there.folder(topic), CompactionGoal(by_key=True))
    assert [*job.look()]
    job.plan()
    assert [*job.write()]
    assert [file.removed for file in job.manifest.files] == [4, 4]
    assert (fault_texts(there.verify(topic)), there.verify(topic).proven) == ([], 8)
    assert there.folder(topic).store.names(there.folder(topic).path / "_compacting") == []


def test_jobs(topics: Topics, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Archive, verify, SQL and compact work with a filer.
    """
    topic = topics.make(*numbered(1_000))
    archive, verify, sql, compact = (
        runner(topics, monkeypatch, job) for job in ("archive", "verify", "sql", "compact")
    )
    assert archive(topic, "--into", url, "--once")[-1].startswith("1,000 records (")
    topics.fill(topic, numbered(10, first=1_000))
    [told] = json.loads("".join(verify("--in", url, "--json")))["archives"]
    assert (told["topic"], told["compared"]) == (topic, 1_000)
    asked = f"SELECT _source, count(*), sum(CAST(CAST(_value AS STRING) AS INT)) FROM `{topic}` GROUP BY 1 ORDER BY 2"
    found = sql(asked, "--archive", url, "--format", "csv")[1:]
    assert found == [f"live_log,10,{sum(range(1_000, 1_010))}", f"parquet_archive,1000,{sum(range(1_000))}"]
    assert "1,000 of 1,000 records kept in " in compact("--in", url, "--output", tmp_path / "latest")[-1]


def test_an_unusable_security_file_is_a_wrong_option(store: FilerStore, tmp_path: Path) -> None:
    with pytest.raises(WrongOption, match=r"none\.toml cannot be read: No such file"):
        WritableFiler(store.filer.ask(lambda filer: succeed(filer.address)), str(tmp_path / "none.toml"))


@pytest.mark.parametrize(
    "where", ["ftp://filer/archives", "http://filer/archives", "http://filer:x/a", "http://filer:60000/a"]
)
def test_wrong_places_are_refused(where: str) -> None:
    """
    Wrong places are reported before Spark starts.
    """
    with pytest.raises(ArgumentTypeError, match=f"{where} is neither a folder nor http://HOST:PORT/PATH in a filer"):
        location(where)
