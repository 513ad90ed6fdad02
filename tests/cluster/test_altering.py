"""
Changes of single configs.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.altering import Wish, altered, check_wishes
from kgateway.wire.errors import ErrorCode
from tests.cluster.clusters import refusal

SET, DELETE, APPEND, SUBTRACT = range(4)


class AlteringTests(SynchronousTestCase):
    def test_set_and_delete(self) -> None:
        """
        What is set has its new value, what is deleted is gone, the rest stays; what was not there can be deleted.
        """
        before = {"a": "1", "b": "2", "c": "3"}
        wishes = [Wish("a", SET, "9"), Wish("d", SET, ""), Wish("b", DELETE, None), Wish("e", DELETE, "x")]
        assert altered(before, wishes) == {"a": "9", "c": "3", "d": ""}
        assert before == {"a": "1", "b": "2", "c": "3"}

    def test_lists(self) -> None:
        """
        Nothing can be added to what is no list, nor taken from it.
        """
        for alteration, word in ((APPEND, "APPEND"), (SUBTRACT, "SUBTRACT")):
            error = refusal(altered, {}, [Wish("a", alteration, "1")])
            assert (error.code, error.message) == (ErrorCode.INVALID_CONFIG, f"Can't {word} to a, which is no list")

    def test_unknown_operations(self) -> None:
        """
        What is no operation is refused.
        """
        for alteration in (-1, 4):
            error = refusal(altered, {}, [Wish("a", alteration, "1")])
            assert error.code == ErrorCode.INVALID_REQUEST
            assert error.message == f"{alteration} is no operation on a; these are 0 to 3"

    def test_what_means_nothing(self) -> None:
        """
        A config is named once, and has a value unless it is deleted.
        """
        check_wishes([Wish("a", SET, "1"), Wish("b", DELETE, None)])
        twice = refusal(check_wishes, [Wish("a", SET, "1"), Wish("b", SET, "1"), Wish("a", DELETE, None)])
        assert (twice.code, twice.message) == (
            ErrorCode.INVALID_REQUEST,
            "a is altered 2 times; name each config once",
        )
        for alteration in (SET, APPEND, SUBTRACT):
            error = refusal(check_wishes, [Wish("a", alteration, None)])
            assert error.code == ErrorCode.INVALID_REQUEST
            assert "a has no value" in str(error.message)
