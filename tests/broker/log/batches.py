"""
Batches of random logs with their expected indexes, and the bytes of three batches.
"""

from collections.abc import Callable
from pathlib import Path

from hypothesis import strategies as st

from kgateway.broker.log.segments.index import OFFSETS, Index
from kgateway.broker.partition.leader_epochs import LeaderEpochs
from kgateway.cluster.partition import TimestampAndOffset
from kgateway.records.batch import Batch
from kgateway.records.record import records
from tests.broker.behaviour import at_times, batch
from tests.broker.log.log_brokers import laid
from tests.records.crc_batches import sealed

CRASHES = ("behind", "index missing", "time index missing", "shorter", "longer", "time longer", "garbage")
_TIMES = st.lists(st.integers(-1, 40), min_size=1, max_size=4)


def batches() -> st.SearchStrategy[Batch]:
    """
    Batches with timestamps that go up and down, or are missing, and headers that may claim too much or the
    impossible.
    """

    def claiming(times: list[int], lie: int) -> Batch:
        sent = at_times(*times)
        if lie == 0:
            return sent
        return sealed(sent, max_timestamp=max(times) + lie if lie > 0 else times[0] + lie)

    return st.builds(claiming, _TIMES, st.just(0) | st.integers(-3, 30))


class Written:
    def __init__(self, batch: Batch, offset: int, epoch: int, data: bytes) -> None:
        times = [record.timestamp for record in records(batch)]
        self.found = [TimestampAndOffset(offset + number, time, epoch) for number, time in enumerate(times)]
        self.size, self.data, self.epoch = len(data), data, epoch
        self.offset, self.end = offset, offset + len(times)


def epochs_of(written: list[Written]) -> LeaderEpochs:
    """
    The leader epochs under which the batches were appended.
    """
    found = LeaderEpochs()
    for each in written:
        found.assign(each.epoch, each.offset)
    return found


def damage(index: Path, time_index: Path, how: str, which: int, junk: bytes) -> None:
    """
    Damage the two files, as far as they exist.
    """
    changes: dict[str, tuple[Path, Callable[[bytes], bytes | None]]] = {
        "index missing": (index, lambda data: None),
        "time index missing": (time_index, lambda data: None),
        "shorter": (index, lambda data: data[: which % (len(data) + 1)]),
        "longer": (index, lambda data: data + junk),
        "time longer": (time_index, lambda data: data + junk),
        "garbage": (index, lambda data: (junk * len(data))[: len(data)]),
    }
    path, change = changes.get(how, (index, lambda data: data))
    if path.exists():
        data = change(path.read_bytes())
        path.unlink() if data is None else path.write_bytes(data)


FIRST_OFFSET = 10
PARTS = laid(batch(2), batch(1), batch(3), first=FIRST_OFFSET)  # at offsets 10, 12 and 13
STARTS = [0, len(PARTS[0]), len(PARTS[0]) + len(PARTS[1])]
DATA = b"".join(PARTS)
END = len(DATA)
_, SECOND, THIRD = STARTS
NO_BORDERS = Index(OFFSETS)


class Bytes:
    """
    A source that records how much is read.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.asked: list[tuple[int, int]] = []

    def __call__(self, position: int, size: int) -> bytes:
        self.asked.append((position, size))
        return self._data[position : position + size]


def changed(at: int, data: bytes = DATA, by: int = 0xFF) -> bytes:
    return data[:at] + bytes([data[at] ^ by]) + data[at + 1 :]
