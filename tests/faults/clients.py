"""
Clients of a server that is repeatedly killed, and the check that every promise to them was kept.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol
from zlib import crc32

from tests.faults.accounting import Accounts, Read
from tests.faults.follower import EndWatcher, Follower, heads, records
from tests.faults.idempotent_producer import Repeater
from tests.faults.ledger import Ledger, PartitionName
from tests.faults.producers import PATIENCE_S, Writer, all_acknowledged


class Server(Protocol):
    @property
    def port(self) -> int: ...

    @property
    def bootstrap(self) -> str: ...


class Actor(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


class Watcher(Actor, Protocol):
    """
    A worker that also reports faults.
    """

    faults: list[str]


class Clients:
    """
    Producers of these partitions, one that repeats acknowledged batches in some of them, consumers, and other
    clients.
    """

    def __init__(
        self,
        server: Server,
        ledger: Ledger,
        writers: Sequence[Writer],
        places: Sequence[PartitionName],
        repeated: Collection[PartitionName],
        others: Sequence[Watcher] = (),
    ) -> None:
        self.ledger = ledger
        self.places = places
        self.repeater = Repeater(len(writers), server.port, ledger, repeated)
        self.follower = Follower(server.bootstrap, places)
        self.ends = EndWatcher(server.port, places)
        self._server = server
        self._writers = writers
        self._watchers: Sequence[Watcher] = (self.follower, self.ends, *others)
        self._actors: Sequence[Actor] = (*writers, *self._watchers)

    def begin(self) -> None:
        self.server_started()
        for actor in self._actors:
            actor.start()

    def server_started(self) -> None:
        self._repeated = self.repeater.started()

    def go_on(self) -> None:
        for writer in self._writers:
            writer.go_on()

    def check(self) -> Accounts:
        """
        Pause all producers, read everything back and account for it; errors are added to the faults.
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

    def _faults_in(self, place: PartitionName, accounts: Accounts) -> Iterator[str]:
        batches = heads(self._server.port, place)
        end = batches[-1].last_offset + 1 if batches else 0
        seen = self.follower.seen[place]
        if not self.follower.reaches(place, end) or len(seen) > end:
            yield f"{place}: the consumer that follows has come to {len(seen)}, and the end is {end}"
        changed: list[str] = []

        def compared() -> Iterator[Read]:
            for offset, value in records(self._server.bootstrap, place, end):
                if offset < len(seen) and seen[offset] != crc32(value):
                    changed.append(f"{place}: offset {offset} is not what a consumer has seen there before")
                yield Read(offset, value)

        yield from accounts.faults(place, batches, compared())
        yield from changed

    def stop(self) -> None:
        for actor in self._actors:
            actor.stop()
        self.repeater.stop()

    def faults(self) -> list[str]:
        """
        The faults known so far.
        """
        found = [*self.ledger.faults, *self.repeater.faults]
        found += [fault for watcher in self._watchers for fault in watcher.faults]
        return [*found, *(f"a producer failed: {writer.failure!r}" for writer in self._writers if writer.failure)]
