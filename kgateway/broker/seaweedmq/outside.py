"""
A cluster as it is seen by who does not own its topics: topics, files, and what is kept of ledgers. Nothing is changed.
"""

from collections.abc import Callable, Sequence

from twisted.internet.interfaces import IReactorTime

from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.decoded_files import DecodedFiles
from kgateway.broker.seaweedmq.folders import folders_of
from kgateway.broker.seaweedmq.forms.form import Form
from kgateway.broker.seaweedmq.history import History
from kgateway.broker.seaweedmq.layout import NAMESPACE
from kgateway.broker.seaweedmq.ledger import Ledger
from kgateway.broker.seaweedmq.ledger_records import TOPIC, Owner, Replay, Replayed
from kgateway.broker.seaweedmq.partition_ledger import Known, PartitionLedger
from kgateway.broker.seaweedmq.topics import Stored, Topics
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.wire.malformed import Malformed

Progress = Callable[[int], None]  # told how many bytes more were read


class NotThere(Exception):
    """
    What was asked for is not in the cluster.
    """


class Outside:
    """
    Of one namespace.
    """

    def __init__(self, seaweed: Seaweed, clock: IReactorTime, namespace: str = NAMESPACE) -> None:
        self.unread: Sequence[str] = ()  # what cannot be read of what is kept, and was not kept again
        self._seaweed = seaweed
        self._clock = clock
        self._namespace = namespace
        self._topics = Topics(seaweed, namespace)
        self.messaging = self._topics.messaging
        self._decoded = DecodedFiles(0)
        self._replayed: dict[Owner, Replayed] = {}

    async def load(self) -> None:
        """
        Read what is kept of ledgers.
        """
        namespace = f"{self._namespace}-system"
        system = Topics(self._seaweed, namespace)
        seen, replay = await system.seen(TOPIC), Replay()
        if seen:
            history = self._history(seen.stored, 0, namespace)
            await history.refresh()
            try:
                async for _, piece in history.messages(EARLIEST_OFFSET):
                    for entry in piece:
                        replay.add(entry.key, entry.value)
            except Malformed as error:
                replay.missed.append(f"its files cannot be read on: {error}")
        self._replayed, self.unread = replay.found, replay.missed

    async def topics(self, names: Sequence[str] = ()) -> list[Stored]:
        """
        These topics; all there are where none is named.
        """
        found: list[Stored] = []
        for name in names or await self._topics.names():
            seen = await self._topics.seen(name)
            if seen:
                found.append(seen.stored)
            elif names:
                raise NotThere(f"there is no topic {name}")
        return found

    def history(self, stored: Stored, index: int) -> History:
        """
        What a partition has in files.
        """
        return self._history(stored, index, self._namespace)

    def replayed(self, stored: Stored, index: int) -> Replayed | None:
        """
        What is kept of the ledger of a partition.
        """
        return self._replayed.get(Owner(stored.kept.id, index))

    async def ledger(self, stored: Stored, index: int) -> Ledger:
        """
        The same, and what the files have behind it.
        """
        form, history, replayed = stored.kept.form, self.history(stored, index), self.replayed(stored, index)
        known = Known(replayed.ledger if replayed else empty_ledger(history, form))
        name = f"{stored.name}-{index}"
        await PartitionLedger(known, name, history, form, self._clock, lambda: None).follow()
        start = await history.start()
        if start is not None:
            known.ledger.drop_before(start)
        return known.ledger

    def _history(self, stored: Stored, index: int, namespace: str) -> History:
        folders = folders_of(stored.kept, stored.name, index, namespace)
        return History(self._seaweed, folders, stored.kept.form, self._decoded, self._clock)


def empty_ledger(history: History, form: Form) -> Ledger:
    """
    The ledger of a partition before its first row.
    """
    oldest = history.folders[0]
    return Ledger(form.batched, oldest.unix_time_ns, oldest.part)
