"""
Addresses as SeaweedFS writes them.
"""

import pytest

from kgateway.broker.seaweed.calls.addresses import ServerAddress, broker_address, master_addresses
from kgateway.cluster.view import Address


@pytest.mark.parametrize(
    ("text", "http", "grpc"),
    [
        ("filer:8888", Address("filer", 8888), Address("filer", 18888)),
        ("filer:8888.18999", Address("filer", 8888), Address("filer", 18999)),
        (" 127.0.0.1:9333 ", Address("127.0.0.1", 9333), Address("127.0.0.1", 19333)),
        ("[::1]:9333", Address("::1", 9333), Address("::1", 19333)),
        ("[fe80::1]:9333.1", Address("fe80::1", 9333), Address("fe80::1", 1)),
        ("a.b.c:60000.60001", Address("a.b.c", 60000), Address("a.b.c", 60001)),
    ],
)
def test_a_server_has_two_ports(text: str, http: Address, grpc: Address) -> None:
    """
    The gRPC port is given, or 10,000 above the other.
    """
    found = ServerAddress.parse(text)
    assert (found.http, found.grpc) == (http, grpc)
    assert ServerAddress.parse(str(found)) == found


def test_the_usual_port_is_not_written() -> None:
    """
    So two spellings of one address are shown alike.
    """
    assert str(ServerAddress.parse("[::1]:9333.19333")) == "[::1]:9333"
    assert str(ServerAddress.parse("m:9333.19334")) == "m:9333.19334"


def test_a_broker_has_the_port_it_says() -> None:
    assert broker_address("broker:17777") == Address("broker", 17777)
    assert broker_address("[::1]:17777") == Address("::1", 17777)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("filer", "not HOST:PORT"),
        (":9333", "not HOST:PORT"),
        ("[]:9333", "not HOST:PORT"),
        ("::1:9333", "brackets"),
        ("filer:", "'' is not a port"),
        ("filer:0", "'0' is not a port"),
        ("filer:65536", "'65536' is not a port"),
        ("filer:x", "'x' is not a port"),
        ("filer:-1", "'-1' is not a port"),
        ("filer:٣", "'٣' is not a port"),
        ("filer:1.", "'' is not a port"),
        ("filer:1.70000", "'70000' is not a port"),
        ("filer:60000", "port would be 70000, which is not a port"),
        ("http://filer:8888", "not HOST:PORT"),
    ],
)
def test_what_is_no_address_is_refused(text: str, why: str) -> None:
    """
    The error contains the text, and what is wrong with it.
    """
    with pytest.raises(ValueError, match=why) as told:
        ServerAddress.parse(text)
    assert repr(text) in str(told.value)


def test_a_broker_has_no_second_port() -> None:
    """
    An address with two ports is refused.
    """
    with pytest.raises(ValueError, match="is not a port"):
        broker_address("broker:17777.27777")


def test_masters_are_listed() -> None:
    """
    They keep their order, and each appears once.
    """
    found = master_addresses("a:1, b:2,a:1.10001")
    assert [str(address) for address in found] == ["a:1", "b:2"]


@pytest.mark.parametrize("text", ["", "  ", "a:1,", ",a:1"])
def test_a_master_that_is_left_out_is_refused(text: str) -> None:
    """
    An empty address between commas is probably a mistake.
    """
    with pytest.raises(ValueError, match="HOST:PORT"):
        master_addresses(text)
