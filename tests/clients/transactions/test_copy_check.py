"""
The check of copies finds faults, and says where they are.
"""

from collections.abc import Sequence

from tests.clients.transactions.copy_check import faults
from tests.clients.transactions.topic_views import Row, Views

ONE, TWO, THREE = "a/1/0/commit", "a/1/1/commit", "b/2/0/commit"
MEANT_TO_BE_ABORTED = "a/1/2/abort"
READ = [Row(0, 0, b"k", b"1"), Row(0, 1, b"l", b"2"), Row(0, 2, b"k", b"3"), Row(1, 0, b"m", b"4")]
ABORTED = Row(1, 1, b"m", b"-5")
INPUT = Views(READ, [*READ, ABORTED])


def copy(row: Row, offset: int, mark: str) -> Row:
    """
    A copy of a record, and where it is.
    """
    return row._replace(offset=offset, value=b"%b|%b" % (row.value, mark.encode()))


COPIES = [copy(READ[0], 0, ONE), copy(READ[1], 1, ONE), copy(READ[2], 3, TWO), copy(READ[3], 0, TWO)]


def found(
    committed: Sequence[Row], everything: Sequence[Row] | None = None, told: dict[str, bool] | None = None
) -> list[str]:
    """
    The faults of such an output.
    """
    return faults(INPUT, Views(committed, committed if everything is None else everything), told or {})


class TestOnce:
    def test_a_correct_copy(self) -> None:
        """
        Each record is there once, and what was aborted is not read.
        """
        aborted = copy(READ[0], 7, MEANT_TO_BE_ABORTED)
        told = {ONE: True, TWO: True, MEANT_TO_BE_ABORTED: False, THREE: True}
        assert not found(COPIES, [*COPIES[:3], aborted, COPIES[3]], told)

    def test_a_record_is_lost(self) -> None:
        """
        The fault names where it was read.
        """
        assert found([*COPIES[:2], COPIES[3]]) == ["lost: 3 of k, read at 0@2, written at no place"]

    def test_a_lost_record_was_written(self) -> None:
        """
        The fault also names where it was written, and by which transaction.
        """
        written = [*COPIES[:2], copy(READ[2], 3, THREE), COPIES[3]]
        assert found([*COPIES[:2], COPIES[3]], written) == ["lost: 3 of k, read at 0@2, written at 0@3 of b/2/0/commit"]

    def test_a_record_is_doubled(self) -> None:
        """
        The fault names where the copies are, and their transactions.
        """
        assert found([*COPIES, copy(READ[3], 9, THREE)]) == [
            "doubled: 4 of m is at 1@0 of a/1/1/commit, 1@9 of b/2/0/commit"
        ]

    def test_an_unknown_record(self) -> None:
        """
        Records that were never in the input, or are in another partition, are faults.
        """
        assert found([*COPIES, copy(Row(1, 0, b"m", b"77"), 9, THREE)]) == [
            "unknown: 77 of m, which is not in the input, is at 1@9 of b/2/0/commit"
        ]
        strayed = copy(READ[3]._replace(partition=0), 8, TWO)
        assert found([*COPIES[:3], strayed]) == [
            "lost: 4 of m, read at 1@0, written at no place",
            "unknown: 4 of m, which is not in the input, is at 0@8 of a/1/1/commit",
        ]


class TestAborts:
    def test_a_planned_abort_is_not_read(self) -> None:
        """
        A transaction that was meant to be aborted must not be read, even if that makes up for a loss.
        """
        copies = [*COPIES[:3], copy(READ[3], 4, MEANT_TO_BE_ABORTED)]
        assert found(copies) == ["aborted and read: 4 of m is at 1@4 of a/1/2/abort, meant to be aborted"]

    def test_a_reported_abort_is_not_read(self) -> None:
        """
        A transaction that was aborted because it could not be committed must not be read.
        """
        assert found(COPIES, told={ONE: False}) == [
            "aborted and read: 1 of k is at 0@0 of a/1/0/commit, aborted as its copier says",
            "aborted and read: 2 of l is at 0@1 of a/1/0/commit, aborted as its copier says",
        ]

    def test_aborted_input_is_not_copied(self) -> None:
        """
        A copier that reads committed records does not copy what was aborted.
        """
        assert found([*COPIES, copy(ABORTED, 9, TWO)]) == [
            "aborted and read: -5 of m, aborted at 1@1 of the input, is at 1@9 of a/1/1/commit"
        ]


class TestWhole:
    """
    A transaction is read completely or not at all.
    """

    def test_half_a_transaction(self) -> None:
        """
        The fault names what is read of it and what is not.
        """
        again = copy(READ[1], 9, THREE)
        assert found([COPIES[0], *COPIES[2:], again], [*COPIES, again]) == [
            "torn: of a/1/0/commit is read what is at 0@0 of a/1/0/commit, and not what is at 0@1 of a/1/0/commit"
        ]

    def test_a_reported_commit_is_missing(self) -> None:
        """
        A transaction that its copier reports as committed has to be read.
        """
        again = copy(READ[3], 5, THREE)
        written = [*COPIES[:3], again, copy(READ[3], 7, "c/3/0/commit")]
        assert not found([*COPIES[:3], again], written)
        assert found([*COPIES[:3], again], written, {"c/3/0/commit": True}) == [
            "not read: c/3/0/commit is committed, as its copier says, and wrote what is at 1@7 of c/3/0/commit"
        ]


class TestOrder:
    def test_the_order_of_a_key(self) -> None:
        """
        The fault names the record that is too late; different keys have no order.
        """
        first, second, third, fourth = READ
        assert not found([copy(second, 0, ONE), copy(first, 1, ONE), copy(third, 2, ONE), copy(fourth, 0, ONE)])
        assert found([copy(third, 0, ONE), copy(second, 1, ONE), copy(first, 2, TWO), copy(fourth, 0, ONE)]) == [
            "out of order: 1 of k at 0@2 of a/1/1/commit comes after 3 of k at 0@0 of a/1/0/commit"
        ]

    def test_the_order_of_offsets(self) -> None:
        """
        A reader of a partition gets increasing offsets.
        """
        assert "out of order: 0@1 is read after 0@5" in found([copy(READ[0], 5, ONE), *COPIES[1:]])
