"""
Clients of a gateway in front of a cluster whose processes are killed. The clients and their check are those of the
embedded log, with topics in the formats of SeaweedMQ.
"""

from collections.abc import Sequence
from random import Random
from time import monotonic, sleep
from uuid import uuid4

from tests.faults.clients import Clients
from tests.faults.ledger import Ledger, PartitionName
from tests.faults.producers import Writer
from tests.faults.seaweedmq.commits import Commits
from tests.faults.seaweedmq.gateway import Gateway

_PARTITIONS = 2
_RECORD_BYTES = 500  # about
_IDEMPOTENT, _PLAIN = 2, 1  # producers
_POLL_S = 0.01
_BACK_S = 60  # until all partitions take records again


class PatientWriter(Writer):
    """
    A writer that sends its queue in few batches, because an answer can take as long as a broker takes to write its
    files.
    """

    def _config(self) -> dict[str, str | int | bool]:
        large = {"batch.size": 1_000_000, **({"max.in.flight": 5} if self._idempotent else {})}
        return {**super()._config(), **large}


class Load:
    """
    Clients with one acknowledgement mode, and a topic for each form.
    """

    def __init__(self, gateway: Gateway, acks: str, forms: Sequence[str], seed: str) -> None:
        self.ledger = Ledger()
        self._gateway = gateway
        self._acks = acks
        name = uuid4().hex[:8]
        self._topics = {f"{form}-{acks}-{name}": form for form in forms}
        self.places = [(topic, index) for topic in self._topics for index in range(_PARTITIONS)]
        numbered = [place for place in self.places if self._topics[place[0]] != "plain"]
        writers = [
            *(self._writer(number, seed, numbered, True) for number in range(_IDEMPOTENT) if numbered),
            *(self._writer(_IDEMPOTENT + number, seed, self.places, False) for number in range(_PLAIN)),
        ]
        self.commits = Commits(gateway.bootstrap, f"group-{acks}-{name}", self.places)
        self.clients = Clients(gateway, self.ledger, writers, self.places, numbered, [self.commits])

    def _writer(self, number: int, seed: str, places: Sequence[PartitionName], idempotent: bool) -> Writer:
        sizes = dict.fromkeys(places, _RECORD_BYTES)
        random = Random(f"{seed} {self._acks} {number}")
        return PatientWriter(number, self._gateway.bootstrap, self.ledger, sizes, random, idempotent=idempotent)

    def begin(self) -> None:
        """
        Create the topics and start the clients.
        """
        for topic, form in self._topics.items():
            self._gateway.create(topic, _PARTITIONS, self._acks, form)
        self.clients.begin()

    def wait_until_all_take_records(self) -> float:
        """
        Wait until in each partition a record was acknowledged that was sent after now. Returns the seconds until the
        first one.
        """
        began, first = monotonic(), 0.0
        sent = self._sent()
        while True:
            promises = self._promises()
            waiting = [place for place in self.places if promises[place] <= sent[place]]
            waited = monotonic() - began
            if len(waiting) < len(self.places) and not first:
                first = waited
            if not waiting:
                return first
            assert waited < _BACK_S, f"nothing is acknowledged for {waited:.0f} s in {waiting}"
            sleep(_POLL_S)

    def _promises(self) -> dict[PartitionName, int]:
        found = dict.fromkeys(self.places, 0)
        for stream, promised in list(self.ledger.acknowledged.items()):
            found[stream.place] += len(promised)
        return found

    def _sent(self) -> dict[PartitionName, int]:
        found = dict.fromkeys(self.places, 0)
        for stream, count in list(self.ledger.sent.items()):
            found[stream.place] += count
        return found

    def faults(self) -> list[str]:
        """
        The faults that are known by now.
        """
        return [*self.clients.faults(), *(f"in the gateway's log: {trace}" for trace in self._gateway.tracebacks())]
