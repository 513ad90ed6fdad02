"""
Our bytes compared with kafka-python's: its JSON tables for current versions, its handwritten ones for those that kio
has dropped.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.messages.api_versions import ApiVersionsResponse
from kgateway.wire.codec import decode, encode
from kgateway.wire.schema import Field, Message
from tests.wire import values
from tests.wire.cases import cases
from tests.wire.judges import container, old_table
from tests.wire.kafka_python_values import to_container, to_tuple


def _without_error(field: Field) -> st.SearchStrategy[int] | None:
    """
    kafka-python reads an ApiVersions response with an error as v0, whatever its version.
    """
    return st.just(0) if field.name == "error_code" else None


@pytest.mark.hypothesis
@pytest.mark.parametrize(("message", "version", "theirs"), cases(container))
def test_bytes_agree_with_the_json_tables(message: type[Message], version: int, theirs: Any) -> None:
    """
    Both codecs encode a value alike, and kafka-python writes ours back unchanged.
    """

    override = [_without_error] if message is ApiVersionsResponse else []

    @given(values.messages(message, version, *override))
    def check(value: Message) -> None:
        ours = encode(value, version)
        assert to_container(value, theirs, version).encode(version=version) == ours
        again = theirs.decode(ours, version=version)
        again._header = None  # its own encode() requires it
        assert again.encode(version=version) == ours

    check()


@pytest.mark.hypothesis
@pytest.mark.parametrize(("message", "version", "theirs"), cases(old_table))
def test_bytes_agree_with_the_old_tables(message: type[Message], version: int, theirs: Any) -> None:
    """
    Both directions agree.
    """

    @given(values.messages(message, version))
    def check(value: Message) -> None:
        expected = theirs.SCHEMA.encode(to_tuple(value, version))
        assert encode(value, version) == expected
        assert decode(message, version, expected) == value

    check()
