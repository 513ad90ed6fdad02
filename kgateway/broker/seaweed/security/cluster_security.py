"""
The security of a cluster as its `security.toml` has it.
"""

import time
from collections.abc import Callable, Mapping

from twisted.internet.interfaces import IReactorTime, IStreamClientEndpoint

from kgateway.broker.seaweed.security.cluster_access import Role, Security
from kgateway.broker.seaweed.security.security_toml import SecurityFile, SigningKey, jwt
from kgateway.broker.seaweed.security.tls import TlsEndpoint, load

_READING = ("GET", "HEAD")
_WRITTEN_TO_VOLUMES = "jwt.signing"
_WRITTEN_TO_FILERS = "jwt.filer_signing"
_READ_FROM_FILERS = "jwt.filer_signing.read"


class TomlSecurity(Security):
    """
    Security as a file describes it. Raises BadSecurity if that, or a file that it names, is not usable. Certificates
    are read again for each connection: renewed ones are used without a restart. Without a clock, TLS uses that of the
    process's reactor.
    """

    def __init__(
        self, file: SecurityFile, now_s: Callable[[], float] = time.time, clock: IReactorTime | None = None
    ) -> None:
        self._file = file
        self._clock = clock
        self._now_s = now_s
        self._grpc = file.grpc()
        self._https = file.https()
        sections = (_WRITTEN_TO_VOLUMES, _WRITTEN_TO_FILERS, _READ_FROM_FILERS)
        self._keys = {section: file.signing_key(section) for section in sections}
        for tls in (self._grpc, self._https):
            if tls:
                load(tls)

    def grpc(self, plain: IStreamClientEndpoint, role: Role) -> IStreamClientEndpoint:
        if not self._grpc:
            return plain
        return TlsEndpoint(plain, self._grpc, f"[grpc.{role.value}]", clock=self._clock)

    def http(self, plain: IStreamClientEndpoint, role: Role, host: str) -> IStreamClientEndpoint:
        if not self._https:
            return plain
        return TlsEndpoint(plain, self._https, f"[https.{role.value}]", host, self._clock)

    def headers(self, role: Role, verb: str, path: str) -> Mapping[str, str]:
        key = self._keys.get(_section(role, verb))
        if not key:
            return {}
        return {"Authorization": f"Bearer {jwt(key.secret, self._claims(key, role, path))}"}

    def why_refused(self, role: Role, verb: str) -> str:
        section = _section(role, verb)
        key = self._keys.get(section)
        if not key:
            return f"the {role} requires a signature, but there is no `key` under [{section}] of {self._file.path}"
        problem = f"the {role} does not accept signatures made with {key.place}: it has another key"
        return f"{problem}, or its clock is more than {key.expires_s} s ahead of ours" if key.expires_s else problem

    def _claims(self, key: SigningKey, role: Role, path: str) -> Mapping[str, str | int]:
        claims: dict[str, str | int] = {}
        if role is Role.VOLUME:
            claims["fid"] = path.removeprefix("/")  # it is for one file
        if key.expires_s:
            claims["exp"] = int(self._now_s()) + key.expires_s
        return claims


def _section(role: Role, verb: str) -> str:
    if role is Role.VOLUME:
        return _WRITTEN_TO_VOLUMES
    return _READ_FROM_FILERS if verb in _READING else _WRITTEN_TO_FILERS
