"""
The addresses of servers, as SeaweedFS writes them.

    filer:8888          HTTP there, gRPC on the port 10,000 above it
    filer:8888.18888    HTTP and gRPC, both given
    broker:17777        the gRPC address of a broker, which has no other
"""

from typing import NamedTuple, Self

from kgateway.cluster.view import Address

_PORT_MAX = 65_535
_GRPC_ABOVE = 10_000


class ServerAddress(NamedTuple):
    host: str
    port: int
    grpc_port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        Raises ValueError if the text is no address.
        """
        host, ports = _parted(text)
        port, dot, grpc_port = ports.partition(".")
        if dot:
            return cls(host, _port(port, text), _port(grpc_port, text))
        http = _port(port, text)
        if http + _GRPC_ABOVE > _PORT_MAX:
            above = f"its gRPC port would be {http + _GRPC_ABOVE}, which is not a port"
            raise ValueError(f"{text!r}: {above}; write HOST:PORT.GRPCPORT")
        return cls(host, http, http + _GRPC_ABOVE)

    @property
    def http(self) -> Address:
        return Address(self.host, self.port)

    @property
    def grpc(self) -> Address:
        return Address(self.host, self.grpc_port)

    def __str__(self) -> str:
        usual = self.grpc_port == self.port + _GRPC_ABOVE
        return str(self.http) if usual else f"{self.http}.{self.grpc_port}"


def broker_address(text: str) -> Address:
    """
    Raises ValueError if the text is no address.
    """
    host, port = _parted(text)
    return Address(host, _port(port, text))


def master_addresses(text: str) -> list[ServerAddress]:
    """
    The addresses of masters, separated by commas; raises ValueError if one is no address, or there is none.
    """
    named = [part.strip() for part in text.split(",")]
    if named == [""]:
        raise ValueError("no master is named: write one or more HOST:PORT, separated by commas")
    return list(dict.fromkeys(ServerAddress.parse(part) for part in named))


def _parted(text: str) -> tuple[str, str]:
    host, colon, ports = text.strip().rpartition(":")
    has_brackets = host.startswith("[") and host.endswith("]")
    if not colon or not host.strip("[]") or (":" in host and not has_brackets):
        raise ValueError(f"{text!r} is not HOST:PORT; an IPv6 address has brackets, as in [::1]:9333")
    return (host[1:-1] if has_brackets else host), ports


def _port(text: str, address: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 0 < int(text) <= _PORT_MAX:
        raise ValueError(f"{address!r}: {text!r} is not a port")
    return int(text)
