"""
How far is read, before a server that says what a test has it say.
"""

import io
import sys
from argparse import Namespace
from types import SimpleNamespace

import pytest

from kgateway.cli.consume_output import Output
from kgateway.cli.consume_reading import Reading
from kgateway.cli.interrupts import Interrupts
from kgateway.cli.places import BEGINNING
from kgateway.client.cluster import Cluster
from kgateway.client.offsets import Partition
from kgateway.messages.fetch import FetchResponse
from kgateway.messages.list_offsets import ListOffsetsResponse
from kgateway.messages.metadata import MetadataResponse
from kgateway.records.builder import BatchBuilder
from tests.client.scripted import scripted

ONE = Partition("orders", 0)
END = 4  # two records, the note that their transaction is committed, and one more of those


def log() -> bytes:
    """
    What stands in the partition.
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
    What is written by who reads to the end, and what there is to commit then.
    """
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=written, isatty=lambda: False))
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
            reading = Reading(options, cluster, [ONE], Output(options), interrupts, known)
            while not reading.is_over:
                reading.step()
    return written.getvalue(), reading.reached[ONE]


def test_what_is_no_record_is_behind_who_has_read_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    So that a group has no lag left; also where there was nothing but that to read.
    """
    assert reached(monkeypatch) == (b"a\nb\n", END)
    assert reached(monkeypatch, begun=2) == (b"", END)


def test_who_has_enough_has_come_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Than behind the last record that was written.
    """
    assert reached(monkeypatch, count=1) == (b"a\n", 1)
