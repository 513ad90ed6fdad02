"""
CreateDelegationToken: creates a token that can be used instead of a principal's own credentials (KIP-48).

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
 - v3: owner_principal_type, owner_principal_name: for someone else; token_requester_* (KIP-373)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32, i64


class CreateDelegationTokenRequest(Message, key=38, versions="0-3", flexible="2+"):
    class Renewer(Struct):
        principal_type: str
        principal_name: str

    owner_principal_type: str | None = v("3+")  # null: the sender is the owner
    owner_principal_name: str | None = v("3+")  # null: the sender is the owner
    renewers: list[Renewer]
    max_lifetime_ms: i64  # -1: the server's maximum


class CreateDelegationTokenResponse(Message, key=38, versions="0-3", flexible="2+"):
    """
    The new token and the three times that bound its life.
    """

    error_code: i16
    principal_type: str
    principal_name: str
    token_requester_principal_type: str = v("3+")
    token_requester_principal_name: str = v("3+")
    issue_timestamp_ms: i64
    expiry_timestamp_ms: i64  # unless renewed
    max_timestamp_ms: i64  # renewals end here
    token_id: str
    hmac: bytes  # in base64 it is the token's SCRAM password
    throttle_time_ms: i32
