"""
A real broker of SeaweedMQ stores our messages, and SeaweedMQ's own tools read our columns.
"""

import json
from subprocess import run

import pytest

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.dev.weed_process import weed_program
from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.formats.log_entry import last_entries, logged_messages, whole_size
from kgateway.broker.seaweedmq.formats.record import RecordFormat
from kgateway.broker.seaweedmq.formats.registry import FORMATS
from kgateway.broker.seaweedmq.inspection.verification import verify
from kgateway.broker.seaweedmq.layout.topic_conf import generation_of, ranges_of, read_topic_conf, topic_conf
from kgateway.broker.seaweedmq.layout.topic_paths import (
    CHECKPOINT,
    generation_name,
    is_log_file,
    log_name,
    topic_folder,
)
from kgateway.broker.seaweedmq.ledger.ledger import Ledger
from kgateway.records.batch import Batch, read_batch
from kgateway.records.compression import Codec
from kgateway.records.record import Header, Record, records
from tests.broker.seaweedmq.foreign_topic import ForeignTopic
from tests.records.values import SAMPLE, batch_of

_TRIES = 20

MESSAGES = [
    Message(b"", b""),
    Message(b"", b"value"),
    Message(b"key", b""),
    Message(b"key", b"v" * 127),
    Message(b"k" * 200, b"v" * 128),
    Message(b"hash above zero" * 3, b"v" * 300_000),
    *[Message(b"k%d" % n, b"v%d" % n) for n in range(200)],
]


def test_a_log_file_is_read(cluster: DevCluster) -> None:
    """
    Each message has the offset that the broker answered; the file is named by its second.
    """
    topic = ForeignTopic(cluster)
    offsets = topic.publish(MESSAGES)
    data = topic.log()
    found = list(logged_messages(data))
    assert [(entry.offset, entry.key, entry.value) for entry in found] == [
        (offset, *message) for offset, message in zip(offsets, MESSAGES, strict=True)
    ]
    assert whole_size(data) == len(data) == found[-1].end
    assert last_entries(data, len(data), 1) == (found[-1:], len(found))
    names = [entry.name for entry in topic.entries(topic.folder)]
    assert min(filter(is_log_file, names)) == log_name(found[0].ts_ns)
    assert {name for name in names if not is_log_file(name)} <= {CHECKPOINT}


def test_a_topic_is_where_it_is_looked_for(cluster: DevCluster) -> None:
    """
    Its file has the partitions, its generation is named by its second, and our own file would be the same.
    """
    topic = ForeignTopic(cluster, RecordFormat().record_type())
    topic.publish(MESSAGES[:1])
    conf = read_topic_conf(topic.topic_conf())
    assert (generation_of(conf), ranges_of(conf)) == (generation_of(topic.conf), ranges_of(topic.conf))
    assert conf.message_record_type == RecordFormat().record_type()
    names = [entry.name for entry in topic.entries(topic_folder(topic.name)) if entry.is_directory]
    assert names == [generation_name(generation_of(conf))]
    assert json.loads(topic_conf(conf)) == json.loads(topic.topic_conf())


HEADERS = (Header("h", b"1"), Header("h", None), Header("\udcff", b""))


@pytest.mark.parametrize("name", FORMATS)
def test_batches_come_back_from_a_broker(cluster: DevCluster, name: str) -> None:
    """
    Every form is tried; the ledger made from the log has no fault.
    """
    form = FORMATS[name]
    rows = [Record(0, 5, b"k", b"v"), Record(1, 5, None, b"x" * 5000)]
    if name != "plain":
        rows += [Record(2, 6, b"", None, HEADERS), *SAMPLE]
    first: list[Batch] = []
    for codec in Codec:
        base = len(first) * len(rows)
        first.append(batch_of(rows, codec=codec, base_offset=base, producer_id=7, producer_epoch=0, base_sequence=base))
    topic = ForeignTopic(cluster, form.record_type())
    topic.publish(message for batch in first for message in form.encode(batch, batch.header.base_offset, 0))
    found = list(logged_messages(topic.log()))
    came = [record for data in form.decode(found) for record in records(read_batch(data))]
    went = [record for batch in first for record in records(batch)]
    if name == "plain":
        went = [record._replace(timestamp=0) for record in went]
        came = [record._replace(timestamp=0) for record in came]
    assert came == went
    ledger = Ledger(form.batched, generation_of(topic.conf), ranges_of(topic.conf)[0])
    ledger.extend(form.walk(found))
    assert list(verify(ledger, len(went))) == []


def test_the_archiving_tool_of_seaweedmq_reads_our_columns(cluster: DevCluster) -> None:
    """
    It makes a Parquet file of them, with headers, and counts every record.
    """
    form = RecordFormat()
    topic = ForeignTopic(cluster, form.record_type())
    batch = batch_of([Record(n, 5, b"k%d" % n, b"v", HEADERS) for n in range(10)], producer_id=7, producer_epoch=0)
    topic.publish(form.encode(batch, 0, 0))
    told = b""
    for _ in range(_TRIES):  # it leaves alone what is younger than a second
        told += _shell(cluster, f"lock\nmq.topic.compact -namespace kafka -topic {topic.name} -timeAgo 1ms\nunlock\n")
        names = [entry.name for entry in topic.entries(topic.folder) if entry.name.endswith(".parquet")]
        if names:
            break
    assert len(names) == 1, told
    data = topic.read(names[0])
    assert data[:4] == data[-4:] == b"PAR1"
    footer = data[-int.from_bytes(data[-8:-4], "little") - 8 :]
    for field in form.record_type().fields:
        assert field.name.encode() in footer


def _shell(cluster: DevCluster, commands: str) -> bytes:
    program = [weed_program(), "shell", f"-master={cluster.masters[0]}"]
    told = run(
        program, input=f"{commands}exit\n".encode(), capture_output=True, timeout=60, check=True, cwd=cluster.folder
    )
    return told.stdout + told.stderr
