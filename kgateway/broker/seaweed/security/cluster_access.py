"""
How a gateway authenticates to a cluster, and the cluster to it; no other module knows.

All gRPC connections are made from what `grpc` returns and all others from what `http` returns, and all HTTP requests
carry what `headers` returns.
"""

from collections.abc import Mapping
from enum import Enum

from twisted.internet.interfaces import IStreamClientEndpoint


class Role(Enum):
    """
    The role of a server, as the sections of a security.toml call it.
    """

    MASTER = "master"
    FILER = "filer"
    VOLUME = "volume"
    BROKER = "msg_broker"

    def __str__(self) -> str:
        return "volume server" if self is Role.VOLUME else self.name.lower()


class Security:
    """
    The security of a cluster without any: nothing is encrypted and nothing signed.
    """

    def grpc(self, plain: IStreamClientEndpoint, role: Role) -> IStreamClientEndpoint:
        """
        The endpoint for servers of this role, from one without TLS.
        """
        return plain

    def http(self, plain: IStreamClientEndpoint, role: Role, host: str) -> IStreamClientEndpoint:
        """
        The endpoint for HTTP with a server of this role on this host, from one without TLS.
        """
        return plain

    def headers(self, role: Role, verb: str, path: str) -> Mapping[str, str]:
        return {}

    def why_refused(self, role: Role, verb: str) -> str:
        """
        What to look at when a server answers 401 to such a request.
        """
        return f"the {role} requires a signature, but there is no security.toml with a key"
