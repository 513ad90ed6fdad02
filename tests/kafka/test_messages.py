"""
Our bytes against Kafka's own classes, for every message in every version, among them those that only Kafka has: the
records of its internal topics, and the versions that Kafka 4 dropped.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given

from kgateway.messages.catalogue import messages
from kgateway.wire.codec import decode, encode
from kgateway.wire.headers import RequestHeader, ResponseHeader
from kgateway.wire.schema import Message
from tests.kafka.oracle import Oracle, matches
from tests.wire import values

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="session")
def oracles() -> Iterator[list[Oracle]]:
    """
    Today's Kafka, and the last that knew the oldest versions.
    """
    both = [Oracle("new"), Oracle("old")]
    yield both
    for oracle in both:
        oracle.close()


def _cases() -> list[Any]:
    return [
        pytest.param(message, version, id=f"{message.__name__}-v{version}")
        for message in [*messages(), RequestHeader, ResponseHeader]
        for version in message.__spec__.versions
    ]


@pytest.mark.parametrize(("message", "version"), _cases())
def test_kafka_reads_what_we_write(message: type[Message], version: int, oracles: list[Oracle]) -> None:
    """
    Kafka reads our bytes to the end as the same value, and writes them again the same.
    """

    @given(values.messages(message, version))
    def check(value: Message) -> None:
        data = encode(value, version)
        answers = [answer for oracle in oracles if (answer := oracle.ask(message.__name__, version, data))]
        assert answers, "neither generation of Kafka has this version"
        for again, shown in answers:
            assert again == data
            assert matches(value, shown, version), shown
        assert decode(message, version, data) == value

    check()
