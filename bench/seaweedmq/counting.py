"""
A client that reads batches and looks at nothing but where they end: what it gets is what a gateway can do.

librdkafka under Python makes an object of each record, which keeps its thread busy at some hundred MB/s.
"""

from collections.abc import Mapping

from bench.fetch import LARGE, batches_end
from kgateway.messages.fetch import FetchRequest
from tests.faults.client import Client

_VERSION = 7  # which the Go gateway has, too
_WAIT_MS = 500
_BYTES = 50 << 20

Offsets = Mapping[int, int]  # by partition


def count_bytes(bootstrap: str, topic: str, starts: Offsets, ends: Offsets) -> None:
    """
    Read each partition from the one offset to the other, all of them with each request.
    """
    host, port = bootstrap.split(":")
    offsets = dict(starts)
    with Client(int(port), host=host) as client:
        while left := [index for index, offset in offsets.items() if offset < ends[index]]:
            partitions = [
                FetchRequest.Topic.Partition(
                    partition=index, fetch_offset=offsets[index], partition_max_bytes=LARGE["fetch.message.max.bytes"]
                )
                for index in left
            ]
            topics = [FetchRequest.Topic(topic=topic, partitions=partitions)]
            asked = FetchRequest(max_wait_ms=_WAIT_MS, min_bytes=1, max_bytes=_BYTES, topics=topics)
            for told in client.ask(asked, _VERSION).responses[0].partitions:
                if told.records:
                    offsets[told.partition_index] = batches_end(told.records)
