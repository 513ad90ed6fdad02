"""
DescribeDelegationToken: lists the tokens that the client may see, or only those of certain owners (KIP-48).

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
 - v3: token_requester_principal_type, token_requester_principal_name (KIP-373)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32, i64


class DescribeDelegationTokenRequest(Message, key=41, versions="0-3", flexible="2+"):
    class Owner(Struct):
        principal_type: str
        principal_name: str

    owners: list[Owner] | None  # null: all, empty: none


class DescribeDelegationTokenResponse(Message, key=41, versions="0-3", flexible="2+"):
    class Token(Struct):
        class Renewer(Struct):
            principal_type: str
            principal_name: str

        principal_type: str
        principal_name: str
        token_requester_principal_type: str = v("3+")
        token_requester_principal_name: str = v("3+")
        issue_timestamp: i64  # ms
        expiry_timestamp: i64  # ms
        max_timestamp: i64  # ms; renewals end here
        token_id: str
        hmac: bytes
        renewers: list[Renewer]

    error_code: i16
    tokens: list[Token]
    throttle_time_ms: i32
