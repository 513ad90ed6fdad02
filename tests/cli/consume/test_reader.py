"""
The reader, with a scripted server.
"""

import os
import sys
from argparse import Namespace
from types import SimpleNamespace

import pytest

from kgateway.cli.common.interrupts import Interrupts
from kgateway.cli.common.offset_spec import BEGINNING
from kgateway.cli.consume.output import Output
from kgateway.cli.consume.reader import Reader
from kgateway.client.cluster import Cluster
from kgateway.messages.fetch import FetchResponse
from kgateway.messages.list_offsets import ListOffsetsResponse
from kgateway.messages.metadata import MetadataResponse
from kgateway.records.builder import BatchBuilder
from kgateway.topic_partition import TopicPartition
from tests.client.scripted import scripted

ONE = TopicPartition("orders", 0)
END = 4  # two records, the marker that commits their transaction, and another record


def log() -> bytes:
    """
    The batches of the partition.
    """
    records = BatchBuilder(is_transactional=True)
    for value in (b"a", b"b"):
        records.append(None, value, timestamp=0)
    notes = [BatchBuilder(base_offset=offset, is_control=True) for offset in (2, 3)]
    for note in notes:
        note.append(b"\0\0\0\1", b"\0\0\0\0\0\0", timestamp=0)
    return b"".join(builder.build() for builder in (records, *notes))


def reached(monkeypatch: pytest.MonkeyPatch, begun: int | None = None, count: int | None = None) -> tuple[bytes, int]:
    """
    The output of a reader up to the end, and the offsets that it then has to commit.
    """
    written, stdout = os.pipe()
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(fileno=lambda: stdout, isatty=lambda: False))
    options = Namespace(
        start=BEGINNING, until=None, follow=False, count=count, json=False, format=None, key_as=None, value_as=None
    )
    with scripted(Metadata=(0, 13), Fetch=(4, 18), ListOffsets=(1, 10)) as server:
        broker = MetadataResponse.Broker(node_id=1, host=server.address.host, port=server.address.port)
        topic = MetadataResponse.Topic
        led = topic.Partition(error_code=0, partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1])
        server.will(MetadataResponse(brokers=[broker], topics=[topic(error_code=0, name="orders", partitions=[led])]))
        for offset in (0, END):
            kind = ListOffsetsResponse.Topic
            place = kind.Partition(partition_index=0, error_code=0, timestamp=-1, offset=offset)
            server.will(ListOffsetsResponse(topics=[kind(name="orders", partitions=[place])]))
        answer = FetchResponse.Response
        part = answer.Partition(
            partition_index=0, error_code=0, high_watermark=END, aborted_transactions=None, records=memoryview(log())
        )
        server.will(FetchResponse(responses=[answer(topic="orders", partitions=[part])]))
        with Cluster([server.address], 5.0) as cluster, Interrupts() as interrupts:
            known = {} if begun is None else {ONE: begun}
            reader = Reader(options, cluster, [ONE], Output(options, interrupts), interrupts, known)
            while not reader.is_over:
                reader.step()
    os.close(stdout)
    with os.fdopen(written, "rb") as file:
        return file.read(), reader.reached[ONE]


def test_a_reader_commits_past_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A group has no lag left, even if the log ends with markers.
    """
    assert reached(monkeypatch) == (b"a\nb\n", END)
    assert reached(monkeypatch, begun=2) == (b"", END)


def test_a_count_ends_behind_the_last_record_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Later records are not committed.
    """
    assert reached(monkeypatch, count=1) == (b"a\n", 1)
