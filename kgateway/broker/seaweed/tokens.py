"""
JSON Web Tokens as SeaweedFS takes them: signed with a key that both sides have (HS256).
"""

import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping

_HEADER = {"alg": "HS256", "typ": "JWT"}


def token(key: bytes, claims: Mapping[str, str | int]) -> str:
    """
    One that says this, as whoever has the key.
    """
    signed = f"{_part(_HEADER)}.{_part(claims)}"
    return f"{signed}.{_text(hmac.digest(key, signed.encode(), 'sha256'))}"


def _part(content: Mapping[str, str | int]) -> str:
    return _text(json.dumps(content, separators=(",", ":")).encode())


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
