"""
Changes of the configs of a resource.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.config_changes import AlterConfigOp, altered, replaced
from kgateway.wire.errors import ErrorCode
from tests.cluster.clusters import refusal

SET, DELETE, APPEND, SUBTRACT = range(4)
LISTS = {"list": "x,y"}


class AlteringTests(SynchronousTestCase):
    def test_set_and_delete(self) -> None:
        """
        A set config has its new value, a deleted one is gone, the others do not change; a missing one can be deleted.
        """
        before = {"a": "1", "b": "2", "c": "3"}
        wishes = [
            AlterConfigOp("a", SET, "9"),
            AlterConfigOp("d", SET, ""),
            AlterConfigOp("b", DELETE, None),
            AlterConfigOp("e", DELETE, "x"),
        ]
        assert altered(before, wishes, {}) == {"a": "9", "c": "3", "d": ""}
        assert before == {"a": "1", "b": "2", "c": "3"}

    def test_lists(self) -> None:
        """
        Missing items are appended to a list, and existing ones subtracted; an unset list starts with its effective
        value. Appended items are kept as they are, with blanks or empty, so that they can be refused.
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
            found = altered(before, [AlterConfigOp("list", alteration, value)], LISTS)
            assert found == {"list": after}, (before, alteration, value)

    def test_append_and_subtract_require_lists(self) -> None:
        for alteration, word in ((APPEND, "APPEND"), (SUBTRACT, "SUBTRACT")):
            error = refusal(altered, {}, [AlterConfigOp("a", alteration, "1")], LISTS)
            assert (error.code, error.message) == (
                ErrorCode.INVALID_CONFIG,
                f"Can't {word} to key a because its type is not LIST.",
            )

    def test_unknown_operations_are_refused(self) -> None:
        for alteration in (-1, 4):
            error = refusal(altered, {}, [AlterConfigOp("a", alteration, "1")], {})
            assert error.code == ErrorCode.INVALID_REQUEST
            assert error.message == f"Unknown operations type {alteration}"

    def test_all_at_once(self) -> None:
        """
        Configs that are not named are unset, except fixed ones.
        """
        before = {"a": "1", "b": "2", "seaweedmq.format": "plain"}
        assert replaced(before, [AlterConfigOp("b", SET, "3"), AlterConfigOp("c", SET, "")]) == {
            "b": "3",
            "c": "",
            "seaweedmq.format": "plain",
        }
        assert replaced(before, [AlterConfigOp("seaweedmq.format", SET, "batch")]) == {"seaweedmq.format": "batch"}
        assert replaced({"a": "1"}, []) == {}

    def test_invalid_changes(self) -> None:
        """
        A config is named once, and has a value unless it is deleted.
        """
        twice = [AlterConfigOp("a", SET, "1"), AlterConfigOp("b", SET, "1"), AlterConfigOp("a", DELETE, None)]
        for error in (refusal(altered, {}, twice, {}), refusal(replaced, {}, twice)):
            reason = "Error due to duplicate config keys"
            assert (error.code, error.message) == (ErrorCode.INVALID_REQUEST, reason)
        for alteration in (SET, APPEND, SUBTRACT):
            error = refusal(altered, {}, [AlterConfigOp("list", alteration, None)], LISTS)
            assert error.code == ErrorCode.INVALID_REQUEST
            assert error.message == "Null value not supported for : list"
        assert refusal(replaced, {}, [AlterConfigOp("a", SET, None)]).code == ErrorCode.INVALID_REQUEST
