"""
Tokens are compared with known ones.
"""

import hmac
import json
from base64 import urlsafe_b64decode

from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweed.security.security_toml import jwt


def test_tokens_are_as_others_make_them() -> None:
    """
    This is the usual example in explanations of such tokens.
    """
    claims: dict[str, str | int] = {"sub": "1234567890", "name": "John Doe", "iat": 1516239022}
    header, content = (
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
        ("eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ"),
    )
    signature = "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
    assert jwt(b"your-256-bit-secret", claims) == f"{header}.{content}.{signature}"


@given(st.binary(min_size=1), st.dictionaries(st.text(), st.text() | st.integers(0, 1 << 53)))
def test_what_is_claimed_can_be_read_and_is_signed(key: bytes, claims: dict[str, str | int]) -> None:
    """
    The base64 is URL-safe, without padding.
    """
    signed, _, signature = jwt(key, claims).rpartition(".")
    _, content = signed.split(".")
    assert json.loads(_data(content)) == claims
    assert _data(signature) == hmac.digest(key, signed.encode(), "sha256")
    assert not set("+/=") & set(signed + signature)


def _data(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
