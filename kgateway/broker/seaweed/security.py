"""
How a gateway shows who it is to a cluster, and is sure of the cluster: the one place that knows.

All connections for gRPC are made from what `grpc` returns and all others from what `http` returns, and all requests by
HTTP carry what `headers` returns.
"""

from collections.abc import Mapping
from enum import Enum

from twisted.internet.interfaces import IStreamClientEndpoint


class Role(Enum):
    """
    Who is spoken to, as the sections of a security.toml call it.
    """

    MASTER = "master"
    FILER = "filer"
    VOLUME = "volume"
    BROKER = "msg_broker"

    def __str__(self) -> str:
        return "volume server" if self is Role.VOLUME else self.name.lower()


class Security:
    """
    Of a cluster without any: nothing is encrypted and nothing signed.
    """

    def grpc(self, plain: IStreamClientEndpoint, role: Role) -> IStreamClientEndpoint:
        """
        What makes connections to one with this role, from what makes them without TLS.
        """
        return plain

    def http(self, plain: IStreamClientEndpoint, role: Role, host: str) -> IStreamClientEndpoint:
        """
        The same, for HTTP with one on this host.
        """
        return plain

    def headers(self, role: Role, verb: str, path: str) -> Mapping[str, str]:
        """
        What says, in a request by HTTP, that it is allowed.
        """
        return {}

    def why_refused(self, role: Role, verb: str) -> str:
        """
        What to look at when one answers that such a request is not allowed (401).
        """
        return f"the {role} wants a signature, and there is no security.toml with a key"
