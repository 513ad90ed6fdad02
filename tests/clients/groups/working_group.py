"""
A working group: a producer appends to its topics, its members process and commit the records, and all events are
collected for the check.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from time import monotonic, sleep
from types import TracebackType
from typing import Self

from kgateway.testing.kafka import Kafka
from tests.clients.client import PATIENCE_S
from tests.clients.groups.crew import Crew
from tests.clients.groups.events import Committed, Event, Place, Processed, Seen
from tests.clients.groups.group_check import faults
from tests.clients.groups.members.reports import Wanted, place
from tests.clients.groups.observer import Observer, details
from tests.clients.raw import Raw
from tests.faults.client import Client
from tests.faults.ledger import Ledger
from tests.faults.producers import Writer, all_acknowledged

_RECORD_BYTES = 60
_POLL_S = 0.1
_SOON_S = 10
_TRIES = 3


class UniversalWriter(Writer):
    """
    A producer whose batches everyone can read: kafkajs can decompress one codec only.
    """

    def _config(self) -> dict[str, str | int | bool]:
        return super()._config() | {"compression.type": self._random.choice(["none", "gzip"])}


class WorkingGroup:
    """
    A group, its topics with this many partitions, and the producer that fills them.
    """

    def __init__(self, port: int, how: Wanted, partitions: Mapping[str, int], random: Random) -> None:
        self.events: list[Event] = []
        self.crew = Crew(how, self.events.append)
        self.observer = Observer(port, how.group, self.events.append)
        places = [(topic, index) for topic, count in partitions.items() for index in range(count)]
        self.places = {place(*where) for where in places}
        self._port = port
        self._group = how.group
        self._partitions = partitions
        self._ledger = Ledger()
        self._tries_left = _TRIES
        sizes = dict.fromkeys(places, _RECORD_BYTES)
        self._writer = UniversalWriter(0, how.bootstrap, self._ledger, sizes, random, idempotent=True)

    def __enter__(self) -> Self:
        with Raw(f"127.0.0.1:{self._port}") as raw:
            for topic, count in self._partitions.items():
                raw.create(topic, count)
        self.observer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._writer.stop()
        self.observer.stop()
        self.crew.__exit__(kind, error, traceback)
        if error:
            told = sorted(self.events, key=lambda event: event.at)
            print(*(event for event in told if not isinstance(event, Processed | Committed | Seen)), sep="\n")

    def write(self) -> None:
        """
        Start to produce.
        """
        self._writer.start()

    def is_shared(self) -> bool:
        """
        Whether each partition has an owner, and each living member has a partition.
        """
        return self.crew.shares(self.places) and all(member.owned for member in self.crew.living)

    @property
    def summary(self) -> str:
        processed = sum(len(found) for member in self.crew.members for found in member.processed.values())
        refused = Counter(refusal.code for member in self.crew.members for refusal in member.refusals)
        return (
            f"{self._group}: {self._ledger.promises:,} records, processed {processed:,} times; {self.observer.asked} "
            f"looks at what is committed; commits refused: {dict(refused)}"
        )

    def commit_further(self, patience_s: float = PATIENCE_S) -> None:
        """
        Wait until more is committed in each partition than now.
        """
        before = dict(self.observer.last)

        def is_further() -> bool:
            now = self.observer.last
            return all(now.get(place, 0) > before.get(place, 0) for place in self.places)

        self.until(is_further, "committed further", patience_s)

    def finish(self, find_out_s: float) -> list[str]:
        """
        Stop producing, wait until everything is processed and everybody has left, and return all faults since the
        beginning; members find out within this many seconds that they were fenced.
        """
        assert all_acknowledged([self._writer]), self._ledger.missing()
        while not self._all_is_committed():  # a commit was refused in a rebalance that left a member its partitions
            self._writer.go_on()
            self.commit_further()
            assert all_acknowledged([self._writer]), self._ledger.missing()
        told = self._acknowledged()
        ends = self._ends()
        for member in self.crew.living:
            member.ask_to_leave()
        self.crew.wait(lambda: all(member.has_ended for member in self.crew.members), "gone")
        self.observer.stop()
        self._writer.stop()
        deserters = [member for member in self.crew.members if member.has_ended and not member.is_leaving]
        return [
            *(f"{member} ended by itself: {member.report()}" for member in deserters),
            *(f"{what} has failed: {what.failure!r}" for what in (self.observer, self._writer) if what.failure),
            *self._ledger.faults,
            *(
                f"{where}: {len(offsets)} records are acknowledged, and the log ends at {ends[where]}"
                for where, offsets in told.items()
                if len(offsets) != ends[where]
            ),
            *faults(self.events, ends, find_out_s),
        ]

    def _acknowledged(self) -> dict[Place, list[int | None]]:
        return {place(*stream.place): [*found.values()] for stream, found in self._ledger.acknowledged.items()}

    def _ends(self) -> dict[Place, int]:
        """
        A record whose offset nobody learned is still known to be there.
        """
        return {
            where: max([len(offsets), *(offset + 1 for offset in offsets if offset is not None)])
            for where, offsets in self._acknowledged().items()
        }

    def _all_is_committed(self) -> bool:
        """
        Whether everything is committed soon; tried a few times.
        """
        self._tries_left -= 1
        ends, patience_s = self._ends(), _SOON_S if self._tries_left else PATIENCE_S
        try:
            self.until(lambda: self.observer.last == ends, f"all committed to {ends}", patience_s)
        except AssertionError:
            if not self._tries_left:
                raise
            return False
        return True

    def until(self, holds: Callable[[], bool], what: str, patience_s: float) -> float:
        """
        Wait until the condition holds; returns how long it took.
        """
        began = monotonic()
        while not holds():
            if monotonic() - began > patience_s:
                with Client(self._port) as client:
                    group = details(client, self._group)
                told = "\n".join(member.report() for member in self.crew.living)
                raise AssertionError(f"not {what} within {patience_s:.1f} s: {group}, and the living are\n{told}")
            sleep(_POLL_S)
        return monotonic() - began


@contextmanager
def no_traceback_in(kafka: Kafka) -> Iterator[None]:
    """
    Check that the gateway logs no traceback, and show its log if anything is wrong.
    """
    try:
        yield
        assert "Traceback" not in kafka.log
    except BaseException:
        print(kafka.log)
        raise
