"""
SeaweedMQ's log files behind HTTP: which offsets readers find in every format of messages, and what errors say of files
that vanish, change or are damaged during a read.
"""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from struct import pack

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kgateway.broker.seaweed.protos.filer_pb2 import LogEntry
from kgateway.broker.seaweed.protos.messaging_pb2 import BrokerPartitionAssignment, ConfigureTopicResponse
from kgateway.broker.seaweed.protos.schema_pb2 import Partition as RingPartition
from kgateway.broker.seaweedmq.files import log_files
from kgateway.broker.seaweedmq.formats.registry import FORMAT, FORMATS
from kgateway.broker.seaweedmq.layout.topic_conf import topic_conf
from kgateway.broker.seaweedmq.layout.topic_file import Generation, GenerationPartition, TopicFile
from kgateway.broker.seaweedmq.layout.topic_paths import SECOND_NS, TOPIC_CONF, log_name, partition_folder, ring_range
from kgateway.broker.seaweedmq.topics.catalog import TOPIC_FILE
from kgateway.client.offsets import Extent, OffsetAndTimestamp
from kgateway.records.batch import read_batch
from kgateway.spark.errors import DataLost, TopicGone, Unreadable
from kgateway.spark.http.client import Access, url_path
from kgateway.spark.logs.offset_range import OffsetRange
from kgateway.spark.options import READ, Options
from kgateway.spark.query import location_of
from kgateway.spark.seaweed import logs as partition_files
from kgateway.spark.seaweed.logs import FilerLogs
from kgateway.wire.uuids import Uuid
from tests.spark.folders import ORDERS, batch, offsets_in
from tests.spark.remote_server import Handler, Served, serving

NOON_S = 1_800_000_000
SOON = Access(answer_s=5, patience_s=0.3)
ALL = list(range(30))


class Written:
    """
    The files of a topic of one partition, written as a broker does: one per second.
    """

    def __init__(self, root: Path, form: str) -> None:
        self.form = FORMATS[form]
        self.topic = root / "topics" / "kafka" / ORDERS.topic
        self.topic.mkdir(parents=True)
        part, self.root, self._message = ring_range(0, 1), root, 0
        self.folder = root / partition_folder(ORDERS.topic, NOON_S * SECOND_NS, part).strip("/")
        self.folder.mkdir(parents=True)
        ring = RingPartition(ring_size=2520, range_start=0, range_stop=2520, unix_time_ns=NOON_S * SECOND_NS)
        conf = ConfigureTopicResponse(broker_partition_assignments=[BrokerPartitionAssignment(partition=ring)])
        (self.topic / TOPIC_CONF).write_bytes(topic_conf(conf))
        generation = Generation(NOON_S * SECOND_NS, (GenerationPartition(part, 0, 0),))
        kept = TopicFile(Uuid(range(16)), (generation,), {FORMAT: form})
        (self.topic / TOPIC_FILE).write_bytes(kept.encoded())

    def write(self, number: int, *found: bytes, message: int | None = None) -> Path:
        """
        Write a file of these batches, or append them to a file.
        """
        self._message = self._message if message is None else message
        path = self.folder / log_name((NOON_S + number) * SECOND_NS)
        with path.open("ab") as file:
            for data in found:
                for each in self.form.encode(read_batch(data), read_batch(data).header.base_offset, 0):
                    file.write(self._entry(number, each.key, bytes(each.value)))
        return path

    def _entry(self, number: int, key: bytes, value: bytes) -> bytes:
        time = (NOON_S + number) * SECOND_NS + self._message
        data = LogEntry(ts_ns=time, key=key, data=value, offset=self._message).SerializeToString()
        self._message += 1
        return pack(">I", len(data)) + data

    def begin_at(self, offset: int) -> None:
        """
        Delete everything before this offset.
        """
        beside = self.topic / ".kgateway" / "0"
        beside.mkdir(parents=True)
        (beside / "log-start-offset").write_text(f"{offset}\n")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as server:
        yield server


@pytest.fixture(params=FORMATS)
def orders(request: pytest.FixtureRequest, served: Served) -> Written:
    """
    A topic of each format with offsets 0 to 29 in three files.
    """
    return thirty(Written(served.root, request.param))


@pytest.fixture
def plain(served: Served) -> Written:
    """
    The topic in one format.
    """
    return thirty(Written(served.root, "plain"))


def thirty(written: Written) -> Written:
    for number in range(3):
        written.write(number, *[batch(number * 10 + at, 2) for at in range(0, 10, 2)])
    return written


def logs(server: Served) -> FilerLogs:
    found = FilerLogs(url_path(server.url), SOON)
    server.readers.callback(found.close)
    return found


def when_asked(server: Served, among: str, time: int, then: Callable[[], object]) -> None:
    """
    Run a function just before the response to the n-th request for such a file.
    """
    seen = [0]

    def fault(handler: Handler) -> bool:
        if among in handler.path:
            seen[0] += 1
            if seen[0] == time:
                then()
        return False

    server.fault = fault


@pytest.mark.parametrize("range_bytes", [1, 150, 1 << 20])
@pytest.mark.parametrize(("start", "end"), [(0, 30), (3, 4), (9, 11), (5, 25), (20, 30), (29, 30), (12, 12)])
def test_each_offset_is_read_once(
    orders: Written, served: Served, monkeypatch: pytest.MonkeyPatch, start: int, end: int, range_bytes: int
) -> None:
    """
    Any range has all its offsets in order, across messages and files, however little is read at a time.
    """
    monkeypatch.setattr(log_files, "_RECORDS_BYTES", range_bytes)
    monkeypatch.setattr(log_files, "_BATCHES_BYTES", range_bytes)
    assert offsets_in(logs(served), start, end) == ALL[start:end]
    assert logs(served).extents([ORDERS]) == {ORDERS: Extent(0, 30)}


def test_repeated_messages(served: Served) -> None:
    """
    Messages that a gateway publishes again after a crash have their records once.
    """
    for form in ("record", "batch"):
        written = Written(served.root / form, form)
        written.write(0, batch(0, 2), batch(2, 2), batch(4, 2))
        written.write(1, batch(2, 2), batch(4, 2), batch(6, 2))
        found = FilerLogs(url_path(f"{served.url}/{form}"), SOON)
        served.readers.callback(found.close)
        assert offsets_in(found, 0, 8) == list(range(8))
        assert offsets_in(found, 0, 5) + offsets_in(found, 5, 8) == list(range(8))


def test_messages_of_a_file_are_counted(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    As a gateway counts them: from the number of the first one, however little is read at a time.
    """
    monkeypatch.setattr(log_files, "_RECORDS_BYTES", 1)
    written = Written(served.root, "plain")
    for place, number in enumerate([1, 0, 3, 2]):
        written.write(0, batch(1 + place), message=number)
    assert offsets_in(logs(served), 1, 5) == [1, 2, 3, 4]


def test_batches_that_overlap(served: Served) -> None:
    """
    Offsets that were there before are skipped in batches that overlap.
    """
    written = Written(served.root, "batch")
    written.write(0, batch(0, 2), batch(2, 2))
    written.write(1, batch(2, 4), batch(6, 2))
    assert offsets_in(logs(served), 0, 8) == list(range(8))
    assert offsets_in(logs(served), 5, 7) == [5, 6]


def test_logs_begin_at_their_log_start(orders: Written, served: Served) -> None:
    """
    A log begins at its log start offset, not with its first file.
    """
    orders.begin_at(13)
    assert logs(served).extents([ORDERS]) == {ORDERS: Extent(13, 30)}


def test_deleted_records_that_were_never_in_a_file(orders: Written, served: Served) -> None:
    """
    Where messages have offsets, the log continues behind the deleted ones; otherwise offsets are those of messages.
    """
    orders.begin_at(40)
    end = 40 if orders.form.numbered else 30
    assert logs(served).extents([ORDERS]) == {ORDERS: Extent(end, end)}


def test_few_files_are_read(served: Served) -> None:
    """
    The file with an offset is found by bisection.
    """
    written = Written(served.root, "record")
    for number in range(64):
        written.write(number, batch(number * 2, 2))
    assert offsets_in(logs(served), 99, 101) == [99, 100]
    assert len({each.path for each in served.told if "Range" in each.headers}) <= 10


def test_files_deleted_before_a_task_began(orders: Written, served: Served) -> None:
    """
    The query fails, or continues with what exists.
    """
    orders.write(0).unlink()
    words = r"orders-0 begins with offset 10 now, but offsets 5 to 9 were requested"
    with pytest.raises(DataLost, match=words):
        offsets_in(logs(served), 5, 25)
    assert offsets_in(logs(served), 5, 25, fail=False) == list(range(10, 25))


def test_a_file_deleted_during_a_read(orders: Written, served: Served) -> None:
    """
    The missing file is noticed, although the next one exists.
    """
    gone = orders.write(1)
    when_asked(served, gone.name, 2, gone.unlink)
    words = r"begins with offset 20 now, but offsets 10 to 19 were requested"
    with pytest.raises(DataLost, match=words):
        offsets_in(logs(served), 0, 30)
    assert not gone.exists()
    orders.write(3, batch(30, 2))
    last = orders.write(3)
    when_asked(served, last.name, 1, last.unlink)
    with pytest.raises(DataLost, match=r"orders-0 ends at offset 30, but orders-0, offsets 20 to 31 were requested"):
        offsets_in(logs(served), 20, 32)


def test_all_files_vanish(orders: Written, served: Served) -> None:
    """
    They may vanish with their topic or without.
    """
    for number in range(3):
        orders.write(number).unlink()
    assert logs(served).extents([ORDERS]) == {ORDERS: Extent(0, 0)}
    with pytest.raises(DataLost, match="ends at offset 3"):
        offsets_in(logs(served), 3, 30)
    (orders.topic / TOPIC_CONF).unlink()
    assert logs(served).extents([ORDERS]) == {}
    with pytest.raises(TopicGone, match=f"orders-0 is not in the filer {served.url} any more"):
        offsets_in(logs(served), 3, 30)


def test_files_that_grow(orders: Written, served: Served) -> None:
    """
    A file is read as far as planned.
    """
    when_asked(served, orders.write(2).name, 1, lambda: orders.write(2, batch(30, 2)))
    assert offsets_in(logs(served), 0, 30) == ALL
    assert logs(served).extents([ORDERS]) == {ORDERS: Extent(0, 32)}


def test_a_truncated_file(orders: Written, served: Served) -> None:
    """
    A file that shrank is listed again, and its records are not repeated.
    """
    path = orders.write(1)
    whole = path.read_bytes()
    when_asked(served, path.name, 2, lambda: path.write_bytes(whole[:5]))
    when_asked_again = served.fault

    def fault(handler: Handler) -> bool:
        if "limit=" in handler.path:
            path.write_bytes(whole)
        return when_asked_again(handler)

    served.fault = fault
    assert offsets_in(logs(served), 0, 30) == ALL


def test_a_file_that_never_matches_its_listing(orders: Written, served: Served) -> None:
    """
    The number of attempts is limited.
    """
    name, looks = orders.write(1).name, []

    def fault(handler: Handler) -> bool:
        if name in handler.path:
            looks.append(handler.path)
            handler.answer(416)
            return True
        return False

    served.fault = fault
    with pytest.raises(Unreadable, match=rf"{name}: it ends before byte .*: it changes with each attempt"):
        offsets_in(logs(served), 0, 30)
    assert len(looks) == partition_files._LOOKS


@pytest.mark.parametrize("what", ["length", "time", "cut"])
def test_damage_is_reported_with_its_place(plain: Written, served: Served, what: str) -> None:
    """
    The error has the file's URL and the position.
    """
    path = plain.write(1)
    data = path.read_bytes()
    size = 4 + int.from_bytes(data[:4])
    timeless = data[size : size + 4] + b"\x10\1" * (size // 2)
    path.write_bytes(data[:size] + {"length": bytes(4) + data[size + 4 :], "time": timeless, "cut": b"\0"}[what])
    place = size + 4 if what == "time" else size
    with pytest.raises(Unreadable, match=rf"{served.url}/topics/.*/{path.name} is damaged at byte {place}: "):
        offsets_in(logs(served), 0, 30)


def test_a_damaged_batch(served: Served) -> None:
    """
    The error has the number of the message.
    """
    written = thirty(Written(served.root, "batch"))
    path = written.write(3, batch(30, 1))
    path.write_bytes(path.read_bytes()[:-3] + b"\xff" + path.read_bytes()[-2:])
    with pytest.raises(
        Unreadable, match=rf"{path.name} is damaged at message 15: the value is not a Kafka record batch"
    ):
        offsets_in(logs(served), 20, 31)


def test_messages_of_another_format(served: Served) -> None:
    """
    Messages of other formats are skipped, as by a gateway, anywhere in files and as whole files. Offsets missing
    beside them are noticed.
    """
    written = Written(served.root, "batch")
    for number, form in enumerate(("plain", "batch", "plain", "batch", "plain")):
        written.form = FORMATS[form]
        written.write(number, batch(number // 2 * 5, 5))
    path = written.write(3, batch(0, 1))
    written.form = FORMATS["batch"]
    written.write(3, batch(10, 5))
    assert logs(served).extents([ORDERS]) == {ORDERS: Extent(0, 15)}
    assert offsets_in(logs(served), 0, 15) == list(range(15))
    assert offsets_in(logs(served), 7, 12) == [7, 8, 9, 10, 11]
    path.with_name(log_name((NOON_S + 1) * SECOND_NS)).unlink()
    with pytest.raises(DataLost, match=r"orders-0 begins with offset 5 now, but offsets 2 to 4 were requested"):
        offsets_in(logs(served), 2, 12)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        (TOPIC_CONF, b"{", r"topic.conf is damaged at byte 0: "),
        (TOPIC_FILE, b"{}", r"topic.conf is damaged at byte 0: KeyError"),
        (TOPIC_FILE, None, r"this gateway does not know the message format other"),
    ],
)
def test_topics_of_unknown_format(plain: Written, served: Served, name: str, data: bytes | None, said: str) -> None:
    """
    The error names the topic.
    """
    path = plain.topic / name
    if data is None:
        told = json.loads(path.read_bytes())
        data = json.dumps(told | {"configs": {FORMAT: "other"}}).encode()
    path.write_bytes(data)
    with pytest.raises(Unreadable, match=said):
        logs(served).partitions([ORDERS.topic])


def test_times(orders: Written, served: Served) -> None:
    """
    A timestamp finds the first record that is not earlier, by its producer's time or by that of its publication.
    """
    found = logs(served)
    if orders.form.numbered:
        assert found.at_time([ORDERS], 155) == {ORDERS: OffsetAndTimestamp(16, 160)}
        assert found.at_time([ORDERS], 291) == {ORDERS: OffsetAndTimestamp(None, None)}
        return
    begin = (NOON_S + 2) * 1_000
    assert found.at_time([ORDERS], begin) == {ORDERS: OffsetAndTimestamp(20, begin)}
    assert found.at_time([ORDERS], begin + 1) == {ORDERS: OffsetAndTimestamp(None, None)}
    assert found.at_time([ORDERS], 0) == {ORDERS: OffsetAndTimestamp(0, NOON_S * 1_000)}
    first = orders.write(0, batch(30, 100, size=2_000))
    served.told.clear()
    assert found.at_time([ORDERS], begin) == {ORDERS: OffsetAndTimestamp(20, begin)}
    assert {each.headers["Range"] for each in served.told if each.path.endswith(f"/{first.name}")} == {
        "bytes=0-65535"  # one request
    }


def test_times_of_producers(served: Served) -> None:
    """
    Producers' times may be later than those of all files, so names of files say nothing about them.
    """
    written, first = Written(served.root, "record"), NOON_S * 1_000
    for number in range(4):
        written.write(number, batch(first + number * 10, 2))
    assert logs(served).at_time([ORDERS], first * 2) == {ORDERS: OffsetAndTimestamp(first, first * 10)}


def parquet(written: Written, name: str, **columns: list[object]) -> Path:
    """
    A Parquet file beside the log files.
    """
    path = written.folder / f"{name}.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=4)
    return path


def columns(offsets: list[int | None]) -> dict[str, list[object]]:
    """
    The columns that SeaweedFS makes of records.
    """
    values = [b"" if at is None else b"%d\0" % at for at in offsets]
    times = ["LogAppendTime"] * len(offsets)
    numbers = [*offsets]
    return {
        "_kafka_offset": [*numbers],
        "_kafka_timestamp": [*numbers],
        "_kafka_timestamp_type": [*times],
        "key": [*values],
        "value": [*values],
        "_kafka_headers": [b""] * len(offsets),
    }


def from_parquet(server: Served) -> FilerLogs:
    found = FilerLogs(url_path(server.url), SOON, from_parquet=True)
    server.readers.callback(found.close)
    return found


def test_parquet_beside_log_files(served: Served) -> None:
    """
    Offsets in Parquet are read once and in order across files and row groups, without the missing ones; messages of
    others, which have no offset, are left out.
    """
    written = thirty(Written(served.root, "record"))
    assert from_parquet(served).extents([ORDERS]) == {ORDERS: Extent(0, 0)}
    parquet(written, "2027-01-15-08-00-00", **columns([3, 4, 5, None, 7, 8, 12]))
    parquet(written, "2027-01-15-08-00-05", **columns([8, 12, 13, 20]))
    found = from_parquet(served)
    assert found.extents([ORDERS]) == {ORDERS: Extent(3, 21)}
    assert offsets_in(found, 3, 21) == [3, 4, 5, 7, 8, 12, 13, 20]
    assert offsets_in(found, 5, 13) + offsets_in(found, 13, 19) == [5, 7, 8, 12, 13]
    assert found.at_time([ORDERS], 9) == {ORDERS: OffsetAndTimestamp(12, 12)}
    with pytest.raises(DataLost, match=r"orders-0 ends at offset 21 now, but offsets 21 to 29 were requested"):
        offsets_in(found, 3, 30)


def test_parquet_of_others(served: Served) -> None:
    """
    The error names a file that is damaged, or has other columns.
    """
    written = Written(served.root, "record")
    path = parquet(written, "x", who=[1, 2])
    with pytest.raises(Unreadable, match=rf"{served.url}/.*/x.parquet has no column _kafka_offset"):
        from_parquet(served).extents([ORDERS])
    parquet(written, "x", **columns([3]) | {"_kafka_headers": [b"h: 1"]})
    with pytest.raises(Unreadable, match=rf"{served.url}/.*/x.parquet is damaged: 'h: 1' does not describe headers"):
        offsets_in(from_parquet(served), 3, 4)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(Unreadable, match=rf"{served.url}/.*/x.parquet is damaged: Parquet magic bytes not found"):
        from_parquet(served).extents([ORDERS])


def test_a_server_without_topics(served: Served) -> None:
    """
    Such a server may be no filer.
    """
    with pytest.raises(
        Unreadable, match=rf"no /topics/kafka in the filer {served.url}: no topic was created yet, or it is"
    ):
        logs(served).partitions()


def test_a_location_is_sent_to_tasks(plain: Written, served: Served) -> None:
    """
    It is sent without a connection, and tasks need no reactor.
    """
    place = location_of(Options({"kgateway.filer": served.url}, READ))
    sent = pickle.dumps(place)
    with closing(pickle.loads(sent).open(planning=False)) as found:
        assert offsets_in(found, 0, 30) == ALL
    code = (
        "import pickle, sys;"
        "from kgateway.spark.logs.offset_range import OffsetRange; from kgateway.topic_partition import TopicPartition;"
        f"logs = pickle.loads({sent!r}).open(planning=False);"
        "print(sum(len(window.batches) for window in logs.windows(OffsetRange(TopicPartition('orders', 0), 0, 30))),"
        "'twisted.internet.reactor' in sys.modules); logs.close()"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["3", "False"]


def test_windows_are_bounded(orders: Written, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Memory is bounded, however large a file is.
    """
    monkeypatch.setattr(log_files, "_RECORDS_BYTES", 100)
    monkeypatch.setattr(log_files, "_BATCHES_BYTES", 100)
    sizes = [
        sum(len(each.data) for each in window.batches) for window in logs(served).windows(OffsetRange(ORDERS, 0, 30))
    ]
    assert len(sizes) >= 9
    assert max(sizes) < 600
