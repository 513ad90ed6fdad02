"""
A server under load that is killed again and again, and the check that nothing was lost by it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Protocol
from zlib import crc32

from kgateway.messages.create_topics import CreateTopicsRequest
from tests.faults.accounting import Accounts, Read
from tests.faults.client import Client
from tests.faults.following import Ends, Follower, heads, records
from tests.faults.killing import Victim
from tests.faults.ledger import Ledger, Place
from tests.faults.producing import PATIENCE_S, Writer, all_acknowledged
from tests.faults.repeating import Repeater
from tests.faults.topics import Topics

# Sparse indexes, for Kafka's tool reads a segment up to each of their entries.
_TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "plain": (3, {"segment.bytes": str(4 << 20), "index.interval.bytes": "100000"}),
    "synced": (2, {"segment.bytes": str(4 << 20), "index.interval.bytes": "100000", "kgateway.acks.fsync": "true"}),
    "small": (2, {"segment.bytes": str(1 << 20), "index.interval.bytes": "16000"}),
}
_BYTES = {"plain": 300, "synced": 300, "small": 2_000}  # of a record, about
_IDEMPOTENT, _PLAIN = 3, 2  # producers
_CREATE_VERSION = 7


class Actor(Protocol):
    """
    Who does something beside the crashes, in a thread.
    """

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Crashes:
    """
    The server, its clients, and what they were promised.
    """

    def __init__(self, folder: Path, seed: str) -> None:
        self.server = Victim(folder, Random(seed))
        self.ledger = Ledger()
        self.places: list[Place] = [(topic, index) for topic, (count, _) in _TOPICS.items() for index in range(count)]
        port, bootstrap = self.server.port, self.server.bootstrap
        self._writers = [self._writer(number, Random(f"{seed} {number}")) for number in range(_IDEMPOTENT + _PLAIN)]
        self.repeater = Repeater(len(self._writers), port, self.ledger, self.places)
        self.follower = Follower(bootstrap, self.places)
        self.ends = Ends(port, self.places)
        self.topics = Topics(port, Random(f"{seed} topics"))
        self._actors: Sequence[Actor] = (*self._writers, self.follower, self.ends, self.topics)

    def _writer(self, number: int, random: Random) -> Writer:
        sizes = {place: _BYTES[place[0]] for place in self.places}
        return Writer(number, self.server.bootstrap, self.ledger, sizes, random, idempotent=number < _IDEMPOTENT)

    def begin(self) -> None:
        """
        Start the server, make the topics and let clients work.
        """
        self.server.start()
        asked = [
            CreateTopicsRequest.Topic(
                name=name,
                num_partitions=count,
                replication_factor=1,
                assignments=[],
                configs=[CreateTopicsRequest.Topic.Config(name=key, value=value) for key, value in config.items()],
            )
            for name, (count, config) in _TOPICS.items()
        ]
        with Client(self.server.port) as client:
            told = client.ask(CreateTopicsRequest(topics=asked), _CREATE_VERSION).topics
        assert not any(topic.error_code for topic in told), told
        self._repeated = self.repeater.started()
        for actor in self._actors:
            actor.start()

    def start(self) -> None:
        """
        Start the server, which is dead.
        """
        self.server.start()
        self._repeated = self.repeater.started()

    def go_on(self) -> None:
        """
        Let producers send again.
        """
        for writer in self._writers:
            writer.go_on()

    def check(self) -> Accounts:
        """
        Let nothing more be sent, read everything back and account for it. What is wrong is among the faults.
        """
        if not self._repeated.wait(PATIENCE_S):
            self.ledger.faults.append("the producer that repeats is not answered")
        if not all_acknowledged(self._writers):
            self.ledger.faults += self.ledger.missing()
        accounts = Accounts(self.ledger)
        if not self.faults():
            for place in self.places:
                self.ledger.faults += self._faults_in(place, accounts)
        return accounts

    def _faults_in(self, place: Place, accounts: Accounts) -> Iterator[str]:
        batches = heads(self.server.port, place)
        end = batches[-1].last_offset + 1 if batches else 0
        seen = self.follower.seen[place]
        if not self.follower.reaches(place, end) or len(seen) > end:
            yield f"{place}: the consumer that follows has come to {len(seen)}, and the end is {end}"
        changed: list[str] = []

        def compared() -> Iterator[Read]:
            for offset, value in records(self.server.bootstrap, place, end):
                if offset < len(seen) and seen[offset] != crc32(value):
                    changed.append(f"{place}: offset {offset} is not what a consumer has seen there before")
                yield Read(offset, value)

        yield from accounts.faults(place, batches, compared())
        yield from changed

    def finish(self) -> None:
        """
        Let clients end, and then the server in good order.
        """
        self._stop_clients()
        with Client(self.server.port) as client:
            self.topics.check(client)
        self.server.stop()

    def give_up(self) -> None:
        """
        Leave nothing behind.
        """
        self._stop_clients()
        self.server.kill()

    def _stop_clients(self) -> None:
        for actor in self._actors:
            actor.stop()
        self.repeater.stop()

    def faults(self) -> list[str]:
        """
        What is known to be wrong by now.
        """
        actors = (self.ledger, self.follower, self.ends, self.topics, self.repeater)
        found = [fault for actor in actors for fault in actor.faults]
        found += [f"a producer failed: {writer.failure!r}" for writer in self._writers if writer.failure]
        found += [f"the server has set something aside: {path}" for path in self.server.files("*.cut-*")]
        return [*found, *(f"in the server's log: {trace}" for trace in self.server.tracebacks())]
