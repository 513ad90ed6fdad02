"""
Our bytes against Kafka's own classes, for every message in every version, including those that only Kafka has: the
records of its internal topics, and the versions that Kafka 4 dropped.
"""

from collections.abc import Iterator

import pytest
from hypothesis import given

from kgateway.wire.codec import decode, encode
from kgateway.wire.schema import Message
from tests.kafka.oracle import Oracle, matches
from tests.wire import values
from tests.wire.cases import EVERY_VERSION

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="session")
def oracles() -> Iterator[list[Oracle]]:
    """
    Today's Kafka, and the last one with the oldest versions.
    """
    both = [Oracle("new"), Oracle("old")]
    yield both
    for oracle in both:
        oracle.close()


@pytest.mark.parametrize(("message", "version"), EVERY_VERSION)
def test_kafka_reads_what_we_write(message: type[Message], version: int, oracles: list[Oracle]) -> None:
    """
    Kafka reads our bytes to the end as the same value, and writes the same bytes.
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
