"""
DescribeUserScramCredentials: lists the SCRAM credentials of users, without the secrets (KIP-554).

AlterUserScramCredentials: stores and deletes the SCRAM credentials of users (KIP-554).
"""

from kgateway.wire.schema import Message, Struct
from kgateway.wire.types import i8, i16, i32


class DescribeUserScramCredentialsRequest(Message, key=50, versions="0", flexible="0+"):
    class User(Struct):
        name: str

    users: list[User] | None  # null or empty: all


class DescribeUserScramCredentialsResponse(Message, key=50, versions="0", flexible="0+"):
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


class AlterUserScramCredentialsRequest(Message, key=51, versions="0", flexible="0+"):
    """
    The credentials to delete, and those to store; the sender has salted the passwords.
    """

    class Deletion(Struct):
        name: str
        mechanism: i8  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512

    class Upsertion(Struct):
        name: str
        mechanism: i8  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
        iterations: i32  # Kafka takes 4096 to 16384
        salt: bytes
        salted_password: bytes  # RFC 5802: Hi(password, salt, iterations)

    deletions: list[Deletion]
    upsertions: list[Upsertion]


class AlterUserScramCredentialsResponse(Message, key=51, versions="0", flexible="0+"):
    class Result(Struct):
        user: str
        error_code: i16
        error_message: str | None

    throttle_time_ms: i32
    results: list[Result]
