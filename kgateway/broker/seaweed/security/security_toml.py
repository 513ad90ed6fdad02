"""
A `security.toml` as SeaweedFS's own programs have it, and what of it a client of a cluster needs.

    [grpc]                            ca: who certifies the servers
    [grpc.mq], else [grpc.client]     client_cert and client_key, else cert and key: our identity
    [https.client]                    enabled, ca, cert, key, insecure_skip_verify
    [jwt.signing]                     key, expires_after_seconds: for writes to volume servers
    [jwt.filer_signing]               the same, for writes to a filer by HTTP
    [jwt.filer_signing.read]          the same, for reads from a filer by HTTP

An environment variable has precedence over the file: WEED_JWT_SIGNING_KEY over `key` under [jwt.signing]. A path that
does not begin with / is relative to the file's folder.

The keys sign JSON Web Tokens with HS256.
"""

import hmac
import json
import os
import tomllib
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_OURS = ("grpc.mq", "grpc.client")  # for gateways to SeaweedMQ, and for clients without a section of their own
_EXPIRES_S = 10


class BadSecurity(Exception):
    """
    A security.toml is wrong; the message is for the operator.
    """


class PemFile(NamedTuple):
    path: Path
    place: str  # where the security.toml names it

    def __str__(self) -> str:
        return f"{self.path} ({self.place})"


class Identity(NamedTuple):
    certificate: PemFile
    key: PemFile


class Tls(NamedTuple):
    authorities: PemFile | None  # without them no certificate is verified
    identity: Identity | None
    checks_names: bool  # whether a certificate must be for the host of the connection
    place: str


class SigningKey(NamedTuple):
    secret: bytes
    expires_s: int  # 0 is never
    place: str


class SecurityFile:
    """
    The content of a security.toml. Raises BadSecurity if the file is not there, or is not TOML.
    """

    def __init__(self, path: Path, environment: Mapping[str, str] = os.environ) -> None:
        self.path = path.absolute()
        self._environment = environment
        try:
            self._content = tomllib.loads(path.read_text("utf-8"))
        except OSError as error:
            raise BadSecurity(f"{path} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise BadSecurity(f"{path} is not TOML: {error}") from None

    def grpc(self) -> Tls | None:
        """
        TLS for gRPC, if both sides have certificates or none. SeaweedFS's servers may share one, so names are not
        checked.
        """
        authorities = self._pem("grpc", "ca")
        identity = self._our_identity()
        if not (authorities or identity):
            return None
        if not authorities:
            raise self._missing("ca", "grpc", f"{identity and identity.certificate} is given")
        if not identity:
            wanted = " nor ".join(f"[{section}]" for section in _OURS)
            raise BadSecurity(f"{self.path}: `ca` is under [grpc], but neither {wanted} has `cert` and `key`")
        return Tls(authorities, identity, checks_names=False, place=f"[grpc] of {self.path}")

    def https(self) -> Tls | None:
        """
        TLS for HTTPS, as browsers do it, and with a certificate of ours if one is given.
        """
        section = "https.client"
        if not self._boolean(section, "enabled"):
            return None
        authorities, is_blind = self._pem(section, "ca"), self._boolean(section, "insecure_skip_verify")
        if not (authorities or is_blind):
            raise self._missing("ca", section, "`enabled` is true")
        identity = self._identity(section, "cert", "key")
        return Tls(None if is_blind else authorities, identity, not is_blind, f"[{section}] of {self.path}")

    def signing_key(self, section: str) -> SigningKey | None:
        secret, expires_s = self._value(section, "key"), self._value(section, "expires_after_seconds")
        if not secret:
            return None
        try:
            seconds = int(expires_s) if expires_s else _EXPIRES_S
        except ValueError:
            place = self._place(section, "expires_after_seconds")
            raise BadSecurity(f"{expires_s!r} is not a number of seconds: {place}") from None
        return SigningKey(secret.encode(), max(seconds, 0), self._place(section, "key"))

    def _our_identity(self) -> Identity | None:
        for section in _OURS:
            for prefix in ("client_", ""):
                found = self._identity(section, f"{prefix}cert", f"{prefix}key")
                if found:
                    return found
        return None

    def _identity(self, section: str, certificate_name: str, key_name: str) -> Identity | None:
        certificate, key = self._pem(section, certificate_name), self._pem(section, key_name)
        if certificate and key:
            return Identity(certificate, key)
        if certificate:
            raise self._missing(key_name, section, f"`{certificate_name}` is given")
        if key:
            raise self._missing(certificate_name, section, f"`{key_name}` is given")
        return None

    def _pem(self, section: str, name: str) -> PemFile | None:
        text = self._value(section, name)
        return PemFile(self.path.parent / text, self._place(section, name)) if text else None

    def _boolean(self, section: str, name: str) -> bool:
        text = self._value(section, name).lower()
        if text not in ("", "true", "false"):
            raise BadSecurity(f"{text!r} is neither true nor false: {self._place(section, name)}")
        return text == "true"

    def _value(self, section: str, name: str) -> str:
        """
        The value of the environment, else that of the file, else an empty text.
        """
        variable = f"WEED_{section}_{name}".replace(".", "_").upper()
        if self._environment.get(variable):
            return self._environment[variable]
        found = self._content
        for part in (*section.split("."), name):
            found = found.get(part, "") if isinstance(found, dict) else ""
        return str(found)

    def _place(self, section: str, name: str) -> str:
        return f"`{name}` under [{section}] of {self.path}"

    def _missing(self, name: str, section: str, why: str) -> BadSecurity:
        return BadSecurity(f"{self.path}: there is no `{name}` under [{section}], but {why}")


_HEADER = {"alg": "HS256", "typ": "JWT"}


def jwt(key: bytes, claims: Mapping[str, str | int]) -> str:
    signed = f"{_part(_HEADER)}.{_part(claims)}"
    return f"{signed}.{_text(hmac.digest(key, signed.encode(), 'sha256'))}"


def _part(content: Mapping[str, str | int]) -> str:
    return _text(json.dumps(content, separators=(",", ":")).encode())


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
