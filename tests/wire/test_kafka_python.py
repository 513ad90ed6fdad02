"""
Our bytes against kafka-python's: its JSON tables for what clients send today, its hand-written ones below kio's reach.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.messages.api_versions import ApiVersionsResponse
from kgateway.messages.catalogue import messages
from kgateway.wire.codec import decode, encode
from kgateway.wire.schema import Field, Message
from tests.wire import values
from tests.wire.kafka_python_values import containers, to_container, to_tuple, tuples
from tests.wire.kio_values import kio_class


# What is wrong on the other side, and so cannot be compared.
_THEIR_BUGS = {
    ("DescribeLogDirsRequest", 0): "its partitions are one number there; Kafka has a list of them",
}


def _without_error(field: Field) -> st.SearchStrategy[int] | None:
    """
    kafka-python reads an ApiVersions response with an error as v0, whatever its version.
    """
    return st.just(0) if field.name == "error_code" else None


def _knows(message: type[Message], version: int) -> bool:
    try:
        return bool(kio_class(message, version))
    except LookupError:
        return False


def _containers() -> list[Any]:
    found = containers()
    return [
        pytest.param(message, version, found[message.__name__], id=f"{message.__name__}-v{version}")
        for message in messages()
        if message.__name__ in found
        for version in message.__spec__.versions
        if _knows(message, version)
    ]


def _tuples() -> list[Any]:
    found = tuples()
    return [
        pytest.param(message, version, found[message.__name__, version], id=f"{message.__name__}-v{version}")
        for message in messages()
        for version in message.__spec__.versions
        if (message.__name__, version) in found
        and not _knows(message, version)
        and (message.__name__, version) not in _THEIR_BUGS
    ]


@pytest.mark.parametrize(("message", "version", "theirs"), _containers())
def test_bytes_are_those_of_the_json_tables(message: type[Message], version: int, theirs: Any) -> None:
    """
    Both codecs make the same bytes of a value, and what it reads of ours it writes again the same.
    """

    override = [_without_error] if message is ApiVersionsResponse else []

    @given(values.messages(message, version, *override))
    def check(value: Message) -> None:
        ours = encode(value, version)
        assert to_container(value, theirs, version).encode(version=version) == ours
        again = theirs.decode(ours, version=version)
        again._header = None  # its own encode() asks for it
        assert again.encode(version=version) == ours

    check()


@pytest.mark.parametrize(("message", "version", "theirs"), _tuples())
def test_bytes_are_those_of_the_old_tables(message: type[Message], version: int, theirs: Any) -> None:
    """
    Versions that kio has forgotten are as kafka-python's oldest tables have them, both ways.
    """

    @given(values.messages(message, version))
    def check(value: Message) -> None:
        expected = theirs.SCHEMA.encode(to_tuple(value, version))
        assert encode(value, version) == expected
        assert decode(message, version, expected) == value

    check()
