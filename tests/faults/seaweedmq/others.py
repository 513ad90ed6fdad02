"""
Other programs that use a topic of SeaweedMQ beside a gateway: publishers, and a subscriber, by gRPC's own client.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from threading import Event
from time import sleep
from typing import Any

import grpc
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import Default
from google.protobuf.message_factory import GetMessages

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.protos.messaging_pb2 import (
    BrokerPartitionAssignment,
    DataMessage,
    PublishMessageRequest,
    PublishMessageResponse,
)
from kgateway.broker.seaweed.protos.schema_pb2 import Topic
from tests.broker.seaweedmq.foreign_topic import CHANNEL_OPTIONS, has_leaders
from tests.faults.background import Background

_PUBLISH = "/messaging_pb.SeaweedMessaging/PublishMessage"
_SUBSCRIBE = "/messaging_pb.SeaweedMessaging/SubscribeMessage"
_PAUSE_S = 0.05
_EARLIEST = 5
_WINDOW = 1 << 16  # messages that a subscriber need not have acknowledged


class OtherPublisher(Background):
    """
    Publishes to a partition until it is stopped, each message once the one before is acknowledged, through all restarts
    of the broker. A message that was not acknowledged is not published again.
    """

    def __init__(self, cluster: DevCluster, topic: Topic, assignment: BrokerPartitionAssignment, name: str) -> None:
        super().__init__()
        self.acknowledged: list[bytes] = []
        self._cluster = cluster
        self._topic = topic
        self._partition = assignment.partition
        self._name = name
        self._numbers = count()

    def _run(self) -> None:
        while not self._stopping.is_set():
            with suppress(grpc.RpcError, StopIteration):
                self._publish()
            sleep(_PAUSE_S)

    def _publish(self) -> None:
        waiting: SimpleQueue[bytes | None] = SimpleQueue()
        with grpc.insecure_channel(self._cluster.broker_address, options=CHANNEL_OPTIONS) as channel:
            if not has_leaders(channel, self._topic):
                return
            stream = channel.stream_stream(
                _PUBLISH,
                request_serializer=PublishMessageRequest.SerializeToString,
                response_deserializer=PublishMessageResponse.FromString,
            )(self._requests(waiting))
            if next(stream).error:
                return
            while not self._stopping.is_set():
                value = f"{self._name} {next(self._numbers)}".encode()
                waiting.put(value)
                next(stream)
                self.acknowledged.append(value)
            waiting.put(None)
            list(stream)

    def _requests(self, waiting: "SimpleQueue[bytes | None]") -> Iterator[PublishMessageRequest]:
        init = PublishMessageRequest.InitMessage(
            topic=self._topic, partition=self._partition, publisher_name=self._name
        )
        yield PublishMessageRequest(init=init)
        while (value := waiting.get()) is not None:
            yield PublishMessageRequest(data=DataMessage(key=value, value=value))


def subscribed(cluster: DevCluster, topic: Topic, assignment: BrokerPartitionAssignment, total: int) -> list[bytes]:
    """
    The values of all messages of a partition, in the order in which a subscriber gets them.
    """
    types = _subscription_types()
    init = types["Init"](
        consumer_group="tests",
        consumer_id="1",
        client_id="tests",
        topic=topic.SerializeToString(),
        partition_offset=types["PartitionOffset"](partition=assignment.partition.SerializeToString()),
        offset_type=_EARLIEST,
        sliding_window_size=_WINDOW,
    )
    done, found = Event(), list[bytes]()

    def requests() -> Iterator[object]:
        yield types["Request"](init=init)
        done.wait()

    with grpc.insecure_channel(cluster.broker_address) as channel:
        stream = channel.stream_stream(
            _SUBSCRIBE,
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=types["Response"].FromString,
        )(requests(), timeout=60)
        while len(found) < total:
            found.append(next(stream).data.value)
        done.set()
        stream.cancel()
    return found


def _subscription_types() -> dict[str, Any]:
    """
    The messages of SeaweedMQ's subscriptions, as far as they are needed.
    """
    file = FileDescriptorProto(name="tests/subscription.proto", package="tests", syntax="proto3")
    kinds = {"text": FieldDescriptorProto.TYPE_STRING, "number": FieldDescriptorProto.TYPE_INT32}
    kinds["bytes"] = FieldDescriptorProto.TYPE_BYTES
    for name, fields in {
        "PartitionOffset": [("partition", 1, "bytes"), ("start_offset", 3, "number")],
        "Init": [
            ("consumer_group", 1, "text"),
            ("consumer_id", 2, "text"),
            ("client_id", 3, "text"),
            ("topic", 4, "bytes"),
            ("partition_offset", 5, ".tests.PartitionOffset"),
            ("offset_type", 6, "number"),
            ("sliding_window_size", 12, "number"),
        ],
        "Request": [("init", 1, ".tests.Init")],
        "Data": [("key", 1, "bytes"), ("value", 2, "bytes")],
        "Response": [("data", 2, ".tests.Data")],
    }.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            added = message.field.add(name=field, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
            if kind in kinds:
                added.type = kinds[kind]
            else:
                added.type, added.type_name = FieldDescriptorProto.TYPE_MESSAGE, kind
    Default().AddSerializedFile(file.SerializeToString())
    return {name.rpartition(".")[2]: found for name, found in GetMessages([file]).items()}
