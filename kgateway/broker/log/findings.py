"""
What a check of files finds, and what it has looked at.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kgateway.broker.log.disk import Disk

_UNSEEN = -1


@dataclass(frozen=True, slots=True)
class Finding:
    """
    Where something is wrong, what, and what to do; or, where it is no fault, something worth knowing.
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
    """
    How much was looked at.
    """

    files: int = 0
    batches: int = 0
    records: int = 0  # as the headers of batches tell
    bytes: int = 0
    bytes_in_all: int = 0


@dataclass(slots=True)
class Survey:
    """
    What is known of the folder that is looked at.
    """

    disk: Disk
    is_ours: bool  # else Kafka wrote it, which has more freedom
    in_use: bool
    was_clean: bool  # closed by its process, so that everything fits together
    tally: Tally = field(default_factory=Tally)
    largest_producer_id: int = _UNSEEN

    def read(self, path: Path) -> bytes:
        """
        A small file.
        """
        data = self.disk.read(path)
        self.tally.files += 1
        self.tally.bytes += len(data)
        return data

    def note_producer(self, producer_id: int) -> None:
        """
        A batch is of this producer.
        """
        self.largest_producer_id = max(self.largest_producer_id, producer_id)

    def reading(self, path: Path, steps: Steps) -> Steps:
        """
        The steps; that the file cannot be read is a finding as well.
        """
        try:
            yield from steps
        except FileNotFoundError:
            if not self.in_use:  # else its process has removed it meanwhile
                yield unreadable(path, "it is gone meanwhile")
        except OSError as error:
            yield unreadable(Path(error.filename or path), error.strerror or str(error))


def unreadable(path: Path, reason: str) -> Finding:
    """
    The disk, or the system, does not give the file.
    """
    return Finding(
        path, f"it cannot be read: {reason}", "see to its disk and to its rights, and bring it back from a copy"
    )
