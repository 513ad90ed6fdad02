"""
Clients of a server that is killed again and again, and the check that they got what they were promised.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol
from zlib import crc32

from tests.faults.accounting import Accounts, Read
from tests.faults.following import Ends, Follower, heads, records
from tests.faults.ledger import Ledger, Place
from tests.faults.producing import PATIENCE_S, Writer, all_acknowledged
from tests.faults.repeating import Repeater


class Server(Protocol):
    """
    What they talk to.
    """

    @property
    def port(self) -> int:
        """
        Of its listener.
        """

    @property
    def bootstrap(self) -> str:
        """
        Where clients begin.
        """


class Actor(Protocol):
    """
    Who does something in a thread.
    """

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Watcher(Actor, Protocol):
    """
    Who tells what is wrong, too.
    """

    faults: list[str]


class Clients:
    """
    Producers of these places, of which one repeats what was acknowledged in some of them; consumers; and others.
    """

    def __init__(
        self,
        server: Server,
        ledger: Ledger,
        writers: Sequence[Writer],
        places: Sequence[Place],
        repeated: Collection[Place],
        others: Sequence[Watcher] = (),
    ) -> None:
        self.ledger = ledger
        self.places = places
        self.repeater = Repeater(len(writers), server.port, ledger, repeated)
        self.follower = Follower(server.bootstrap, places)
        self.ends = Ends(server.port, places)
        self._server = server
        self._writers = writers
        self._watchers: Sequence[Watcher] = (self.follower, self.ends, *others)
        self._actors: Sequence[Actor] = (*writers, *self._watchers)

    def begin(self) -> None:
        """
        Let them work.
        """
        self.server_started()
        for actor in self._actors:
            actor.start()

    def server_started(self) -> None:
        """
        The server runs again.
        """
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
        """
        Let all of them end.
        """
        for actor in self._actors:
            actor.stop()
        self.repeater.stop()

    def faults(self) -> list[str]:
        """
        What is known to be wrong by now.
        """
        found = [*self.ledger.faults, *self.repeater.faults]
        found += [fault for watcher in self._watchers for fault in watcher.faults]
        return [*found, *(f"a producer failed: {writer.failure!r}" for writer in self._writers if writer.failure)]
