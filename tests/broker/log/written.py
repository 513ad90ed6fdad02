"""
What is written into a log by tests that compare it, and what becomes of its indexes.
"""

from collections.abc import Callable
from pathlib import Path

from hypothesis import strategies as st

from kgateway.broker.epochs import Epochs
from kgateway.cluster.partition import Found
from kgateway.records.batch import Batch
from kgateway.records.record import records
from tests.broker.behaviour import at_times
from tests.records.sealed import sealed

CRASHES = ("behind", "index missing", "time index missing", "shorter", "longer", "time longer", "garbage")
_TIMES = st.lists(st.integers(-1, 40), min_size=1, max_size=4)


def batches() -> st.SearchStrategy[Batch]:
    """
    With timestamps that go up and down, or are none, and headers that may claim too much, or what cannot be.
    """

    def claiming(times: list[int], lie: int) -> Batch:
        sent = at_times(*times)
        if lie == 0:
            return sent
        return sealed(sent, max_timestamp=max(times) + lie if lie > 0 else times[0] + lie)

    return st.builds(claiming, _TIMES, st.just(0) | st.integers(-3, 30))


class Written:
    """
    What was appended.
    """

    def __init__(self, batch: Batch, offset: int, epoch: int, data: bytes) -> None:
        times = [record.timestamp for record in records(batch)]
        self.found = [Found(offset + number, time, epoch) for number, time in enumerate(times)]
        self.size, self.data, self.epoch = len(data), data, epoch
        self.offset, self.end = offset, offset + len(times)


def epochs_of(written: list[Written]) -> Epochs:
    """
    The epochs under which these were.
    """
    found = Epochs()
    for each in written:
        found.assign(each.epoch, each.offset)
    return found


def damage(index: Path, time_index: Path, how: str, which: int, junk: bytes) -> None:
    """
    Do this to the two files, as far as they are there.
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
