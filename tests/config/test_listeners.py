"""
Listeners and advertised addresses.
"""

import re

import pytest

from kgateway.config.listeners import (
    Advertised,
    Listener,
    assign,
    check_listeners,
    parameters,
    parse_advertised,
    parse_listener,
    suggestion,
)

PLAIN, INTERNAL = Listener("plaintext", "tcp:9092"), Listener("internal", "tcp:9093")


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("tcp:9092", PLAIN),
        ("tcp:9092:interface=127.0.0.1", Listener("plaintext", "tcp:9092:interface=127.0.0.1")),
        ("internal=tcp:9093", INTERNAL),
        ("in-side_2=tcp:1:interface=10.0.0.5", Listener("in-side_2", "tcp:1:interface=10.0.0.5")),
        (r"six=tcp6:1:interface=\:\:1", Listener("six", r"tcp6:1:interface=\:\:1")),
    ],
)
def test_a_listener_is_an_endpoint_with_or_without_a_name(text: str, listener: Listener) -> None:
    """
    Text before the first equals sign is a name unless it has a colon; `str` returns the text.
    """
    assert parse_listener(text) == listener
    assert str(listener) == text


def test_the_default_name_may_be_written() -> None:
    """
    A listener without a name is called plaintext.
    """
    assert parse_listener("plaintext=tcp:9092") == PLAIN


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "'' is not an endpoint"),
        ("9092", "'9092' is not an endpoint"),
        ("tcp:", "'tcp:' is not an endpoint"),
        (":9092", "':9092' is not an endpoint"),
        ("a=", "'' is not an endpoint"),
        ("2nd=tcp:9092", "'2nd' is not a valid name"),
        ("=tcp:9092", "'' is not a valid name"),
        ("a b=tcp:9092", "'a b' is not a valid name"),
    ],
)
def test_invalid_listeners_are_refused(text: str, reason: str) -> None:
    """
    The refusal names the part that is wrong.
    """
    with pytest.raises(ValueError, match=f"^{reason}; "):
        parse_listener(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tcp:abc", "the port 'abc' is not a number from 0 to 65535; write one such as tcp:9092:interface=127.0.0.1"),
        ("a=tcp:port=70000", "the port '70000' is not a number from 0 to 65535; write one such as tcp:9092:"),
        ("unix:k.sock:backlog=", "the backlog '' is not a number from 0 to 2147483647; "),
        ("tcp:1:interfac=x", "an endpoint of type tcp has no interfac; did you mean interface?"),
        ("tcp:1:interfac=", "an endpoint of type tcp has no interfac; did you mean interface?"),
        ("tcp6:1:x=1", "an endpoint of type tcp6 has no x; it has port, interface, backlog"),
        ("tcp:1::2:3:4", "'3' is one value too many; write tcp:PORT:NAME=VALUE"),
        ("ssl:1", "an ssl endpoint needs both privateKey= and certKey="),
        ("ssl:1:certKey=cert.pem", "an ssl endpoint needs both privateKey= and certKey="),
        ("tcp6:1:interface=::1", r"'' has no name; write \: for a colon in a value, as in interface=\:\:1"),
    ],
)
def test_impossible_parameters_are_refused(text: str, reason: str) -> None:
    """
    Those of the usual types of endpoints are known.
    """
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}"):
        parse_listener(text)


@pytest.mark.parametrize(
    ("endpoint", "meant"),
    [
        ("localhost:29100", "tcp:29100:interface=127.0.0.1"),
        ("PLAINTEXT://0.0.0.0:29100", "tcp:29100"),
        ("PLAINTEXT://:29100", "tcp:29100"),
        ("10.0.0.5:29100", "tcp:29100:interface=10.0.0.5"),
        ("29100", "tcp:29100:interface=127.0.0.1"),
        ("udp:29100", "one such as tcp:29100:interface=127.0.0.1"),
        ("PLAINTEXT://kafka:29100", "tcp:29100:interface=kafka"),
        ("localhost:70000", "one such as tcp:9092:interface=127.0.0.1"),
        ("SSL://:29100", "tcp:29100"),
        ("TCP:29100", "tcp:29100"),
        ("Unix:kafka.sock", "unix:kafka.sock"),
        ("fd:3", "one such as tcp:9092:interface=127.0.0.1"),
        ("FD:3", "one such as tcp:9092:interface=127.0.0.1"),
        ("systemd:0", "one such as tcp:9092:interface=127.0.0.1"),
        ("systemd", "one such as tcp:9092:interface=127.0.0.1"),
    ],
)
def test_the_endpoint_that_was_meant_is_suggested(endpoint: str, meant: str) -> None:
    """
    People know Kafka's listeners, HOST:PORT and bare ports, and write types of endpoints with capitals. A single word
    may be a host or a type of endpoint.
    """
    assert suggestion(endpoint) == f"write {meant}"


@pytest.mark.parametrize(
    ("endpoint", "title"),
    [
        ("ssl:1:privateKey=key.pem", "TLS"),
        ("tls:29245", "TLS"),
        ("tls:.", "TLS"),
        ("haproxy:ssl:1", "TLS"),
        ("haproxy:tcp:1", "plaintext"),
        ("tcp:1:interface=tls", "plaintext"),
        ("systemd:domain=INET:name=ssl", "plaintext"),
    ],
)
def test_each_type_of_endpoint_that_encrypts_is_tls(endpoint: str, title: str) -> None:
    assert parse_listener(endpoint).title == title


def test_listeners_with_tls_are_named_and_shown_as_such() -> None:
    """
    One of each kind needs no names, and people see which connections are encrypted.
    """
    plain, encrypted, named = map(parse_listener, ("tcp:1", "ssl:2:privateKey=k.pem", "outside=ssl:3:privateKey=k.pem"))
    check_listeners([plain, encrypted, named])
    assert [listener.name for listener in (plain, encrypted, named)] == ["plaintext", "tls", "outside"]
    assert [listener.title for listener in (plain, encrypted, named)] == ["plaintext", "TLS", "outside (TLS)"]
    assert [str(listener) for listener in (encrypted, named)] == [
        "ssl:2:privateKey=k.pem",
        "outside=ssl:3:privateKey=k.pem",
    ]


def test_the_parameters_of_an_endpoint_are_known_by_name() -> None:
    """
    A value may stand without its name, and have escaped colons.
    """
    given = parameters(r"ssl:9093:key.pem:certKey=a\:b.pem")
    assert given == {"port": "9093", "privateKey": "key.pem", "certKey": "a:b.pem"}
    assert parameters("systemd:INET:0") == {}


@pytest.mark.parametrize(
    ("text", "advertised"),
    [
        ("kafka.example.org:443", Advertised("", "kafka.example.org", 443)),
        ("internal=10.0.0.5:1", Advertised("internal", "10.0.0.5", 1)),
        ("[2001:db8::5]:65535", Advertised("", "2001:db8::5", 65535)),
        ("internal=[::1]:9092", Advertised("internal", "::1", 9092)),
    ],
)
def test_an_advertised_address_is_host_and_port(text: str, advertised: Advertised) -> None:
    """
    Only the text has brackets around an IPv6 address; `str` returns the text.
    """
    assert parse_advertised(text) == advertised
    assert str(advertised) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "'' is not an address"),
        ("host", "'host' is not an address"),
        ("host:", "'host:' is not an address"),
        ("host:kafka", "'host:kafka' is not an address"),
        ("tcp:host:1", "'tcp:host:1' is not an address"),
        ("::1:9092", "'::1:9092' is not an address"),
        ("[host]:9092", r"'\[host\]:9092' is not an address"),
        ("a..b:1", "'a..b' is not a host name"),
        (f"{'a' * 64}.example:1", f"'{'a' * 64}.example' is not a host name"),
        (f"{'a.' * 127}b:1", f"'{'a.' * 127}b' is not a host name"),
        ("exämple.com:1", "'exämple.com' is not a host name"),
        ("a b:1", "'a b' is not a host name"),
        ("host:0", "port 0 is not from 1 to 65535"),
        ("host:65536", "port 65536 is not from 1 to 65535"),
        ("0.0.0.0:9092", "clients cannot connect to 0.0.0.0"),
        ("[::]:9092", "clients cannot connect to ::"),
        ("2nd=host:1", "'2nd' is not a valid name"),
    ],
)
def test_invalid_addresses_are_refused(text: str, reason: str) -> None:
    """
    The refusal names the part that is wrong.
    """
    with pytest.raises(ValueError, match=f"^{reason}(;|$)"):
        parse_advertised(text)


def test_listeners_have_different_names() -> None:
    """
    Equal names are refused, and so are two unnamed listeners.
    """
    check_listeners([PLAIN, INTERNAL])
    with pytest.raises(ValueError, match=r"^two listeners are called plaintext; give each a name of its own"):
        check_listeners([PLAIN, INTERNAL, Listener("plaintext", "tcp:1")])


def test_a_listener_is_required() -> None:
    """
    Without one, no client could connect.
    """
    with pytest.raises(ValueError, match=r"^at least one listener is needed"):
        check_listeners([])


def test_an_unnamed_address_belongs_to_the_only_listener() -> None:
    """
    The listener may have any name.
    """
    assert assign([Advertised("", "host", 1)], [INTERNAL]) == (Advertised("internal", "host", 1),)


def test_each_address_belongs_to_the_listener_it_names() -> None:
    """
    A listener may have no address.
    """
    addresses = (Advertised("internal", "host", 1),)
    assert assign(addresses, [PLAIN, INTERNAL]) == addresses
    assert assign([], [PLAIN, INTERNAL]) == ()


@pytest.mark.parametrize(
    ("names", "listeners", "reason"),
    [
        (["internal", ""], [PLAIN, INTERNAL], "there are several listeners; name .* with plaintext or internal"),
        (["interal"], [PLAIN, INTERNAL], "there is no listener interal; write plaintext or internal"),
        (["internal", "internal"], [PLAIN, INTERNAL], "listener internal has two addresses"),
        (["", ""], [PLAIN], "listener plaintext has two addresses"),
    ],
)
def test_an_address_without_its_listener_is_refused(names: list[str], listeners: list[Listener], reason: str) -> None:
    """
    The address must name an existing listener, and each listener has at most one.
    """
    with pytest.raises(ValueError, match=f"^{reason}"):
        assign([Advertised(name, "host", port) for port, name in enumerate(names, 1)], listeners)
