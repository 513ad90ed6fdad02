"""
Looks whether log files are whole, and whether what is kept of ledgers agrees with them, and names what is wrong.
Nothing is changed.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import NamedTuple

from kgateway.broker.seaweedmq.files_check import FilesCheck
from kgateway.broker.seaweedmq.forms.form import Form, LeftOut
from kgateway.broker.seaweedmq.history import History
from kgateway.broker.seaweedmq.ledger import Ledger
from kgateway.broker.seaweedmq.ledger_check import LedgerCheck
from kgateway.broker.seaweedmq.ledger_faults import verify
from kgateway.broker.seaweedmq.outside import Outside, empty_ledger
from kgateway.broker.seaweedmq.topics import Stored
from kgateway.wire.malformed import Malformed

_NO_LEDGER = "it has messages and no ledger yet; a gateway makes one when it serves the topic"


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
        ledger = replayed.ledger if replayed else empty_ledger(history, stored.kept.form)
        self.tally.rows += len(ledger.rows)
        for reason in replayed.faults if replayed else ():
            yield Finding(place, "coverage", reason)
        if start is not None:
            ledger.drop_before(start)  # what was there before is gone
        for fault in verify(ledger):
            yield Finding(place, fault.kind.value, fault.reason)
        is_kept = replayed is not None
        async for found in self._files(place, stored.kept.form, history, ledger, is_kept=is_kept):
            yield found

    async def _files(
        self, place: str, form: Form, history: History, ledger: Ledger, *, is_kept: bool
    ) -> AsyncIterator[Finding | None]:
        check, files, end, at = LedgerCheck(ledger), FilesCheck(), ledger.start, 0
        async for folder, piece in history.messages(None, files.show_damage):
            faults = list(files.show(folder, piece))
            for placed in form.walk(piece, folder.shift, end, _passed_over):
                end = placed.offset + placed.span
                faults += check.show(placed, (folder.unix_time_ns, folder.part))
            for fault in faults:
                yield Finding(place, fault.kind.value, fault.reason)
            self.tally.bytes += piece[-1].end - (at if piece[0].end > at else 0)  # else it begins a file
            at = piece[-1].end
            yield None
        for fault in (*files.rest(), *check.rest()):
            yield Finding(place, fault.kind.value, fault.reason)
        if check.ahead:
            reason = f"offsets {ledger.end} to {end - 1} are in files and not in what is kept of the ledger yet"
            yield Finding(place, "coverage", reason if is_kept else _NO_LEDGER, is_fault=False)


def _passed_over(left_out: LeftOut) -> None:
    """
    What nobody can read has no row.
    """
