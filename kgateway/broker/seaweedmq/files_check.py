"""
Whether SeaweedMQ's offsets follow one another in the log files of a partition: a file that is missing, or cut, leaves a
gap.
"""

from collections.abc import Iterable, Iterator

from kgateway.broker.seaweedmq.folders import Folder
from kgateway.broker.seaweedmq.ledger_faults import Fault, Kind
from kgateway.broker.seaweedmq.log_entries import Entry
from kgateway.wire.malformed import Malformed


class FilesCheck:
    """
    Of one partition. It is shown all messages, in their order; what is before the first one is gone with its files.
    """

    def __init__(self) -> None:
        self._path: str | None = None
        self._next = 0
        self._damage: list[Fault] = []

    def show_damage(self, path: str, error: Malformed) -> None:
        """
        There are no more messages in this file, and it goes on.
        """
        self._damage.append(Fault(Kind.COVERAGE, f"{path} cannot be read to its end: {error}"))

    def show(self, folder: Folder, entries: Iterable[Entry]) -> Iterator[Fault]:
        """
        What is missing before these messages, or between them.
        """
        yield from self.rest()
        for entry in entries:
            if folder.path != self._path:
                self._next = folder.first_message if self._path else entry.offset
                self._path = folder.path
            if entry.offset > self._next:
                reason = f"messages {self._next} to {entry.offset - 1} of {self._path} are in none of its files"
                yield Fault(Kind.COVERAGE, reason)
            self._next = max(self._next, entry.offset + 1)

    def rest(self) -> Iterator[Fault]:
        """
        What is wrong with files behind the messages that were shown.
        """
        damage, self._damage = self._damage, []
        yield from damage
