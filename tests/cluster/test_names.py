"""
Names of topics.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.names import blurred, check_collision, check_name, is_internal, no_such_topic
from kgateway.wire.errors import ErrorCode
from tests.cluster.clusters import refusal


class NameTests(SynchronousTestCase):
    def test_legal_characters(self) -> None:
        """
        ASCII letters, digits, dots, underscores and dashes make a name.
        """
        for name in ("a", "Orders-2", "_schemas", "a.b_c-d", "...", "0"):
            check_name(name)

    def test_illegal_characters(self) -> None:
        """
        Any other character is refused at any position, and the name is shown.
        """
        for name in ("a b", "a/b", "é", "a\n", "a\0", "٣", "#a"):
            error = refusal(check_name, name)
            assert error.code == ErrorCode.INVALID_TOPIC_EXCEPTION, name
            assert name in str(error.message)

    def test_length(self) -> None:
        """
        A name has 1 to 249 characters.
        """
        check_name("x" * 249)
        refusal(check_name, "")
        error = refusal(check_name, "x" * 250)
        assert "is longer than the max allowed length 249" in str(error.message)

    def test_dots_are_no_names(self) -> None:
        """
        They mean this folder and the one above it.
        """
        for name in (".", ".."):
            refusal(check_name, name)

    def test_collision(self) -> None:
        """
        Names that differ only in dots and underscores collide, and the existing one is named.
        """
        error = refusal(check_collision, "a.b", {"x": "x", "a_b": "a_b"})
        assert error.code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert error.message == "Topic 'a.b' collides with existing topic: a_b"
        check_collision("a.b", {blurred(name): name for name in ("a.c", "a-b", "ab")})
        check_collision("ab", {"ab": "ab"})

    def test_internal(self) -> None:
        """
        The three topics of coordinators are internal, and no others with such a prefix.
        """
        for name in ("__consumer_offsets", "__transaction_state", "__share_group_state"):
            assert is_internal(name), name
        assert not is_internal("__mine")

    def test_absent(self) -> None:
        """
        The error for a name without a topic says whether the name is legal.
        """
        assert no_such_topic("orders").code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert no_such_topic("or ders").code == ErrorCode.INVALID_TOPIC_EXCEPTION
