"""
A broker of one topic with one partition, sufficient for real clients to produce to and consume from.

It stores produced batches unchanged, and serves the bytes it was made with. It uses sockets and threads and nothing
of the server: only the codec and the message tables.
"""

import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

from kgateway.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgateway.messages.fetch import FetchRequest, FetchResponse
from kgateway.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kgateway.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kgateway.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.records.batch import batches
from kgateway.wire.codec import decode, decoder
from kgateway.wire.headers import (
    RequestHeader,
    peek,
    request_header_version,
    response_frame,
)
from kgateway.wire.schema import Message
from kgateway.wire.uuids import Uuid

TOPIC = "scripted"
TOPIC_ID = Uuid(b"scripted topic!!")
PRODUCER_ID = 4_000
PRODUCER_EPOCH = 3


class ScriptedBroker:
    """
    Serves while entered; a fetch reads `log`.
    """

    def __init__(self, log: bytes = b"") -> None:
        self.produced: list[bytes] = []
        self._log = log
        self._end = max((batch.header.last_offset + 1 for batch in batches(log)), default=0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._host, self._port = self._listener.getsockname()
        self._clients: list[socket.socket] = []
        self._closing = Event()
        self._threads = [Thread(target=self._accept)]
        self._answers: dict[type[Message], Callable[[Any], Message]] = {
            ApiVersionsRequest: self._api_versions,
            MetadataRequest: self._metadata,
            FindCoordinatorRequest: self._find_coordinator,
            InitProducerIdRequest: self._init_producer_id,
            ProduceRequest: self._produce,
            ListOffsetsRequest: self._list_offsets,
            FetchRequest: self._fetch,
        }
        self._requests = {request.__spec__.key: request for request in self._answers}

    @property
    def address(self) -> str:
        return f"{self._host}:{self._port}"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing.set()
        socket.create_connection((self._host, self._port)).close()  # wakes the accepting thread
        self._threads[0].join()
        self._listener.close()
        for client in self._clients:
            with suppress(OSError):  # the client closed first
                client.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            if self._closing.is_set():
                client.close()
                return
            self._clients.append(client)
            self._threads.append(Thread(target=self._serve, args=[client]))
            self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as stream, suppress(OSError):
            while size := stream.read(4):
                client.sendall(self._answered(stream.read(*struct.unpack(">i", size))))

    def _answered(self, frame: bytes) -> bytes:
        key, version, correlation_id = peek(frame)
        request_type = self._requests[key]
        header_version = request_header_version(request_type, version)
        _, start = decoder(RequestHeader, header_version)(frame, 0)
        answer = self._answers[request_type](decode(request_type, version, frame[start:]))
        assert version in type(answer).__spec__.versions
        return b"".join(response_frame(answer, version, correlation_id))

    def _api_versions(self, request: ApiVersionsRequest) -> ApiVersionsResponse:
        def row(spec: Any) -> ApiVersionsResponse.ApiKey:
            first, last = spec.versions[0], spec.versions[-1]
            return ApiVersionsResponse.ApiKey(api_key=spec.key, min_version=first, max_version=last)

        return ApiVersionsResponse(error_code=0, api_keys=[row(request.__spec__) for request in self._answers])

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        partition = MetadataResponse.Topic.Partition(
            error_code=0, partition_index=0, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1]
        )
        return MetadataResponse(
            brokers=[MetadataResponse.Broker(node_id=1, host=self._host, port=self._port)],
            cluster_id="scripted",
            controller_id=1,
            topics=[MetadataResponse.Topic(error_code=0, name=TOPIC, topic_id=TOPIC_ID, partitions=[partition])],
        )

    def _find_coordinator(self, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        here = {"node_id": 1, "host": self._host, "port": self._port}
        one = FindCoordinatorResponse.Coordinator
        keys = request.coordinator_keys
        return FindCoordinatorResponse(
            **here, coordinators=[one(key=key, error_code=0, error_message=None, **here) for key in keys]
        )

    def _init_producer_id(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        return InitProducerIdResponse(
            throttle_time_ms=0, error_code=0, producer_id=PRODUCER_ID, producer_epoch=PRODUCER_EPOCH
        )

    def _produce(self, request: ProduceRequest) -> ProduceResponse:
        (topic,) = request.topic_data
        (partition,) = topic.partition_data
        assert isinstance(partition.records, memoryview)
        self.produced.append(bytes(partition.records))
        done = ProduceResponse.Response.PartitionResponse(index=0, error_code=0, base_offset=0)
        return ProduceResponse(
            responses=[ProduceResponse.Response(name=topic.name, topic_id=topic.topic_id, partition_responses=[done])]
        )

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        earliest = request.topics[0].partitions[0].timestamp == -2
        offset = 0 if earliest else self._end
        found = ListOffsetsResponse.Topic.Partition(
            partition_index=0, error_code=0, old_style_offsets=[offset], offset=offset, leader_epoch=0
        )
        return ListOffsetsResponse(topics=[ListOffsetsResponse.Topic(name=TOPIC, partitions=[found])])

    def _fetch(self, request: FetchRequest) -> FetchResponse:
        wanted = [p.fetch_offset for topic in request.topics for p in topic.partitions]
        found = self._log if wanted and wanted[0] < self._end else b""
        if not found:
            self._closing.wait(request.max_wait_ms / 1_000)
        partition = FetchResponse.Response.Partition(
            partition_index=0,
            error_code=0,
            high_watermark=self._end,
            last_stable_offset=self._end,
            log_start_offset=0,
            records=found,
        )
        answer = FetchResponse.Response(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])
        return FetchResponse(responses=[answer] if wanted else [])
