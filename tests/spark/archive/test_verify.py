"""
Verify finds and describes damage.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from kgateway.spark.archive.checksums import Checksum
from kgateway.spark.archive.file_check import spans
from kgateway.spark.archive.parquet import SCHEMA, rows_of
from kgateway.spark.archive.store import LocalStore
from tests.spark.archive.archives import Archives, fault_texts
from tests.spark.gateway import Topics, numbered

FILE = "{topic}-0-00000000000000000000-00000000000000000049-50-"


@pytest.fixture
def topic(topics: Topics, archives: Archives) -> str:
    """
    A topic of two partitions with fifty records each, archived.
    """
    topic = topics.make(*numbered(100))
    archives.archive(topic)
    return topic


def changed(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """
    Replace the rows of a file, keeping its footer.
    """
    table = pq.read_table(path)
    pq.write_table(change(table).replace_schema_metadata(pq.read_metadata(path).metadata), path)


def flipped(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def doubled(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table.slice(0, 8), table.slice(7)])


def cut(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table.slice(0, 7), table.slice(9)])


def other_value(table: pa.Table) -> pa.Table:
    values = pc.if_else(pc.equal(table["offset"], 7), pa.scalar(b"?", pa.binary()), table["value"])
    return table.set_column(table.column_names.index("value"), "value", values)


def elsewhere(table: pa.Table) -> pa.Table:
    offsets = pc.if_else(pc.equal(table["offset"], 49), 1_000, table["offset"])
    return table.set_column(table.column_names.index("offset"), "offset", offsets)


DAMAGES = {
    "removed": (lambda path: path.unlink(), ["the file is missing: offsets 0 to 49 (50 records) are in no file"]),
    "row doubled": (
        lambda path: changed(path, doubled),
        ["the file was changed", "offset 7 is more than once, or not in order", "instead of 50 with"],
    ),
    "rows missing": (
        lambda path: changed(path, cut),
        ["the file was changed", "instead of 50 with", "offsets 7 to 8 are in the log, but not in the archive"],
    ),
    "value changed": (
        lambda path: changed(path, other_value),
        ["the file was changed", "instead of 50 with", "offset 7 is different in the log"],
    ),
    "offset changed": (
        lambda path: changed(path, elsewhere),
        ["the file was changed", "offset 1000 is in it, but the", "instead of 50 with", "offset 49 is in the log"],
    ),
    "byte flipped": (lambda path: flipped(path, path.stat().st_size // 2), ["the file was changed: the CRC32C of its"]),
    "last byte flipped": (
        lambda path: flipped(path, path.stat().st_size - 1),
        ["it is not a Parquet file, or its footer"],
    ),
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:-100]), ["or its footer is damaged"]),
    "empty": (lambda path: path.write_bytes(b""), ["it is not a Parquet file", "the file was changed: it has 0 bytes"]),
    "alien": (lambda path: path.with_name("a.parquet").write_bytes(path.read_bytes()), ["not a file of the archive"]),
    "copied": (
        lambda path: path.with_name(path.name.replace("-50-", "-51-")).write_bytes(path.read_bytes()),
        ["not a file of the archive, although readers of the folder may read it as one"],
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("log", [True, False])
def test_damage_is_found(topic: str, archives: Archives, damage: str, log: bool) -> None:
    """
    Damage is found with the log and without; some of it only with the log.
    """
    assert fault_texts(archives.verify(topic)) == []
    do, words = DAMAGES[damage]
    [name] = [name for name in archives.names(topic) if name.startswith(FILE.format(topic=topic))]
    do(archives.path / topic / name)
    faults = fault_texts(archives.verify(topic, log=log))
    for word in words:
        if log or "log" not in word:
            assert any(word in fault for fault in faults), (word, faults)
    assert faults
    assert all(f"{topic}-1-" not in fault for fault in faults)


def test_all_is_compared_with_the_log(topic: str, archives: Archives) -> None:
    """
    Records are compared as far as the log has them, unless an option says otherwise.
    """
    with_log, without = archives.verify(topic), archives.verify(topic, log=False)
    assert (with_log.compared, with_log.alone) == (100, 0)
    assert (without.compared, without.alone) == (0, 100)


def test_records_the_log_still_has_are_compared(topics: Topics, topic: str, archives: Archives) -> None:
    """
    They include those at the end of a file whose start the log has lost.
    """
    topics.delete_records(topic, 0, 20)
    outcome = archives.verify(topic)
    assert (fault_texts(outcome), outcome.compared, outcome.alone) == ([], 80, 20)


def test_unarchived_records_are_reported_but_no_fault(topics: Topics, topic: str, archives: Archives) -> None:
    topics.fill(topic, numbered(10, first=100))
    outcome = archives.verify(topic)
    assert fault_texts(outcome) == []
    assert [one.reason for one in outcome.findings] == ["offsets 50 to 54 are not archived yet"] * 2


def test_a_changed_manifest_is_not_trusted(topic: str, archives: Archives) -> None:
    path = max((archives.path / topic / "_manifest").glob("*.json"))
    told = json.loads(path.read_text())
    told["manifest"]["tiles"].pop()
    path.write_text(json.dumps(told))
    [fault] = fault_texts(archives.verify(topic))
    assert fault == f"manifest: {path} is damaged: its content is not what was written"


def test_a_manifest_with_a_hole(topic: str, archives: Archives) -> None:
    """
    Offsets in no file or in two are named.
    """
    manifest = archives.folder(topic).manifests.newest()
    assert manifest
    first, second = manifest.files
    for tiles, words in [
        ([replace(first, last=20), replace(first, first=30), second], "offsets 21 to 29 are in no file"),
        ([first, replace(first, first=30), second], "offsets 30 to 49 are in two files"),
    ]:
        newest = archives.folder(topic).manifests.newest()
        assert newest
        archives.folder(topic).manifests.commit(replace(newest, tiles=tuple(tiles)))
        assert f"{topic}-0: {words}" in fault_texts(archives.verify(topic, log=False))


def test_an_archive_that_begins_behind_the_log(topic: str, archives: Archives) -> None:
    """
    Earlier records of the log are missing from the archive.
    """
    manifest = archives.folder(topic).manifests.newest()
    assert manifest
    archives.folder(topic).manifests.commit(replace(manifest, tiles=(replace(manifest.files[0], first=5),)))
    assert f"{topic}-0: the archive begins with offset 5, but the log begins with 0" in fault_texts(
        archives.verify(topic)
    )


def test_a_missing_archive_is_a_fault(topics: Topics, archives: Archives) -> None:
    [fault] = fault_texts(archives.verify(topics.make()))
    assert "no manifest" in fault


def test_checksums_do_not_depend_on_batches(topic: str, archives: Archives) -> None:
    """
    A checksum depends on every field of every record, and neither on batches nor on bytes behind nulls.
    """
    [rows] = rows_of(LocalStore(), archives.path / topic / archives.names(topic)[0])
    whole, parts = Checksum(), Checksum()
    whole.add(rows)
    for at in range(0, rows.num_rows, 7):
        parts.add(rows.slice(at, 7))
    assert (parts.text, parts.bytes) == (whole.text, whole.bytes)
    plain = {
        "key": b"k",
        "value": b"v",
        "topic": "t",
        "partition": 0,
        "offset": 1,
        "timestamp": 5,
        "timestampType": 0,
        "headers": [{"key": "a", "value": b"1"}],
    }
    others: dict[str, object] = {"key": None, "value": b"", "offset": 2, "timestamp": None, "timestampType": 1}
    changes = [plain, *(plain | {name: value} for name, value in others.items())]
    changes += [plain | {"headers": headers} for headers in (None, [], [{"key": "a", "value": None}])]
    changes += [plain | {"key": b"kv", "value": b""}, plain | {"key": b"", "value": b"kv"}]
    texts = set()
    for change in changes:
        checksum = Checksum()
        checksum.add(pa.RecordBatch.from_pylist([change], SCHEMA))
        texts.add(checksum.text)
    assert len(texts) == len(changes)


def test_offset_lists_for_people() -> None:
    """
    Neighbours are joined, and long lists cut.
    """
    assert spans([3]) == "offset 3 is"
    assert spans([5, 3, 4, 9]) == "offsets 3 to 5, 9 are"
    assert spans(range(0, 24, 2)) == "offsets 0, 2, 4, 6, 8, 10, 12, 14, 16, 18 and 2 more are"
