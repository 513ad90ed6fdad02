"""
Topics of a real cluster, published to with gRPC's own client, and read as the files that SeaweedMQ wrote.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from urllib.request import urlopen
from uuid import uuid4

import grpc
from google.protobuf.message import Message as Protobuf

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.protos.filer_pb2 import Entry as FilerEntry
from kgateway.broker.seaweed.protos.filer_pb2 import ListEntriesRequest, ListEntriesResponse
from kgateway.broker.seaweed.protos.messaging_pb2 import (
    ConfigureTopicRequest,
    ConfigureTopicResponse,
    DataMessage,
    GetTopicConfigurationRequest,
    GetTopicConfigurationResponse,
    PublishMessageRequest,
    PublishMessageResponse,
)
from kgateway.broker.seaweed.protos.schema_pb2 import RecordType, Topic
from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.layout.topic_conf import generation_of, ranges_of
from kgateway.broker.seaweedmq.layout.topic_paths import NAMESPACE, is_log_file, partition_folder, topic_folder

_SECONDS = 30.0
_LEADERS_S = 5.0
_STARTED_S = 60.0
_STREAM_S = 600.0  # at most
_PAUSE_S = 0.1

# A broker that has just lost sight of the brokers assigns partitions to none, and fails to dial its empty address.
_RETRY = {
    "name": [{}],
    "retryPolicy": {
        "maxAttempts": 5,
        "initialBackoff": "0.5s",
        "maxBackoff": "4s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"],
    },
}
# Reconnect soon: a broker may have been started just now.
CHANNEL_OPTIONS = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 200)]
_OPTIONS = [("grpc.service_config", json.dumps({"methodConfig": [_RETRY]}))]


class ForeignTopic:
    """
    A topic that another program has made, with one or more partitions: a new one, or the one with this name.
    """

    def __init__(
        self,
        cluster: DevCluster,
        record_type: RecordType | None = None,
        name: str | None = None,
        namespace: str = NAMESPACE,
        partition_count: int = 1,
    ) -> None:
        self.name = name or uuid4().hex
        self._cluster = cluster
        self.topic = Topic(namespace=namespace, name=self.name)
        request = ConfigureTopicRequest(
            topic=self.topic,
            partition_count=partition_count,
            message_record_type=record_type,
        )
        with grpc.insecure_channel(cluster.broker_address, options=_OPTIONS) as channel:
            ask = _unary(channel, "/messaging_pb.SeaweedMessaging/ConfigureTopic", ConfigureTopicResponse)
            self.conf: ConfigureTopicResponse = ask(request, timeout=_SECONDS)
        self.folder = partition_folder(self.name, generation_of(self.conf), ranges_of(self.conf)[0], namespace)

    def publish(self, messages: Iterable[Message], index: int = 0) -> list[int]:
        """
        Publish messages to a partition and end the stream, upon which the broker flushes. Returns their offsets.
        """
        with self.publisher(list(messages), index) as offsets:
            return offsets

    @contextmanager
    def publisher(self, messages: Sequence[Message], index: int = 0) -> Iterator[list[int]]:
        """
        Publish messages to a partition, and end the stream afterwards.
        """
        with self.stream(index) as publish:
            yield [publish(message) for message in messages]

    @contextmanager
    def stream(self, index: int = 0) -> Iterator[Callable[[Message], int]]:
        """
        A function that publishes a message to a partition, and returns its offset once it is acknowledged. A broker
        that does not take the partition, as when it has lost sight of the brokers, says so in place of its hello and
        takes no message; it is asked again. So is one that was started just now and does not answer yet.
        """
        deadline = time.monotonic() + _STARTED_S
        with grpc.insecure_channel(self._cluster.broker_address, options=CHANNEL_OPTIONS) as channel:
            while not has_leaders(channel, self.topic):
                assert time.monotonic() < deadline, f"the partitions of {self.name} have no leaders"
                time.sleep(_PAUSE_S)
            while True:
                waiting: SimpleQueue[Message | None] = SimpleQueue()
                stream = channel.stream_stream(
                    "/messaging_pb.SeaweedMessaging/PublishMessage",
                    request_serializer=_bytes,
                    response_deserializer=PublishMessageResponse.FromString,
                )(self._requests(iter(waiting.get, None), index), timeout=_STREAM_S)
                hello = next(stream)
                if not hello.error:
                    break
                time.sleep(_PAUSE_S)
                waiting.put(None)
                assert time.monotonic() < deadline, hello.error

            def publish(message: Message) -> int:
                waiting.put(message)
                return int(next(stream).assigned_offset)

            try:
                yield publish
            finally:
                waiting.put(None)
                list(stream)

    def _requests(self, messages: Iterable[Message], index: int) -> Iterator[PublishMessageRequest]:
        partitions = [each.partition for each in self.conf.broker_partition_assignments]
        partition = sorted(partitions, key=lambda each: each.range_start)[index]
        init = PublishMessageRequest.InitMessage(topic=self.topic, partition=partition, publisher_name="test")
        yield PublishMessageRequest(init=init)
        for key, value in messages:
            yield PublishMessageRequest(data=DataMessage(key=key, value=bytes(value)))

    def entries(self, folder: str) -> list[FilerEntry]:
        """
        The entries of a folder in the filer.
        """
        host, port = self._cluster.filer.split(":")
        with grpc.insecure_channel(f"{host}:{int(port) + 10_000}") as channel:
            listed = channel.unary_stream(
                "/filer_pb.SeaweedFiler/ListEntries",
                request_serializer=_bytes,
                response_deserializer=ListEntriesResponse.FromString,
            )(ListEntriesRequest(directory=folder, limit=1000), timeout=_SECONDS)
            return [found.entry for found in listed]

    def topic_conf(self) -> bytes:
        (content,) = (entry.content for entry in self.entries(topic_folder(self.name)) if entry.name == "topic.conf")
        return content

    def log(self) -> bytes:
        """
        The bytes of all log files.
        """
        names = sorted(entry.name for entry in self.entries(self.folder) if is_log_file(entry.name))
        return b"".join(self.read(name) for name in names)

    def read(self, name: str) -> bytes:
        """
        The bytes of a file of the partition.
        """
        with urlopen(f"http://{self._cluster.filer}{self.folder}/{name}", timeout=_SECONDS) as answer:
            data: bytes = answer.read()
        return data


def has_leaders(channel: grpc.Channel, topic: Topic) -> bool:
    """
    Whether the broker answers and knows who leads the partitions. One that was started just now does not, and would
    refuse a partition for half a minute if it were asked for it.
    """
    ask = _unary(channel, "/messaging_pb.SeaweedMessaging/GetTopicConfiguration", GetTopicConfigurationResponse)
    try:
        found = ask(GetTopicConfigurationRequest(topic=topic), timeout=_LEADERS_S)
    except grpc.RpcError:
        return False
    return all(each.leader_broker for each in found.broker_partition_assignments)


def _unary(channel: grpc.Channel, path: str, response: type[Protobuf]) -> grpc.UnaryUnaryMultiCallable:
    return channel.unary_unary(path, request_serializer=_bytes, response_deserializer=response.FromString)


def _bytes(request: Protobuf) -> bytes:
    return request.SerializeToString()
