"""
Logs read from their files: which offsets come out, how far it is safe to read, and what is said of what is not there.
"""

from collections.abc import Collection
from pathlib import Path, PurePath
from typing import Any

import pytest

from kgateway.broker.log import folder as data_folder
from kgateway.broker.log.checkpoints import SETTLED, written
from kgateway.broker.log.folder_meta import META, START
from kgateway.broker.log.index import OFFSETS
from kgateway.broker.log.kept_offsets import LOG_STARTS
from kgateway.broker.log.partition_folder import METADATA
from kgateway.broker.log.segment_indexes import INDEX
from kgateway.broker.log.start_file import Start
from kgateway.client.offsets import Extent, Found, Partition
from kgateway.records.compression import Codec
from kgateway.spark import segments as segments_module
from kgateway.spark.failures import DataLost, TopicGone, Unreadable
from kgateway.spark.files import LocalFile, LocalFiles
from kgateway.spark.folder import FolderLogs
from kgateway.spark.leaders import Leaders
from kgateway.spark.ranges import OffsetRange
from kgateway.spark.segments import Segments
from kgateway.wire.uuids import Uuid
from tests.spark.folders import ORDERS, batch, clean, logs, marker, offsets_in, segment, synced

TOPIC = Uuid(range(16))
SOME = Extent(2, 13)
PLACE = (ORDERS.topic, ORDERS.index)
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
def test_each_offset_comes_once(orders: Path, start: int, end: int) -> None:
    """
    Of any range all offsets come, in order, over the borders of batches and segments, of all codecs.
    """
    assert offsets_in(clean(orders.parent), start, end) == list(range(start, end))


def test_indexes_are_not_needed(orders: Path) -> None:
    """
    Where an index is missing or wrong, the segment is looked through.
    """
    for path in orders.glob("*.index"):
        path.unlink()
    assert offsets_in(clean(orders.parent), 17, 23) == list(range(17, 23))
    third = len(batch(10, 2)) + len(batch(12, 2, codec=Codec.GZIP))
    for position in (7, third):
        wrong = OFFSETS.pack(0, position)
        (orders / "00000000000000000010.index").write_bytes(wrong)
        assert offsets_in(clean(orders.parent), 11, 23) == list(range(11, 23))


def test_an_index_has_room_while_it_is_written_to(tmp_path: Path) -> None:
    """
    Zeroes behind the entries of Kafka's indexes are no entries.
    """
    segment(tmp_path / str(ORDERS), 0, [batch(at) for at in range(50)], room=400)
    found = clean(tmp_path)
    assert offsets_in(found, 40, 45) == list(range(40, 45))
    assert len(Segments(LocalFiles(), tmp_path / str(ORDERS)).index(0, INDEX, OFFSETS)) == 49
    assert found.at_time([ORDERS], 333) == {ORDERS: Found(34, 340)}


def test_batches_larger_than_a_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    However little is read of a file at a time, batches come whole.
    """
    monkeypatch.setattr(segments_module, "WINDOW_BYTES", 100)
    segment(tmp_path / str(ORDERS), 0, [batch(at, size=1 + at * 20) for at in range(20)], indexed=False)
    assert offsets_in(clean(tmp_path), 0, 20) == list(range(20))


def test_what_compaction_has_removed_is_no_loss(tmp_path: Path) -> None:
    """
    Offsets that are missing between batches, between segments, or before the end of the range are passed over.
    """
    folder = tmp_path / str(ORDERS)
    segment(folder, 0, [batch(2, 2), batch(8)])
    segment(folder, 20, [batch(25), batch(29)])
    found = clean(tmp_path)
    assert offsets_in(found, 0, 30) == [2, 3, 8, 25, 29]
    assert offsets_in(found, 9, 15) == []
    assert offsets_in(found, 9, 24) == []
    assert offsets_in(found, 26, 28) == []


def test_retention_is_told_of(orders: Path) -> None:
    """
    Where the first of the offsets are not there any more, the query fails, or goes on with those that are.
    """
    found = clean(orders.parent)
    (orders / "00000000000000000000.log").unlink()
    with pytest.raises(DataLost, match=r"orders-0 begins with offset 10 now, and offsets 5 to 9 were to be read"):
        offsets_in(found, 5, 15)
    assert offsets_in(found, 5, 15, fail=False) == list(range(10, 15))
    with pytest.raises(DataLost, match=r"offsets 5 to 7 were"):
        offsets_in(found, 5, 8)
    assert offsets_in(found, 5, 8, fail=False) == []


def test_a_log_that_ends_too_early_is_told_of(orders: Path) -> None:
    """
    Offsets behind the end that were planned to be read are lost.
    """
    found = clean(orders.parent)
    with pytest.raises(DataLost, match=r"orders-0 ends at offset 30, and orders-0, offsets 25 to 39 were to be read"):
        offsets_in(found, 25, 40)
    assert offsets_in(found, 25, 40, fail=False) == list(range(25, 30))


def test_a_segment_that_goes_while_it_is_read(orders: Path) -> None:
    """
    What is open is read to its end; that the next one is gone is found when it is its turn.
    """
    found = logs(orders.parent)
    windows = found.windows(OffsetRange(ORDERS, 0, 30))
    assert next(windows).next_offset == 10
    (orders / "00000000000000000000.log").unlink()
    assert [window.next_offset for window in windows] == [20, 30]


def test_a_segment_that_goes_just_before_it_is_read(orders: Path) -> None:
    """
    A file whose name was there, and which is not any more, was let go with all before it.
    """

    class Going(LocalFiles):
        def open(self, path: PurePath) -> LocalFile:
            if path.name == "00000000000000000010.log":
                for gone in orders.glob("*.log"):
                    if gone.name <= path.name:
                        gone.unlink()
            return super().open(path)

    found = FolderLogs(orders.parent, Going(), committed_only=False)
    with pytest.raises(DataLost, match="orders-0 begins with offset 20 now, and offsets 10 to 19 were to be read"):
        offsets_in(found, 5, 25)


def test_a_topic_that_goes_while_it_is_read(orders: Path) -> None:
    """
    A folder that is not there any more is that of a topic which was deleted.
    """
    found = clean(orders.parent)
    orders.rename(orders.with_name("orders.x-delete"))
    with pytest.raises(TopicGone, match=r"orders-0 is not in .* any more"):
        offsets_in(found, 0, 5)
    assert offsets_in(found, 0, 5, fail=False) == []


def test_damage_is_told_with_its_place(orders: Path) -> None:
    """
    A batch that is not what was written stops the query, with the file and the place in it.
    """
    path = orders / "00000000000000000010.log"
    data = bytearray(path.read_bytes())
    second = len(batch(10, 2))
    data[second + 16] = 7  # its magic
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
    A batch whose offsets were there already is not given out again.
    """
    segment(tmp_path / str(ORDERS), 0, [batch(0, 5), batch(3, 2)])
    with pytest.raises(Unreadable, match="offset 3 stands behind offset 4"):
        offsets_in(clean(tmp_path), 0, 7)


def test_markers_are_no_records(tmp_path: Path) -> None:
    """
    Control batches take offsets, and have no rows.
    """
    segment(tmp_path / str(ORDERS), 0, [batch(0), marker(1, 7), batch(2)])
    assert offsets_in(clean(tmp_path), 0, 3) == [0, 2]


def test_aborted_transactions_are_left_out(tmp_path: Path) -> None:
    """
    Where files tell of transactions that were aborted, their batches are passed over, and no others of that producer.
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


def test_after_a_stop_all_is_there(orders: Path) -> None:
    """
    A gateway that was stopped has left a log that is good to its end; what is behind it is not a whole batch.
    """
    with (orders / "00000000000000000020.log").open("ab") as file:
        file.write(batch(30)[:-1])
    assert clean(orders.parent).extents([ORDERS]) == {ORDERS: Extent(0, 30)}


def test_while_a_gateway_runs_only_what_is_sure_is_there(orders: Path) -> None:
    """
    Without the marker of a stop, the log is read as far as it was synced.
    """
    found = synced(orders.parent, 14)
    assert found.extents([ORDERS]) == {ORDERS: Extent(0, 14)}
    (orders.parent / SETTLED).write_bytes(written({PLACE: 26}))
    assert found.extents([ORDERS]) == {ORDERS: Extent(0, 14)}, "nobody says on which boot of the machine that was"
    (orders.parent / START).write_bytes(Start(3, "another boot").written)
    assert found.extents([ORDERS]) == {ORDERS: Extent(0, 14)}
    (orders.parent / START).write_bytes(Start(3, data_folder.this_boot()).written)
    assert found.extents([ORDERS]) == {ORDERS: Extent(0, 26)}


def test_what_kafka_has_not_committed_is_not_there(orders: Path) -> None:
    """
    Kafka notes its high watermarks, and nothing behind them is read.
    """
    (orders.parent / "replication-offset-checkpoint").write_bytes(written({PLACE: 11}))
    assert clean(orders.parent).extents([ORDERS]) == {ORDERS: Extent(0, 11)}


def test_a_log_begins_where_it_was_cut(orders: Path) -> None:
    """
    What DeleteRecords has let go is not there, though its bytes may be.
    """
    (orders.parent / LOG_STARTS).write_bytes(written({PLACE: 13}))
    assert clean(orders.parent).extents([ORDERS]) == {ORDERS: Extent(13, 30)}


def test_transactions_need_a_server(orders: Path) -> None:
    """
    Files alone do not tell which transactions have ended.
    """
    clean(orders.parent)
    with pytest.raises(Unreadable, match=r"name their server by kafka\.bootstrap\.servers"):
        logs(orders.parent, committed_only=True).extents([ORDERS])


class Told:
    """
    Servers that say where a log begins and ends, and of which cluster and topic it is.
    """

    def __init__(self, cluster_id: str = "here", topic_id: Uuid = TOPIC, extent: Extent = SOME) -> None:
        self.leaders = Leaders()
        self.leaders.cluster_id = cluster_id
        self.leaders.topic_ids[ORDERS.topic] = topic_id
        self._extent = extent

    def extents(self, wanted: Collection[Partition]) -> dict[Partition, Extent]:
        return dict.fromkeys(wanted, self._extent)


def extents_told(folder: Path, told: Told) -> dict[Partition, Extent]:
    """
    What may be read of a folder of which these servers tell.
    """
    servers: Any = told
    return FolderLogs(folder, LocalFiles(), servers, committed_only=False).extents([ORDERS])


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_server_says_how_far(orders: Path, end: str) -> None:
    """
    Where a server of the folder is named, it has the say; Kafka ends the file with the id without a newline.
    """
    (orders.parent / META).write_text("version=1\ncluster.id=here\n")
    (orders / METADATA).write_text(f"version: 0\ntopic_id: {TOPIC}{end}")
    assert extents_told(orders.parent, Told()) == {ORDERS: SOME}


def test_a_server_of_another_folder(orders: Path) -> None:
    """
    A folder of another cluster is refused, one of an earlier topic, and one without the partition unless that is empty.
    """
    with pytest.raises(Unreadable, match=r"it has no meta\.properties"):
        extents_told(orders.parent, Told())
    (orders.parent / META).write_text("version=1\ncluster.id=here\n")
    (orders / METADATA).write_text(f"version: 0\ntopic_id: {TOPIC}\n")
    with pytest.raises(Unreadable, match="is of cluster here, and the server that is named of cluster there"):
        extents_told(orders.parent, Told(cluster_id="there"))
    with pytest.raises(TopicGone, match="is of an earlier topic of that name"):
        extents_told(orders.parent, Told(topic_id=Uuid(bytes(15) + b"\2")))
    (orders / METADATA).unlink()
    with pytest.raises(Unreadable, match="does its server keep it elsewhere"):
        extents_told(orders.parent, Told())
    assert extents_told(orders.parent, Told(extent=Extent(0, 0))) == {ORDERS: Extent(0, 0)}


def test_topics_are_folders(orders: Path) -> None:
    """
    Partitions are found by the names of their folders; what was deleted or put aside is none, nor are internal topics
    where none is named.
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
    assert found.partitions() == {"my-topic": [Partition("my-topic", 0)], "orders": [ORDERS, Partition("orders", 1)]}
    assert found.partitions(["__state", "nope"]) == {"__state": [Partition("__state", 3)]}


def test_no_folder(tmp_path: Path) -> None:
    """
    A folder that cannot be read is named.
    """
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
        assert found.at_time([ORDERS], time) == {ORDERS: Found(offset, offset * 10)}
    assert found.at_time([ORDERS], 2_991) == {ORDERS: Found(None, None)}


def test_times_of_what_may_be_read(orders: Path) -> None:
    """
    A record that is before the start of the log or behind what is sure is not found.
    """
    (orders.parent / LOG_STARTS).write_bytes(written({PLACE: 13}))
    found = synced(orders.parent, 16)
    assert found.at_time([ORDERS], 0) == {ORDERS: Found(13, 130)}
    assert found.at_time([ORDERS], 151) == {ORDERS: Found(None, None)}
