"""
DescribeUserScramCredentials: which SCRAM credentials users have, never the secrets (KIP-554).
"""

from kgateway.wire.schema import Message, Struct
from kgateway.wire.types import i8, i16, i32


class DescribeUserScramCredentialsRequest(Message, key=50, versions="0", flexible="0+"):
    """
    Names the users to describe.
    """

    class User(Struct):
        name: str

    users: list[User] | None  # null or empty: all


class DescribeUserScramCredentialsResponse(Message, key=50, versions="0", flexible="0+"):
    """
    The mechanisms and iteration counts of each user.
    """

    class Result(Struct):
        class CredentialInfo(Struct):
            mechanism: i8  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
            iterations: i32

        user: str
        error_code: i16
        error_message: str | None
        credential_infos: list[CredentialInfo]

    throttle_time_ms: i32
    error_code: i16
    error_message: str | None
    results: list[Result]
