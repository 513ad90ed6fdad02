"""
Listeners and the addresses that are advertised for them.

A listener is a Twisted endpoint string with a name, because security and advertised addresses are set by name. The
parameters of the usual types of endpoints are checked here; whether there is such a type, only Twisted knows. An
advertised address belongs to the listener that it names; without one, clients are given the address they connected to.
The parsers raise `ValueError` with what is wrong in plain words; `str()` returns a text that parses to the same value.
"""

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kgateway.config.hosts import is_host, is_ipv6

PLAINTEXT, TLS = "plaintext", "tls"  # the names of listeners without a name
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_ENDPOINT = re.compile(r"[A-Za-z][A-Za-z0-9+-]*:.+")
_ESCAPED = re.compile(r"\\(.)")
_PART = re.compile(r"((?:\\.|[^:\\])*)(?::|$)")  # of an endpoint: a backslash takes the meaning from a colon
_PARAMETERS = {
    "tcp": ("port", "interface", "backlog"),
    "tcp6": ("port", "interface", "backlog"),
    "ssl": ("port", "privateKey", "certKey", "sslmethod", "interface", "backlog", "extraCertChain", "dhParameters"),
    "unix": ("address", "mode", "backlog", "lockfile"),
}
_WITH_TLS = {"ssl", "tls"}  # types of endpoints
_PLAIN = ("tcp", "tcp6", "unix")
_WRAPPER = "haproxy:"  # in front of another endpoint
_TYPES = {*_PARAMETERS, "haproxy", "stdio", "systemd", "tls"}
_NO_HOSTS = {*_TYPES, "fd"}  # nobody means a host of this name
NEEDS_BOTH = "an ssl endpoint needs both privateKey= and certKey="
_LIMITS = {"port": 65535, "backlog": (1 << 31) - 1}
_EXAMPLE = "tcp:9092:interface=127.0.0.1"
_KAFKAS = re.compile(r"(?P<scheme>\w+://)?(?:(?P<host>[\w.-]*):)?(?P<port>[0-9]+)")  # Kafka's form, HOST:PORT, or PORT
_EVERYWHERE = ("", "0.0.0.0")
_ADDRESS = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<host>[^\[\]:]+)):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Listener:
    name: str
    endpoint: str

    def __str__(self) -> str:
        return self.endpoint if self.name == _usual_name(self.endpoint) else f"{self.name}={self.endpoint}"

    @property
    def is_plain(self) -> bool:
        """
        Whether its connections are certainly not encrypted.
        """
        return self.endpoint.partition(":")[0] in _PLAIN

    @property
    def title(self) -> str:
        """
        The name for people, who also want to know whether connections are encrypted.
        """
        if _usual_name(self.endpoint) != TLS:
            return self.name
        return "TLS" if self.name == TLS else f"{self.name} (TLS)"


@dataclass(frozen=True, slots=True)
class Advertised:
    """
    The address that the clients of a listener are given. The name is empty until the listener is known.
    """

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}={host}:{self.port}" if self.name else f"{host}:{self.port}"


def parse_listener(text: str) -> Listener:
    """
    Parse `[NAME=]ENDPOINT`.
    """
    name, endpoint = _split_name(text)
    if not _ENDPOINT.fullmatch(endpoint):
        raise ValueError(f"{endpoint!r} is not an endpoint; {suggestion(endpoint)}")
    parameters(endpoint)
    return Listener(name or _usual_name(endpoint), endpoint)


def suggestion(endpoint: str) -> str:
    """
    How to write an endpoint: the one that was meant, as far as that can be guessed.
    """
    kind, colon, rest = endpoint.partition(":")
    if not rest.startswith("//") and kind.lower() in _NO_HOSTS:
        meant = kind.lower()
        return f"write {meant}{colon}{rest}" if kind != meant in _TYPES else f"write one such as {_EXAMPLE}"
    kafkas = _KAFKAS.fullmatch(endpoint)
    if not kafkas or int(kafkas["port"]) > _LIMITS["port"]:
        return f"write one such as {_EXAMPLE}"
    host = kafkas["host"]
    if host in (None, "localhost"):
        host = "127.0.0.1"
    elif host.isalnum() and not kafkas["scheme"]:
        return f"write one such as tcp:{kafkas['port']}:interface=127.0.0.1"  # a host, or a type such as udp
    return f"write tcp:{kafkas['port']}" + (f":interface={host}" if host not in _EVERYWHERE else "")


def _usual_name(endpoint: str) -> str:
    kind = endpoint.removeprefix(_WRAPPER).partition(":")[0]
    return TLS if kind in _WITH_TLS else PLAINTEXT


def parameters(endpoint: str) -> dict[str, str]:
    """
    The parameters of an endpoint by name; none of a type that is not known here. Refuses parameters that an endpoint of
    its type does not have, and numbers that are none.
    """
    kind, *parts = (match[1] for match in _PART.finditer(endpoint) if match[0])
    names = _PARAMETERS.get(kind)
    if names is None:
        return {}
    given = {}
    has_named = False
    for position, part in enumerate(parts):
        name, equals, value = part.partition("=")
        has_named |= bool(equals)
        if not equals:
            if has_named:
                raise ValueError(f"{part!r} has no name; write \\: for a colon in a value, as in interface=\\:\\:1")
            if position >= len(names):
                raise ValueError(f"{part!r} is one value too many; write {kind}:{names[0].upper()}:NAME=VALUE")
            name, value = names[position], part
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            meant = f"did you mean {near[0]}?" if near else f"it has {', '.join(names)}"
            raise ValueError(f"an endpoint of type {kind} has no {name}; {meant}")
        if name in _LIMITS and not (re.fullmatch("[0-9]{1,10}", value) and int(value) <= _LIMITS[name]):
            raise ValueError(
                f"the {name} {value!r} is not a number from 0 to {_LIMITS[name]}; write one such as {_EXAMPLE}"
            )
        given[name] = _ESCAPED.sub(r"\1", value)
    if kind == "ssl" and "privateKey" not in given:
        raise ValueError(NEEDS_BOTH)
    return given


def parse_advertised(text: str) -> Advertised:
    """
    Parse `[NAME=]HOST:PORT`.
    """
    name, address = _split_name(text)
    match = _ADDRESS.fullmatch(address)
    if not match or (match["v6"] and not is_ipv6(match["v6"])):
        raise ValueError(f"{address!r} is not an address; write HOST:PORT, with brackets around an IPv6 address")
    host, port = match["v6"] or match["host"], int(match["port"])
    if not is_host(host):
        raise ValueError(f"{host!r} is not a host name; write parts of 1 to 63 letters, digits, - and _, with dots")
    if not 1 <= port <= 65535:
        raise ValueError(f"port {port} is not from 1 to 65535")
    if host in {"0.0.0.0", "::"}:
        raise ValueError(f"clients cannot connect to {host}; name an address that they can reach")
    return Advertised(name, host, port)


def check_listeners(listeners: Sequence[Listener]) -> None:
    if not listeners:
        raise ValueError("at least one listener is needed")
    name = _twice([listener.name for listener in listeners])
    if name:
        raise ValueError(f"two listeners are called {name}; give each a name of its own, as NAME=ENDPOINT")


def assign(advertised: Sequence[Advertised], listeners: Sequence[Listener]) -> tuple[Advertised, ...]:
    """
    The addresses with the names of their listeners. An unnamed one belongs to the only listener.
    """
    names = [listener.name for listener in listeners]
    if len(names) > 1 and not all(address.name for address in advertised):
        raise ValueError(
            f"there are several listeners; name the one that is meant, as NAME=HOST:PORT with {_or(names)}"
        )
    assigned = tuple(replace(address, name=address.name or names[0]) for address in advertised)
    for address in assigned:
        if address.name not in names:
            raise ValueError(f"there is no listener {address.name}; write {_or(names)}")
    name = _twice([address.name for address in assigned])
    if name:
        raise ValueError(f"listener {name} has two addresses; remove one")
    return assigned


def _split_name(text: str) -> tuple[str, str]:
    """
    The name and the rest. The equals signs of an endpoint come after a colon, and a name has no colon.
    """
    name, equals, rest = text.partition("=")
    if not equals or ":" in name:
        return "", text
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a valid name; write a letter, then letters, digits, _ and -")
    return name, rest


def _twice(names: Sequence[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _or(names: Sequence[str]) -> str:
    return " or ".join(names)
