"""
A server with an embedded log that is repeatedly killed under load.
"""

from pathlib import Path
from random import Random

from kgateway.messages.create_topics import CreateTopicsRequest
from tests.faults.client import Client
from tests.faults.clients import Clients
from tests.faults.ledger import Ledger, PartitionName
from tests.faults.producers import Writer
from tests.faults.topics import Topics
from tests.faults.victim import Victim

# Sparse indexes, because Kafka's tool reads a segment up to each of their entries.
_TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "plain": (3, {"segment.bytes": str(4 << 20), "index.interval.bytes": "100000"}),
    "synced": (2, {"segment.bytes": str(4 << 20), "index.interval.bytes": "100000", "kgateway.acks.fsync": "true"}),
    "small": (2, {"segment.bytes": str(1 << 20), "index.interval.bytes": "16000"}),
}
_BYTES = {"plain": 300, "synced": 300, "small": 2_000}  # approximate bytes of a record
_IDEMPOTENT, _PLAIN = 3, 2  # producers
_CREATE_VERSION = 7


class Crashes:
    """
    The server, its clients, and what they were promised.
    """

    def __init__(self, folder: Path, seed: str) -> None:
        self.server = Victim(folder, Random(seed))
        self.ledger = Ledger()
        self.places: list[PartitionName] = [
            (topic, index) for topic, (count, _) in _TOPICS.items() for index in range(count)
        ]
        writers = [self._writer(number, Random(f"{seed} {number}")) for number in range(_IDEMPOTENT + _PLAIN)]
        self.topics = Topics(self.server.port, Random(f"{seed} topics"))
        self.clients = Clients(self.server, self.ledger, writers, self.places, self.places, [self.topics])

    def _writer(self, number: int, random: Random) -> Writer:
        sizes = {place: _BYTES[place[0]] for place in self.places}
        return Writer(number, self.server.bootstrap, self.ledger, sizes, random, idempotent=number < _IDEMPOTENT)

    def begin(self) -> None:
        """
        Start the server, create the topics and start the clients.
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
        self.clients.begin()

    def start(self) -> None:
        """
        Start the dead server.
        """
        self.server.start()
        self.clients.server_started()

    def finish(self) -> None:
        """
        Stop the clients, then the server cleanly.
        """
        self.clients.stop()
        with Client(self.server.port) as client:
            self.topics.check(client)
        self.server.stop()

    def give_up(self) -> None:
        self.clients.stop()
        self.server.kill()

    def faults(self) -> list[str]:
        """
        The faults known so far.
        """
        found = self.clients.faults()
        found += [f"the server has set something aside: {path}" for path in self.server.files("*.cut-*")]
        return [*found, *(f"in the server's log: {trace}" for trace in self.server.tracebacks())]
