"""
Changes of the configs of a resource.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.altering import Wish, altered, replaced
from kgateway.wire.errors import ErrorCode
from tests.cluster.clusters import refusal

SET, DELETE, APPEND, SUBTRACT = range(4)
LISTS = {"list": "x,y"}


class AlteringTests(SynchronousTestCase):
    def test_set_and_delete(self) -> None:
        """
        What is set has its new value, what is deleted is gone, the rest stays; what was not there can be deleted.
        """
        before = {"a": "1", "b": "2", "c": "3"}
        wishes = [Wish("a", SET, "9"), Wish("d", SET, ""), Wish("b", DELETE, None), Wish("e", DELETE, "x")]
        assert altered(before, wishes, {}) == {"a": "9", "c": "3", "d": ""}
        assert before == {"a": "1", "b": "2", "c": "3"}

    def test_lists(self) -> None:
        """
        What is not there yet is added to a list, and what is there is taken from it; where nothing is set, the list is
        what holds then. What is added is added as it is, with blanks and empty, for it to be refused.
        """
        for before, alteration, value, after in (
            ({}, APPEND, "z", "x,y,z"),
            ({"list": "z"}, APPEND, "x", "z,x"),
            ({"list": "z,,x"}, APPEND, "x, x,a", "z,x, x,a"),
            ({"list": ""}, APPEND, "x,,x", "x,"),
            ({"list": "z"}, APPEND, "", "z,"),
            ({"list": "z"}, APPEND, "x,", "z,x"),
            ({"list": "z"}, APPEND, ",", "z"),
            ({}, SUBTRACT, "x", "y"),
            ({"list": "x,z"}, SUBTRACT, "y, z", "x,z"),
            ({"list": "x,z,x"}, SUBTRACT, "x", "z,x"),
            ({"list": "x"}, SUBTRACT, "", "x"),
            ({"list": "x"}, SUBTRACT, "x", ""),
        ):
            found = altered(before, [Wish("list", alteration, value)], LISTS)
            assert found == {"list": after}, (before, alteration, value)

    def test_no_lists(self) -> None:
        """
        Nothing can be added to what is no list, nor taken from it.
        """
        for alteration, word in ((APPEND, "APPEND"), (SUBTRACT, "SUBTRACT")):
            error = refusal(altered, {}, [Wish("a", alteration, "1")], LISTS)
            assert (error.code, error.message) == (
                ErrorCode.INVALID_CONFIG,
                f"Can't {word} to key a because its type is not LIST.",
            )

    def test_unknown_operations(self) -> None:
        """
        What is no operation is refused.
        """
        for alteration in (-1, 4):
            error = refusal(altered, {}, [Wish("a", alteration, "1")], {})
            assert error.code == ErrorCode.INVALID_REQUEST
            assert error.message == f"Unknown operations type {alteration}"

    def test_all_at_once(self) -> None:
        """
        What is not named is gone, but for what cannot change.
        """
        before = {"a": "1", "b": "2", "seaweedmq.format": "plain"}
        assert replaced(before, [Wish("b", SET, "3"), Wish("c", SET, "")]) == {
            "b": "3",
            "c": "",
            "seaweedmq.format": "plain",
        }
        assert replaced(before, [Wish("seaweedmq.format", SET, "batch")]) == {"seaweedmq.format": "batch"}
        assert replaced({"a": "1"}, []) == {}

    def test_what_means_nothing(self) -> None:
        """
        A config is named once, and has a value unless it is deleted.
        """
        twice = [Wish("a", SET, "1"), Wish("b", SET, "1"), Wish("a", DELETE, None)]
        for error in (refusal(altered, {}, twice, {}), refusal(replaced, {}, twice)):
            reason = "Error due to duplicate config keys"
            assert (error.code, error.message) == (ErrorCode.INVALID_REQUEST, reason)
        for alteration in (SET, APPEND, SUBTRACT):
            error = refusal(altered, {}, [Wish("list", alteration, None)], LISTS)
            assert error.code == ErrorCode.INVALID_REQUEST
            assert error.message == "Null value not supported for : list"
        assert refusal(replaced, {}, [Wish("a", SET, None)]).code == ErrorCode.INVALID_REQUEST
