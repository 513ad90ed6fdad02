"""
The stored bytes of a gateway, requested with our own codec over a socket, past all clients.

Clients compress as they like, and may not compress if a broker seems old to them, so tests look at the stored batches.
"""

import socket
import struct
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from kgateway.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kgateway.messages.fetch import FetchRequest, FetchResponse
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.records.batch import Batch, batches
from kgateway.records.record import Record, records
from kgateway.wire.codec import decode, decoder
from kgateway.wire.headers import ResponseHeader, request_frame, response_header_version
from kgateway.wire.schema import Message
from tests.records.values import built

PATIENCE_S = 30
_TIMEOUT_MS = PATIENCE_S * 1000
PLENTY = 50 << 20

# The newest versions in which topics have names.
_VERSIONS = {CreateTopicsRequest: 7, FetchRequest: 12, ProduceRequest: 12}

M = TypeVar("M", bound=Message)


class Raw:
    """
    A connection to a gateway, for a `with` block. Topics are created through another server if that has to know of
    them.
    """

    def __init__(self, bootstrap: str, made_at: str = "") -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), PATIENCE_S)
        self._stream = self._socket.makefile("rb")
        self._maker = Raw(made_at) if made_at not in ("", bootstrap) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stream.close()
        self._socket.close()
        if self._maker:
            self._maker.__exit__(kind, error, traceback)

    def ask(self, request: Message, answer: type[M]) -> M:
        """
        The response to a request.
        """
        version = _VERSIONS[type(request)]
        self._socket.sendall(b"".join(request_frame(request, version, 0, "raw")))
        (size,) = struct.unpack(">i", self._stream.read(4))
        frame = self._stream.read(size)
        _, start = decoder(ResponseHeader, response_header_version(answer, version))(frame, 0)
        return decode(answer, version, frame[start:])

    def batches(self, topic: str, partition: int = 0) -> list[Batch]:
        found: list[Batch] = []
        while True:
            offset = found[-1].header.last_offset + 1 if found else 0
            answer = self._fetch(topic, partition, offset)
            if offset >= answer.high_watermark:
                return found
            assert isinstance(answer.records, memoryview)
            assert answer.records, f"nothing at {offset}, below {answer.high_watermark}"
            found += batches(answer.records, cut_tail=True)

    def records(self, topic: str, partition: int = 0) -> list[Record]:
        return [record for batch in self.batches(topic, partition) for record in records(batch)]

    def create(self, topic: str, partitions: int = 1) -> None:
        wanted = CreateTopicsRequest.Topic(
            name=topic, num_partitions=partitions, replication_factor=-1, assignments=[], configs=[]
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=_TIMEOUT_MS)
        (made,) = (self._maker or self).ask(request, CreateTopicsResponse).topics
        assert made.error_code == 0, made

    def append(self, topic: str, rows: Sequence[Record], partition: int = 0, **options: Any) -> int:
        """
        Produce a batch of our builder; returns the offset of its first record.
        """
        data = ProduceRequest.TopicData.PartitionData(index=partition, records=built(rows, **options))
        request = ProduceRequest(
            acks=-1, timeout_ms=_TIMEOUT_MS, topic_data=[ProduceRequest.TopicData(name=topic, partition_data=[data])]
        )
        (response,) = self.ask(request, ProduceResponse).responses
        (outcome,) = response.partition_responses
        assert outcome.error_code == 0, outcome
        return outcome.base_offset

    def _fetch(self, topic: str, partition: int, offset: int) -> FetchResponse.Response.Partition:
        wanted = FetchRequest.Topic.Partition(partition=partition, fetch_offset=offset, partition_max_bytes=PLENTY)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, topics=[FetchRequest.Topic(topic=topic, partitions=[wanted])]
        )
        (response,) = self.ask(request, FetchResponse).responses
        (answer,) = response.partitions
        assert answer.error_code == 0, answer
        return answer
