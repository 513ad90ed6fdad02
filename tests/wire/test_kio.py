"""
Our bytes compared with kio's, an independent codec with the tables of Kafka 4.3: every message in every version it
has.
"""

import io
from typing import Any

import pytest
from hypothesis import given
from kio.serial import entity_reader, entity_writer

from kgateway.wire.codec import decode, encode
from kgateway.wire.schema import Message
from tests.wire import values
from tests.wire.cases import cases
from tests.wire.kio_values import kio_class, narrowed, to_kio


@pytest.mark.hypothesis
@pytest.mark.parametrize(("message", "version", "kio"), cases(kio_class))
def test_bytes_agree_with_kio(message: type[Message], version: int, kio: Any) -> None:
    """
    Both codecs encode a value alike, and decode it to that value.
    """
    write, read = entity_writer(kio), entity_reader(kio)

    @given(values.messages(message, version, narrowed))
    def check(value: Message) -> None:
        theirs = to_kio(value, kio, version)
        with io.BytesIO() as buffer:
            write(buffer, theirs)
            expected = buffer.getvalue()
        assert encode(value, version) == expected
        assert decode(message, version, expected) == value
        assert read(expected, 0) == (theirs, len(expected))

    check()
