"""
A cluster that is secured in all ways that SeaweedFS has: certificates for gRPC and HTTPS on both sides, only some names
admitted, tokens for each kind of request, and a filerGroup.
"""

from collections.abc import Mapping
from pathlib import Path

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from tests.broker.seaweed.grpc.certificates import Authority

FILER_GROUP = "secured"
_SERVERS = ("master", "volume", "filer")
_ADMITTED = (*_SERVERS, "msg_broker", "client", "gateway")

Sections = Mapping[str, Mapping[str, str | bool]]


class SecuredCluster:
    """
    The cluster, the authority that certifies its members, and files for other programs that connect to it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority()
        self.ca = self.keep("ca.pem", self.authority.certificate)
        write_security(folder / "security.toml", self.servers())
        self.cluster = DevCluster(folder, filer_group=FILER_GROUP)

    def keep(self, name: str, data: bytes) -> str:
        """
        Write a file with this content. Returns its path.
        """
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

    def identity(self, name: str, authority: Authority | None = None) -> dict[str, str]:
        """
        The paths of a certificate and its key.
        """
        pair, prefix = (authority or self.authority).certify(name), "other-" if authority else ""
        return {
            "cert": self.keep(f"{prefix}{name}.pem", pair.certificate),
            "key": self.keep(f"{prefix}{name}.key", pair.key),
        }

    def servers(self) -> Sections:
        of = {name: self.identity(name) for name in _ADMITTED}
        names = {"allowed_commonNames": ",".join(_ADMITTED)}
        grpc = {f"grpc.{name}": of[name] | names for name in (*_SERVERS, "msg_broker")}
        https = {f"https.{name}": of[name] | {"ca": self.ca} for name in _SERVERS}
        client: Mapping[str, str | bool] = {"enabled": True, "ca": self.ca, **of["client"]}
        volumes = {"jwt.signing": {"key": "of volumes"}, "jwt.signing.read": {"key": "of volumes' readers"}}
        return {
            **volumes,
            **self._tokens(),
            "grpc": {"ca": self.ca},
            **grpc,
            "grpc.client": of["client"],
            **https,
            "https.client": client,
        }

    def gateway(self, name: str, changed: Sections | None = None) -> Path:
        """
        The file of a gateway, with only what it needs; the sections given replace its own.
        """
        identity = self.identity("gateway")
        sections: Sections = {
            **self._tokens(),
            "grpc": {"ca": self.ca},
            "grpc.mq": identity,
            "https.client": {"enabled": True, "ca": self.ca, **identity},
        }
        return write_security(self.folder / f"{name}.toml", {**sections, **(changed or {})})

    def _tokens(self) -> Sections:
        return {"jwt.filer_signing": {"key": "of writers"}, "jwt.filer_signing.read": {"key": "of readers"}}


def write_security(path: Path, sections: Sections) -> Path:
    lines: list[str] = []
    for section, values in sections.items():
        lines.append(f"[{section}]")
        lines += [f"{name} = {_toml(value)}" for name, value in values.items()]
    path.write_text("\n".join(lines))
    return path


def _toml(value: str | bool) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()
