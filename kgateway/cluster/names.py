"""
The names of topics: which are legal, which collide, and which Kafka reserves.
"""

import re
from collections.abc import Mapping

from kgateway.wire.errors import ErrorCode, KafkaError

MAX_LENGTH = 249  # so that it is the name of a folder even when the number of a partition follows
METADATA_LOG = "__cluster_metadata"  # the log of Kafka's controllers; never a topic

_LEGAL = re.compile("[a-zA-Z0-9._-]+")
_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def check_name(name: str) -> None:
    reason = _illegal(name)
    if reason:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def check_collision(name: str, taken: Mapping[str, str]) -> None:
    """
    Refuse a name that differs from another only in a `.` instead of a `_`: their metrics would be the same. `taken` has
    the existing names by their `blurred` form.
    """
    twin = taken.get(blurred(name), name)
    if twin != name:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {twin}",
        )


def blurred(name: str) -> str:
    return name.replace(".", "_")


def no_such_topic(name: str) -> KafkaError:
    """
    The error for a name without a topic: it is unknown, or illegal.
    """
    try:
        check_name(name)
    except KafkaError as illegal:
        return illegal
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")


def is_internal(name: str) -> bool:
    return name in _INTERNAL


def _illegal(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in {".", ".."}:
        return f"'{name}' is not allowed"
    if len(name) > MAX_LENGTH:
        return f"the length of '{name[:20]}...' is longer than the max allowed length {MAX_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None
