"""
The findings of a check, and how much it has checked.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kgateway.broker.log.files.disk import Disk

_UNSEEN = -1


@dataclass(frozen=True, slots=True)
class Finding:
    """
    A fault, where it is, and what to do about it; or something worth knowing that is no fault.
    """

    path: Path
    what: str
    remedy: str
    byte: int | None = None
    offset: int | None = None
    is_fault: bool = True

    def __str__(self) -> str:
        byte = "" if self.byte is None else f", byte {self.byte}"
        offset = "" if self.offset is None else f", offset {self.offset}"
        return f"{self.path}{byte}{offset}: {self.what}; {self.remedy}"


Steps = Iterator[Finding | None]  # `None`: some work is done, and the tally tells how much


@dataclass(slots=True)
class Tally:
    files: int = 0
    batches: int = 0
    records: int = 0  # as batch headers say
    bytes: int = 0
    bytes_in_all: int = 0


@dataclass(slots=True)
class Survey:
    disk: Disk
    is_ours: bool  # else Kafka may have written it, whose logs may have gaps
    in_use: bool
    was_clean: bool  # shut down cleanly, so everything fits together
    tally: Tally = field(default_factory=Tally)
    largest_producer_id: int = _UNSEEN
    unread: set[Path] = field(default_factory=set)

    def read(self, path: Path) -> bytes:
        data = self.disk.read(path)
        self.tally.files += 1
        self.tally.bytes += len(data)
        return data

    def note_producer(self, producer_id: int) -> None:
        self.largest_producer_id = max(self.largest_producer_id, producer_id)

    def reading(self, path: Path, steps: Steps) -> Steps:
        """
        The steps; a file that cannot be read becomes a finding as well.
        """
        try:
            yield from steps
        except FileNotFoundError as error:
            if not self.in_use:  # else its process has removed it meanwhile
                yield Finding(Path(error.filename or path), "it is missing", "restore it from a copy")
        except OSError as error:
            self.unread.add(path)
            yield unreadable(Path(error.filename or path), error.strerror or str(error))


def unreadable(path: Path, reason: str) -> Finding:
    return Finding(
        path, f"it cannot be read: {reason}", "check its disk and its permissions, and restore it from a copy"
    )


@dataclass(slots=True)
class Reached:
    """
    The end of the log so far, from segment to segment. It is not known after a segment that cannot be read.
    """

    next_offset: int
    leader_epoch: int = -1
    is_known: bool = False
