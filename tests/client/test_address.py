"""
Addresses of servers.
"""

import pytest

from kgateway.client.address import Address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("localhost:9092", "localhost", 9092), (" 10.0.0.1:1 ", "10.0.0.1", 1), ("[::1]:65535", "::1", 65_535)],
)
def test_an_address_is_read_and_shown(text: str, host: str, port: int) -> None:
    """
    As it is written, without what is around it.
    """
    address = Address.parse(text)
    assert address == (host, port)
    assert str(address) == text.strip()


@pytest.mark.parametrize(
    "text", ["", "kafka", ":9092", "kafka:", "kafka:0", "kafka:65536", "kafka:x", "::1:9092", "[::1:9092", "::1]:9092"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    """
    With what was written.
    """
    with pytest.raises(ValueError, match="is no HOST:PORT") as refused:
        Address.parse(text)
    assert repr(text) in str(refused.value)
