"""
Looks whether what is kept of ledgers agrees with the log files, and names what is wrong. Nothing is changed.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import NamedTuple

from kgateway.broker.seaweedmq.forms.form import LeftOut
from kgateway.broker.seaweedmq.history import History
from kgateway.broker.seaweedmq.ledger import Ledger
from kgateway.broker.seaweedmq.ledger_check import LedgerCheck
from kgateway.broker.seaweedmq.ledger_faults import verify
from kgateway.broker.seaweedmq.outside import Outside
from kgateway.broker.seaweedmq.topics import Stored
from kgateway.wire.malformed import Malformed


class Finding(NamedTuple):
    """
    One thing to be told; where it is no fault, it need not stay as it is.
    """

    place: str
    kind: str
    reason: str
    is_fault: bool = True


@dataclass(slots=True)
class Tally:
    """
    What was looked at.
    """

    bytes_in_all: int = 0
    bytes: int = 0
    files: int = 0
    partitions: int = 0
    rows: int = 0


class Verifying:
    """
    Of these topics. A step that has found nothing is told as `None`.
    """

    def __init__(self, outside: Outside, topics: list[Stored]) -> None:
        self.tally = Tally()
        self._outside = outside
        self._places = [(stored, index) for stored in topics for index in range(stored.kept.partition_count)]

    async def steps(self) -> AsyncIterator[Finding | None]:
        """
        What is found, as it is.
        """
        for reason in self._outside.unread:
            yield Finding("offset-mappings", "sequence", reason)
        histories = [self._outside.history(*place) for place in self._places]
        for history in histories:
            await history.refresh()
            self.tally.bytes_in_all += sum(history.sizes)
            self.tally.files += len(history.sizes)
        for (stored, index), history in zip(self._places, histories, strict=True):
            self.tally.partitions += 1
            try:
                async for found in self._partition(stored, index, history):
                    yield found
            except Malformed as error:
                yield Finding(f"{stored.name}-{index}", "coverage", f"its files cannot be read on: {error}")

    async def _partition(self, stored: Stored, index: int, history: History) -> AsyncIterator[Finding | None]:
        place, replayed = f"{stored.name}-{index}", self._outside.replayed(stored, index)
        start = await history.start()
        if replayed is None:
            self.tally.bytes += sum(history.sizes)
            if start is not None:
                reason = "it has messages and no ledger yet; a gateway makes one when it serves the topic"
                yield Finding(place, "coverage", reason, is_fault=False)
            return
        ledger = replayed.ledger
        self.tally.rows += len(ledger.rows)
        for reason in replayed.faults:
            yield Finding(place, "coverage", reason)
        if start is not None:
            ledger.drop_before(start)  # what was there before is gone
        for fault in verify(ledger):
            yield Finding(place, fault.kind.value, fault.reason)
        async for found in self._files(place, stored, history, ledger):
            yield found

    async def _files(
        self, place: str, stored: Stored, history: History, ledger: Ledger
    ) -> AsyncIterator[Finding | None]:
        form, check, end, at = stored.kept.form, LedgerCheck(ledger), ledger.start, 0
        async for folder, piece in history.messages(ledger.start):
            for placed in form.walk(piece, folder.shift, end, _passed_over):
                end = placed.offset + placed.span
                for fault in check.show(placed, (folder.unix_time_ns, folder.part)):
                    yield Finding(place, fault.kind.value, fault.reason)
            self.tally.bytes += piece[-1].end - (at if piece[0].end > at else 0)  # else it begins a file
            at = piece[-1].end
            yield None
        for fault in check.rest():
            yield Finding(place, fault.kind.value, fault.reason)
        if check.ahead:
            reason = f"offsets {ledger.end} to {end - 1} are in files and not in what is kept of the ledger yet"
            yield Finding(place, "coverage", reason, is_fault=False)


def _passed_over(left_out: LeftOut) -> None:
    """
    What nobody can read has no row.
    """
