"""
Logs read from their files: which offsets are read, how far it is safe to read, and what errors say of missing files.
"""

from collections.abc import Collection
from pathlib import Path, PurePath
from typing import Any

import pytest

from kgateway.broker.log.data_folder import session as data_folder
from kgateway.broker.log.data_folder.checkpoints import LOG_STARTS, SETTLED, encode_offsets
from kgateway.broker.log.data_folder.meta_properties import META
from kgateway.broker.log.data_folder.partition_folder import METADATA
from kgateway.broker.log.data_folder.start_file import START, Start
from kgateway.broker.log.segments.index import INDEX, OFFSETS
from kgateway.client.offsets import Extent, OffsetAndTimestamp
from kgateway.records.compression import Codec
from kgateway.spark.errors import DataLost, TopicGone, Unreadable
from kgateway.spark.logs import segments as segments_module
from kgateway.spark.logs.broker_logs import SameTopics, Servers
from kgateway.spark.logs.files import LocalFile, LocalFiles
from kgateway.spark.logs.folder import FolderLogs
from kgateway.spark.logs.offset_range import OffsetRange
from kgateway.spark.logs.segments import Segments
from kgateway.topic_partition import TopicPartition
from kgateway.wire.uuids import Uuid
from tests.spark.folders import ORDERS, batch, clean, logs, marker, offsets_in, segment, synced

TOPIC = Uuid(range(16))
SOME = Extent(2, 13)
PLACE = TopicPartition(ORDERS.topic, ORDERS.index)
ABORTED_INDEX = ".txnindex"


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """
    A folder of a partition with offsets 0 to 29 in three segments of five batches.
    """
    folder = tmp_path / str(ORDERS)
    for base in (0, 10, 20):
        segment(folder, base, [batch(base + at, 2, codec=list(Codec)[at // 2]) for at in range(0, 10, 2)])
    return folder


@pytest.mark.parametrize(("start", "end"), [(0, 30), (3, 4), (9, 11), (5, 25), (20, 30), (29, 30), (12, 12)])
def test_each_offset_is_read_once(orders: Path, start: int, end: int) -> None:
    """
    Any range has all its offsets in order, across batches and segments of all codecs.
    """
    assert offsets_in(clean(orders.parent), start, end) == list(range(start, end))


def test_indexes_are_not_needed(orders: Path) -> None:
    """
    Where an index is missing or wrong, the segment is scanned.
    """
    for path in orders.glob("*.index"):
        path.unlink()
    assert offsets_in(clean(orders.parent), 17, 23) == list(range(17, 23))
    third = len(batch(10, 2)) + len(batch(12, 2, codec=Codec.GZIP))
    for position in (7, third):
        wrong = OFFSETS.pack(0, position)
        (orders / "00000000000000000010.index").write_bytes(wrong)
        assert offsets_in(clean(orders.parent), 11, 23) == list(range(11, 23))


def test_preallocated_indexes(tmp_path: Path) -> None:
    """
    Zeroes behind the entries of Kafka's indexes are no entries.
    """
    segment(tmp_path / str(ORDERS), 0, [batch(at) for at in range(50)], room=400)
    found = clean(tmp_path)
    assert offsets_in(found, 40, 45) == list(range(40, 45))
    assert len(Segments(LocalFiles(), tmp_path / str(ORDERS)).index(0, INDEX, OFFSETS)) == 49
    assert found.at_time([ORDERS], 333) == {ORDERS: OffsetAndTimestamp(34, 340)}


def test_batches_larger_than_a_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Batches are read whole, however little of a file is read at a time.
    """
    monkeypatch.setattr(segments_module, "WINDOW_BYTES", 100)
    segment(tmp_path / str(ORDERS), 0, [batch(at, size=1 + at * 20) for at in range(20)], indexed=False)
    assert offsets_in(clean(tmp_path), 0, 20) == list(range(20))


def test_compacted_records_are_no_loss(tmp_path: Path) -> None:
    """
    Offsets missing between batches, between segments, or before the end of the range are skipped.
    """
    folder = tmp_path / str(ORDERS)
    segment(folder, 0, [batch(2, 2), batch(8)])
    segment(folder, 20, [batch(25), batch(29)])
    found = clean(tmp_path)
    assert offsets_in(found, 0, 30) == [2, 3, 8, 25, 29]
    assert offsets_in(found, 9, 15) == []
    assert offsets_in(found, 9, 24) == []
    assert offsets_in(found, 26, 28) == []


def test_deleted_records_are_reported(orders: Path) -> None:
    """
    Where the first offsets are missing, the query fails, or continues with those that exist.
    """
    found = clean(orders.parent)
    (orders / "00000000000000000000.log").unlink()
    with pytest.raises(DataLost, match=r"orders-0 begins with offset 10 now, but offsets 5 to 9 were requested"):
        offsets_in(found, 5, 15)
    assert offsets_in(found, 5, 15, fail=False) == list(range(10, 15))
    with pytest.raises(DataLost, match=r"offsets 5 to 7 were"):
        offsets_in(found, 5, 8)
    assert offsets_in(found, 5, 8, fail=False) == []


def test_a_log_that_ends_too_early_is_reported(orders: Path) -> None:
    """
    Planned offsets behind the end are lost.
    """
    found = clean(orders.parent)
    with pytest.raises(DataLost, match=r"orders-0 ends at offset 30, but orders-0, offsets 25 to 39 were requested"):
        offsets_in(found, 25, 40)
    assert offsets_in(found, 25, 40, fail=False) == list(range(25, 30))


def test_a_segment_deleted_while_it_is_read(orders: Path) -> None:
    """
    An open segment is read to its end; the missing next one is noticed afterwards.
    """
    found = logs(orders.parent)
    windows = found.windows(OffsetRange(ORDERS, 0, 30))
    assert next(windows).next_offset == 10
    (orders / "00000000000000000000.log").unlink()
    assert [window.next_offset for window in windows] == [20, 30]


def test_a_segment_deleted_just_before_it_is_read(orders: Path) -> None:
    """
    A file that vanishes after its name was listed was deleted by retention, with all before it.
    """

    class Vanishing(LocalFiles):
        def open(self, path: PurePath) -> LocalFile:
            if path.name == "00000000000000000010.log":
                for gone in orders.glob("*.log"):
                    if gone.name <= path.name:
                        gone.unlink()
            return super().open(path)

    found = FolderLogs(orders.parent, Vanishing(), committed_only=False)
    with pytest.raises(DataLost, match="orders-0 begins with offset 20 now, but offsets 10 to 19 were requested"):
        offsets_in(found, 5, 25)


def test_a_topic_deleted_while_it_is_read(orders: Path) -> None:
    """
    A missing folder means that the topic was deleted.
    """
    found = clean(orders.parent)
    orders.rename(orders.with_name("orders.x-delete"))
    with pytest.raises(TopicGone, match=r"orders-0 is not in .* any more"):
        offsets_in(found, 0, 5)
    assert offsets_in(found, 0, 5, fail=False) == []


def test_damage_is_reported_with_its_place(orders: Path) -> None:
    """
    A damaged batch stops the query; the error has the file and the place in it.
    """
    path = orders / "00000000000000000010.log"
    data = bytearray(path.read_bytes())
    second = len(batch(10, 2))
    data[second + 16] = 7  # the magic of a batch
    path.write_bytes(data)
    with pytest.raises(Unreadable, match=rf"00000000000000000010.log is damaged at byte {second}: magic 7, not 2"):
        offsets_in(clean(orders.parent), 0, 30)
    data[second + 16] = 2
    data[second + 60] ^= 255
    path.write_bytes(data)
    with pytest.raises(Unreadable, match=r"orders-0 has a damaged batch: .*CRC.* first offset is 12"):
        offsets_in(clean(orders.parent), 0, 30)


def test_offsets_that_go_back_are_damage(tmp_path: Path) -> None:
    """
    A batch whose offsets were read already is not returned again.
    """
    segment(tmp_path / str(ORDERS), 0, [batch(0, 5), batch(3, 2)])
    with pytest.raises(Unreadable, match="offset 3 comes after offset 4"):
        offsets_in(clean(tmp_path), 0, 7)


def test_markers_are_no_records(tmp_path: Path) -> None:
    """
    Control batches take offsets, and have no rows.
    """
    segment(tmp_path / str(ORDERS), 0, [batch(0), marker(1, 7), batch(2)])
    assert offsets_in(clean(tmp_path), 0, 3) == [0, 2]


def test_aborted_transactions_are_left_out(tmp_path: Path) -> None:
    """
    Batches of aborted transactions are left out where files list them, and no others of that producer.
    """
    by = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    found = [batch(0), batch(1, **by), batch(2), batch(3, **by), marker(4, 7), batch(5, **by), marker(6, 7), batch(7)]
    segment(tmp_path / str(ORDERS), 0, found)
    entry = b"\0\0" + b"".join(number.to_bytes(8, "big") for number in (7, 1, 4, 5))
    (tmp_path / str(ORDERS) / f"{0:020d}{ABORTED_INDEX}").write_bytes(entry)
    clean(tmp_path)
    assert offsets_in(logs(tmp_path, committed_only=True), 0, 8) == [0, 2, 5, 7]
    assert offsets_in(logs(tmp_path, committed_only=True), 3, 8) == [5, 7]
    assert offsets_in(logs(tmp_path, committed_only=True), 5, 8) == [5, 7]
    assert offsets_in(logs(tmp_path), 0, 8) == [0, 1, 2, 3, 5, 7]


def test_a_stopped_gateway_leaves_a_complete_log(orders: Path) -> None:
    """
    The log is good to its end; what follows is no whole batch.
    """
    with (orders / "00000000000000000020.log").open("ab") as file:
        file.write(batch(30)[:-1])
    assert clean(orders.parent).extents([ORDERS]) == {ORDERS: Extent(0, 30)}


def test_only_synced_records_of_a_running_gateway_are_read(orders: Path) -> None:
    """
    Without the marker of a clean stop, the log is read as far as it was synced.
    """
    found = synced(orders.parent, 14)
    assert found.extents([ORDERS]) == {ORDERS: Extent(0, 14)}
    (orders.parent / SETTLED).write_bytes(encode_offsets({PLACE: 26}))
    assert found.extents([ORDERS]) == {ORDERS: Extent(0, 14)}, "nobody says on which boot of the machine that was"
    (orders.parent / START).write_bytes(Start(3, "another boot").encoded())
    assert found.extents([ORDERS]) == {ORDERS: Extent(0, 14)}
    (orders.parent / START).write_bytes(Start(3, data_folder.this_boot()).encoded())
    assert found.extents([ORDERS]) == {ORDERS: Extent(0, 26)}


def test_uncommitted_records_of_kafka_are_not_read(orders: Path) -> None:
    """
    Kafka stores its high watermarks, and nothing behind them is read.
    """
    (orders.parent / "replication-offset-checkpoint").write_bytes(encode_offsets({PLACE: 11}))
    assert clean(orders.parent).extents([ORDERS]) == {ORDERS: Extent(0, 11)}


def test_a_log_begins_at_its_log_start(orders: Path) -> None:
    """
    Records deleted by DeleteRecords are not read, though their bytes may exist.
    """
    (orders.parent / LOG_STARTS).write_bytes(encode_offsets({PLACE: 13}))
    assert clean(orders.parent).extents([ORDERS]) == {ORDERS: Extent(13, 30)}


def test_transactions_need_a_server(orders: Path) -> None:
    """
    Files alone do not show which transactions have ended.
    """
    clean(orders.parent)
    with pytest.raises(Unreadable, match=r"name their server with kafka\.bootstrap\.servers"):
        logs(orders.parent, committed_only=True).extents([ORDERS])


class ScriptedServers:
    """
    Servers that say where a log begins and ends, and to which cluster and topic it belongs.
    """

    def __init__(self, cluster_id: str = "here", topic_id: Uuid = TOPIC, extent: Extent = SOME) -> None:
        self.cluster = SameTopics(Servers(()))
        self.cluster.cluster_id = cluster_id
        self.cluster.topic_ids[ORDERS.topic] = topic_id
        self._extent = extent

    def extents(self, wanted: Collection[TopicPartition]) -> dict[TopicPartition, Extent]:
        return dict.fromkeys(wanted, self._extent)


def scripted_extents(folder: Path, told: ScriptedServers) -> dict[TopicPartition, Extent]:
    """
    The readable range of a folder according to these servers.
    """
    servers: Any = told
    return FolderLogs(folder, LocalFiles(), servers, committed_only=False).extents([ORDERS])


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_server_decides_how_far(orders: Path, end: str) -> None:
    """
    If a server of the folder is named, its range counts; Kafka's file with the cluster id has no final newline.
    """
    (orders.parent / META).write_text("version=1\ncluster.id=here\n")
    (orders / METADATA).write_text(f"version: 0\ntopic_id: {TOPIC}{end}")
    assert scripted_extents(orders.parent, ScriptedServers()) == {ORDERS: SOME}


def test_a_server_of_another_folder(orders: Path) -> None:
    """
    The folder of another cluster, of an earlier topic, or without a partition that is not empty is refused.
    """
    with pytest.raises(Unreadable, match=r"it has no meta\.properties"):
        scripted_extents(orders.parent, ScriptedServers())
    (orders.parent / META).write_text("version=1\ncluster.id=here\n")
    (orders / METADATA).write_text(f"version: 0\ntopic_id: {TOPIC}\n")
    with pytest.raises(Unreadable, match="belongs to cluster here, but the given server to cluster there"):
        scripted_extents(orders.parent, ScriptedServers(cluster_id="there"))
    with pytest.raises(TopicGone, match="belongs to an earlier topic of that name"):
        scripted_extents(orders.parent, ScriptedServers(topic_id=Uuid(bytes(15) + b"\2")))
    (orders / METADATA).unlink()
    with pytest.raises(Unreadable, match="does its server store it elsewhere"):
        scripted_extents(orders.parent, ScriptedServers())
    assert scripted_extents(orders.parent, ScriptedServers(extent=Extent(0, 0))) == {ORDERS: Extent(0, 0)}


def test_topics_are_folders(orders: Path) -> None:
    """
    Folders are named after partitions; those of deleted or stray partitions do not count, nor do internal topics
    unless named.
    """
    for name in (
        "orders-1",
        "my-topic-0",
        "orders-2.x-delete",
        "orders-7.0-stray",
        "__state-3",
        "lost+found",
    ):
        (orders.parent / name).mkdir()
    found = clean(orders.parent)
    assert found.partitions() == {
        "my-topic": [TopicPartition("my-topic", 0)],
        "orders": [ORDERS, TopicPartition("orders", 1)],
    }
    assert found.partitions(["__state", "nope"]) == {"__state": [TopicPartition("__state", 3)]}


def test_an_unreadable_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="nowhere cannot be read: No such file"):
        logs(tmp_path / "nowhere").partitions()


@pytest.mark.parametrize("indexed", [True, False])
def test_times(tmp_path: Path, indexed: bool) -> None:
    """
    The first record of a time or later is found with indexes and without; timestamps are ten times the offsets.
    """
    folder = tmp_path / str(ORDERS)
    for base in (0, 100, 200):
        segment(folder, base, [batch(base + at, 10) for at in range(0, 100, 10)], indexed=indexed)
    found = clean(tmp_path)
    for time, offset in ((0, 0), (5, 1), (990, 99), (991, 100), (1_555, 156), (2_990, 299)):
        assert found.at_time([ORDERS], time) == {ORDERS: OffsetAndTimestamp(offset, offset * 10)}
    assert found.at_time([ORDERS], 2_991) == {ORDERS: OffsetAndTimestamp(None, None)}


def test_times_outside_the_readable_range(orders: Path) -> None:
    """
    A record before the start of the log or behind its synced part is not found.
    """
    (orders.parent / LOG_STARTS).write_bytes(encode_offsets({PLACE: 13}))
    found = synced(orders.parent, 16)
    assert found.at_time([ORDERS], 0) == {ORDERS: OffsetAndTimestamp(13, 130)}
    assert found.at_time([ORDERS], 151) == {ORDERS: OffsetAndTimestamp(None, None)}
