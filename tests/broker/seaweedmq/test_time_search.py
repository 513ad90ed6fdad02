"""
Records in log files are found by timestamp and offset, and few files are read for that.
"""

import pytest

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweedmq.partitions.time_search import FileTimeSearch
from kgateway.cluster.partition import TimestampAndOffset
from kgateway.records.batch import Batch, batches
from tests.broker.behaviour import at_times
from tests.broker.seaweed.cluster import done
from tests.broker.seaweedmq.ledgers import shortened
from tests.broker.seaweedmq.log_files import NOON_S, LogFiles
from tests.records.crc_batches import sealed

NUMBERED = pytest.mark.parametrize("form", ["batch", "record"])
FILES = 20


def growing() -> list[list[Batch]]:
    """
    Two batches of two records for each file, at the times 0, 5, 10, 15, ...
    """
    return [[at_times(20 * n, 20 * n + 5), at_times(20 * n + 10, 20 * n + 15)] for n in range(FILES)]


@pytest.mark.parametrize("late_s", [0, -7, 8, 3600])
@pytest.mark.parametrize("form", ["batch", "record", "plain"])
def test_a_read_finds_its_file_by_the_ledger(
    form: str, late_s: int, seaweed: SeaweedCluster, filer: Filer, folder: str
) -> None:
    """
    Two of many files are read then; if the ledger's times are wrong, the record is still found.
    """
    files = LogFiles(seaweed, filer, folder, form, growing())
    files.history.ledger = files.ledger(late_s)
    for offset in (41, 0, 79):
        files.forget()
        (data, *_) = done(files.history.read(offset, 1, True, files.end))
        first = next(iter(batches(data))).header
        assert first.base_offset <= offset <= first.last_offset
        assert late_s or len(files.firsts) <= 2


@NUMBERED
@pytest.mark.parametrize("covered", [80, 40, 0])
def test_times_are_found(form: str, covered: int, seaweed: SeaweedCluster, filer: Filer, folder: str) -> None:
    """
    The ledger may cover any part; if it covers everything, only the file with the record is read.
    """
    files = LogFiles(seaweed, filer, folder, form, growing())
    ledger = files.ledger()
    ledger = files.history.ledger = shortened(ledger, sum(row.end <= covered for row in ledger.rows))
    searching = FileTimeSearch(files.history, files.format, ledger, 0, files.end)
    for timestamp, offset in ((202, 41), (0, 0), (395, 79)):
        found = done(searching.first(timestamp))
        assert found[:2] == (offset, 5 * offset)  # type: ignore[index]
    assert done(searching.first(396)) is None
    found = done(searching.largest(None))
    assert found[:2] == (79, 395)  # type: ignore[index]
    if covered == files.end and form == "batch":
        assert len(files.reads) == 3


@NUMBERED
def test_what_is_known_is_not_searched(form: str, seaweed: SeaweedCluster, filer: Filer, folder: str) -> None:
    """
    No file is read after the offset at which memory begins; a larger timestamp there is the largest.
    """
    files = LogFiles(seaweed, filer, folder, form, growing())
    ledger = files.ledger()
    searching = FileTimeSearch(files.history, files.format, ledger, 0, 40)
    known = TimestampAndOffset(60, 300, 0)
    if form == "batch":  # else all of it is in one row, which begins before
        assert done(searching.first(300)) is None
        ledger = shortened(ledger, sum(row.kafka <= 60 for row in ledger.rows))
        searching = FileTimeSearch(files.history, files.format, ledger, 0, 40)
        assert done(searching.largest(known)) == known
        assert files.reads == []
    assert done(searching.largest(TimestampAndOffset(60, 9_000, 0))) == TimestampAndOffset(60, 9_000, 0)


def test_headers_that_claim_too_much_are_found_out_once(seaweed: SeaweedCluster, filer: Filer, folder: str) -> None:
    """
    A batch without such a record is skipped, and not read again for that.
    """
    lying = [sealed(at_times(10, 20), max_timestamp=900 + n) for n in range(4)]
    files = LogFiles(seaweed, filer, folder, "batch", [[batch] for batch in (*lying, at_times(30, 700), at_times(40))])
    ledger = files.ledger()
    searching = FileTimeSearch(files.history, files.format, ledger, 0, files.end)
    assert done(searching.first(600)) == TimestampAndOffset(9, 700, 0)
    assert done(searching.largest(None)) == TimestampAndOffset(9, 700, 0)
    assert list(ledger.rows.maxima) == [599, 599, 599, 599, 700, 40]  # before 600 they are
    files.forget()
    assert done(searching.first(600)) == TimestampAndOffset(9, 700, 0)
    assert done(searching.largest(None)) == TimestampAndOffset(9, 700, 0)
    assert len(files.reads) == 1


def test_of_equal_timestamps_the_first_is_found(seaweed: SeaweedCluster, filer: Filer, folder: str) -> None:
    """
    Records in files come before the known one after them.
    """
    files = LogFiles(seaweed, filer, folder, "batch", [[at_times(5, 40)], [at_times(40, 40)], [at_times(-1)]])
    searching = FileTimeSearch(files.history, files.format, files.ledger(), 0, files.end)
    assert done(searching.largest(None)) == TimestampAndOffset(1, 40, 0)
    assert done(searching.largest(TimestampAndOffset(9, 40, 0))) == TimestampAndOffset(1, 40, 0)
    nothing = FileTimeSearch(files.history, files.format, shortened(files.ledger(), 0), 0, files.end)
    assert done(nothing.largest(TimestampAndOffset(9, 40, 0))) == TimestampAndOffset(1, 40, 0)
    assert done(nothing.first(6)) == TimestampAndOffset(1, 40, 0)


def test_times_of_publishing_are_found_by_the_names_of_files(
    seaweed: SeaweedCluster, filer: Filer, folder: str
) -> None:
    """
    The ledger's times do not matter: they are of another clock.
    """
    files = LogFiles(seaweed, filer, folder, "plain", growing())
    searching = FileTimeSearch(files.history, files.format, files.ledger(9), 0, files.end)
    noon = NOON_S * 1000
    expected = {-5: 0, noon: 0, noon + 1: 4, noon + 50_000: 40, noon + 50_001: 44, noon + 5_000 * FILES: None}
    for timestamp, offset in expected.items():
        files.forget()
        found = done(searching.first(timestamp))
        assert (found and found.offset) == offset, timestamp
        assert len(set(files.reads)) <= 3  # one of them ahead
    assert done(searching.first(1 << 62)) is None
    assert done(searching.largest(None)) == TimestampAndOffset(76, noon + 5_000 * (FILES - 1), -1)


def test_what_has_no_timestamp_has_no_largest(seaweed: SeaweedCluster, filer: Filer, folder: str) -> None:
    files = LogFiles(seaweed, filer, folder, "batch", [[at_times(-1, -1)], [at_times(-1)]])
    assert done(FileTimeSearch(files.history, files.format, files.ledger(), 0, files.end).largest(None)) is None
    assert files.reads == []
