"""
How partitions stand, as far as that can be seen without owning them.

What is in files is seen in the files. How much more a broker has in its memory is asked only where somebody publishes:
a broker that is asked of a partition which it has not loaded would begin to count it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kgateway.broker.seaweedmq.history import End
from kgateway.broker.seaweedmq.layout import Range, slots
from kgateway.broker.seaweedmq.outside import Outside
from kgateway.broker.seaweedmq.topics import Stored
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.records.batch import read_batch
from kgateway.wire.malformed import Malformed

_ACKS = "seaweedmq.acks"


@dataclass(frozen=True, slots=True)
class Standing:
    """
    Of one partition.
    """

    topic: str
    partition: int
    form: str
    acks: str | None  # where the topic sets it
    slots: Range
    rows: int  # of its ledger, that are kept
    ledger_end: int  # Kafka's offset behind them
    first_ns: int | None  # when the first message was published, or before
    last_ns: int | None
    start: int  # of the log
    flushed: int  # Kafka's offset before which all is in files
    held: int | None  # before which all is at least in the memory of its broker; `None` where nobody can tell
    messages_held: int  # in its memory, and in no file yet
    publishers: tuple[str, ...]

    @property
    def high_watermark(self) -> int | None:
        """
        Before which consumers can read, as far as it is known.
        """
        return self.flushed if self.acks == "flushed" else self.held


async def standings(outside: Outside, topics: Sequence[Stored]) -> list[Standing]:
    """
    Of all partitions of these topics.
    """
    found: list[Standing] = []
    for stored in topics:
        publishers = [each for each in await outside.messaging.publishers(stored.name) if each.is_active]
        for index, stretch in enumerate(stored.kept.generations[-1].stretches):
            theirs = [each for each in publishers if each.partition.range_start == stretch.part.start]
            found.append(await _standing(outside, stored, index, tuple(each.publisher_name for each in theirs)))
    return found


async def _standing(outside: Outside, stored: Stored, index: int, publishers: tuple[str, ...]) -> Standing:
    history, replayed = outside.history(stored, index), outside.replayed(stored, index)
    await history.refresh()
    start = await history.start()
    end = await history.end(EARLIEST_OFFSET)
    ledger = replayed.ledger if replayed else None
    times = ledger.rows.times if ledger else ()
    held, more = await _held(outside, stored, index, end) if publishers else (end.offset, 0)
    return Standing(
        stored.name,
        index,
        stored.kept.form.name,
        stored.kept.configs.get(_ACKS),
        slots(index),
        len(times),
        ledger.end if ledger else EARLIEST_OFFSET,
        times[0] if times else None,
        times[-1] if times else None,
        max(start or EARLIEST_OFFSET, ledger.start if ledger else EARLIEST_OFFSET),
        end.offset,
        held,
        more,
        publishers,
    )


async def _held(outside: Outside, stored: Stored, index: int, end: End) -> tuple[int | None, int]:
    """
    How far the memory of its broker goes, and how many messages of it are in no file.
    """
    assignment = (await outside.messaging.assignments(stored.name))[index]
    next_message = await outside.messaging.next_offset(stored.name, assignment)
    more = max(next_message - end.next_message, 0)
    if not (more and stored.kept.form.batched):
        return end.offset + more, more
    found = await outside.messaging.fetch(stored.name, assignment, next_message - 1)
    try:
        return (read_batch(found[-1].value).header.last_offset + 1 if found else None), more
    except Malformed:
        return None, more
