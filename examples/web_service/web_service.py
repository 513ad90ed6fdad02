"""
A web service on Twisted with a Kafka topic behind it.

    GET /products/NAME    a page; each request is an event in the topic `visits`
    GET /visits           how often each product was visited, counted by reading the topic

It works with any Kafka server. librdkafka, the client, has threads of its own; only connecting to the server blocks, in
another thread. Until the topic has been read, each response is 503.
"""

import json
import time
from argparse import ArgumentParser
from collections import Counter
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import serverFromString
from twisted.internet.task import LoopingCall, react
from twisted.internet.threads import deferToThread
from twisted.web.http import SERVICE_UNAVAILABLE
from twisted.web.pages import errorPage
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

TOPIC = "visits"
PARTITIONS = 4
POLL_S = 0.02
ATTEMPT_S = 2  # to connect
UNREACHABLE = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
DELIVERY_MS = 3_000  # after which a visit is given up


class Visits:
    """
    Writes visits to the topic, and counts all that are in it, also those of other processes.
    """

    def __init__(self, bootstrap: str) -> None:
        config: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap}
        config["log_level"] = 2  # below it librdkafka logs each attempt to connect
        self.counts: Counter[str] = Counter()
        self._admin = AdminClient(config)
        self._producer = Producer({**config, "message.timeout.ms": DELIVERY_MS})
        self._consumer = Consumer(
            {**config, "group.id": "unused", "enable.auto.commit": False, "enable.partition.eof": True}
        )
        self._unread: set[int] = set()  # the partitions that have not been read to the end yet
        self.complete: Deferred[None] = Deferred()  # fires once all visits from before the start are counted

    async def connect(self) -> None:
        """
        Begin to read the topic, as soon as a server responds.
        """
        while not (partitions := await deferToThread(_partitions, self._admin)):
            pass
        self._unread = set(partitions)
        self._consumer.assign([TopicPartition(TOPIC, index, OFFSET_BEGINNING) for index in partitions])

    def record(self, product: str) -> Deferred[None]:
        """
        Write a visit. Fires when the server has acknowledged it.
        """
        recorded: Deferred[None] = Deferred()

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error:
                recorded.errback(KafkaException(error))
            else:
                recorded.callback(None)

        event = json.dumps({"product": product, "time": time.time()})
        self._producer.produce(TOPIC, event.encode(), product.encode(), on_delivery=delivered)
        return recorded

    def poll(self) -> None:
        """
        Take what has arrived: acknowledgements and visits.
        """
        self._producer.poll(0)
        for message in self._consumer.consume(1_000, timeout=0):
            error, product = message.error(), message.key()
            if error is None and product is not None:
                self.counts[product.decode(errors="replace")] += 1
            elif error and error.code() == KafkaError._PARTITION_EOF:
                self._unread.discard(message.partition())
                if not self._unread and not self.complete.called:
                    self.complete.callback(None)

    def close(self) -> None:
        self._producer.flush(DELIVERY_MS / 1000)
        self._consumer.close()


def _partitions(admin: AdminClient) -> list[int]:
    """
    The partitions of the topic, which is created if it is missing; none as long as no server responds. This blocks.
    """
    try:
        _create_topic(admin)
        return [*admin.list_topics(TOPIC, ATTEMPT_S).topics[TOPIC].partitions]
    except KafkaException as error:
        if error.args[0].code() not in UNREACHABLE:
            raise
        return []


def _create_topic(admin: AdminClient) -> None:
    try:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)], request_timeout=ATTEMPT_S)[TOPIC].result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


class ProductPage(Resource):
    isLeaf = True

    def __init__(self, visits: Visits, name: str) -> None:
        super().__init__()
        self._visits = visits
        self._name = name

    def render_GET(self, request: Request) -> int:
        Deferred.fromCoroutine(self._answer(request))
        return NOT_DONE_YET

    async def _answer(self, request: Request) -> None:
        left = request.notifyFinish().addErrback(lambda _: None)  # the browser need not wait for the answer
        text = f"All about {self._name}.\n"
        try:
            await self._visits.record(self._name)
        except (BufferError, KafkaException) as error:  # BufferError: too many visits wait for the server
            request.setResponseCode(SERVICE_UNAVAILABLE)
            text = f"Your visit cannot be recorded: {error}\n"
        if not left.called:
            request.setHeader("content-type", "text/plain; charset=utf-8")
            request.write(text.encode())
            request.finish()


class Products(Resource):
    def __init__(self, visits: Visits) -> None:
        super().__init__()
        self._visits = visits

    def getChild(self, path: bytes, request: Request) -> Resource:
        return ProductPage(self._visits, path.decode(errors="replace"))


class VisitsView(Resource):
    isLeaf = True

    def __init__(self, visits: Visits) -> None:
        super().__init__()
        self._visits = visits

    def render_GET(self, request: Request) -> bytes:
        request.setHeader("content-type", "application/json")
        return json.dumps(dict(self._visits.counts.most_common())).encode() + b"\n"


class Root(Resource):
    def __init__(self, visits: Visits) -> None:
        super().__init__()
        self._visits = visits
        self.putChild(b"products", Products(visits))
        self.putChild(b"visits", VisitsView(visits))

    def getChildWithDefault(self, path: bytes, request: Request) -> Any:
        if not self._visits.complete.called:
            return errorPage(SERVICE_UNAVAILABLE, "Service Unavailable", "The topic has not been read yet.")
        return super().getChildWithDefault(path, request)


async def main(reactor: Any, *arguments: str) -> None:
    parser = ArgumentParser(description="a web service with a Kafka topic behind it")
    parser.add_argument("--bootstrap", metavar="HOST:PORT", default="127.0.0.1:9092", help="a server of the cluster")
    parser.add_argument("--listen", metavar="ENDPOINT", default="tcp:8080:interface=127.0.0.1")
    options = parser.parse_args(arguments)
    visits = Visits(options.bootstrap)
    reactor.addSystemEventTrigger("before", "shutdown", visits.close)
    port = await serverFromString(reactor, options.listen).listen(Site(Root(visits)))
    print(f"listening on {port.getHost().port}, connecting to {options.bootstrap}", flush=True)
    visits.complete.addCallback(lambda _: print("ready: the topic has been read", flush=True))
    await visits.connect()
    await LoopingCall(visits.poll).start(POLL_S)


if __name__ == "__main__":
    import sys

    react(main, sys.argv[1:])
