"""
A gateway embedded in a program, which produces and fetches without a socket; Kafka clients can connect, too.
"""

import time
from typing import Any

from twisted.internet.task import react

from kgateway.config.listeners import parse_listener
from kgateway.config.settings import Settings
from kgateway.embedded import Embedded
from kgateway.server.gateway import Gateway


async def main(reactor: Any) -> None:
    reactor.seconds = time.monotonic  # a step of the wall clock must not end sessions
    gateway = Gateway(Settings(broker="memory:", listen=(parse_listener("tcp:0:interface=127.0.0.1"),)), reactor)
    try:
        [address] = await gateway.start()
        print(f"clients may connect to {address.host}:{address.port}")
        await write_and_read(Embedded(gateway))
    finally:
        await gateway.stop()


async def write_and_read(topics: Embedded) -> None:
    await topics.create_topic("orders", partition_count=1, config={"retention.ms": "60000"})
    first = await topics.produce("orders", [(b"key", b"one"), (None, b"two")])
    for record in await topics.fetch("orders", partition=0, offset=first):
        print(f"offset {record.offset}: key {record.key!r}, value {record.value!r}")
    print(f"high watermark {topics.watermarks('orders', 0).high_watermark}, {topics.stats()['topics']} topic")


if __name__ == "__main__":
    react(main)
