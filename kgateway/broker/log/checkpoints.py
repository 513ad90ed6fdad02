"""
How far the logs of all partitions are known to be good, in two files of Kafka's form: a version, how many lines follow,
and lines of a topic, a partition and an offset.

    recovery-point-offset-checkpoint    what is before it was synced: the death of the machine does not touch it
    kgateway.settled                    what is before it was written, and the files beside it tell of it: the death of
                                        the process does not touch it. Partitions that were not opened since the
                                        machine was started are not in it.

Both are written every few seconds, and when the gateway stops. They may be behind the truth, never ahead of it; and
where one is damaged, that costs only time.
"""

import re
from collections.abc import Collection
from pathlib import Path

from kgateway.broker.log.disk import Disk

SYNCED = "recovery-point-offset-checkpoint"
SETTLED = "kgateway.settled"
_VERSION = "0"
_ROW = re.compile("(.+) ([0-9]{1,10}) ([0-9]{1,19})")  # all others cannot be

Place = tuple[str, int]  # topic, partition
Offsets = dict[Place, int]


class Checkpoints:
    """
    The two files of a data folder.
    """

    def __init__(self, folder: Path, disk: Disk, *, trust_settled: bool, clean: bool = False) -> None:
        self.clean = clean  # whether all was synced when the last process ended
        self._folder = folder
        self._disk = disk
        self.synced = read_offsets(folder / SYNCED, disk) or {}
        self.settled = (trust_settled and read_offsets(folder / SETTLED, disk)) or {}
        self._gone = set[str]()  # topics of whose partitions the files may still tell

    def keep(self, places: Collection[Place]) -> None:
        """
        There are no other partitions than these.
        """
        for place in [place for place in self.synced | self.settled if place not in places]:
            self.forget(place)

    def forget(self, place: Place) -> None:
        """
        There is no such partition any more.
        """
        self.synced.pop(place, None)
        self.settled.pop(place, None)
        self._gone.add(place[0])

    def begin(self, name: str) -> None:
        """
        There will be a topic of this name: what the files tell of an earlier one must not be believed of it.
        """
        if name in self._gone:
            self.save(sync=True)

    def save(self, *, sync: bool = False) -> None:
        """
        Write both files.
        """
        self._disk.write(self._folder / SYNCED, written(self.synced), sync=sync)
        self._disk.write(self._folder / SETTLED, written(self.settled), sync=sync)
        if sync:
            self._gone.clear()


def read_offsets(path: Path, disk: Disk) -> Offsets | None:
    """
    What a file of this form tells, and nothing where there is none; `None` where it is damaged.
    """
    try:
        version, count, *rows = disk.read(path).decode().split("\n")
    except FileNotFoundError:
        return {}
    except ValueError:
        return None
    found = [_ROW.fullmatch(row) for row in rows if row]
    fields = [row.groups() for row in found if row]
    if version != _VERSION or count != str(len(found)) or len(fields) != len(found):
        return None
    return {(topic, int(index)): int(offset) for topic, index, offset in fields}


def written(offsets: Offsets) -> bytes:
    """
    The file that tells this.
    """
    rows = [f"{topic} {index} {offset}\n" for (topic, index), offset in offsets.items()]
    return f"{_VERSION}\n{len(rows)}\n{''.join(rows)}".encode()
