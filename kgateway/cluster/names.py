"""
What a topic may be called, and which names Kafka keeps for itself.
"""

import re
from collections.abc import Mapping

from kgateway.wire.errors import ErrorCode, KafkaError

MAX_LENGTH = 249  # with a partition's number after it, it is still the name of a folder
METADATA_LOG = "__cluster_metadata"  # where Kafka's controllers keep their log; never a topic

_LEGAL = re.compile("[a-zA-Z0-9._-]+")
_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def check_name(name: str) -> None:
    """
    Refuse what no topic may be called.
    """
    reason = _illegal(name)
    if reason:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def check_collision(name: str, taken: Mapping[str, str]) -> None:
    """
    Refuse a name that differs from another only in having `.` for `_`: the metrics of the two would be one. `taken` has
    the names there are by their `blurred` form.
    """
    twin = taken.get(blurred(name), name)
    if twin != name:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {twin}",
        )


def blurred(name: str) -> str:
    """
    What is the same for names that collide.
    """
    return name.replace(".", "_")


def no_such_topic(name: str) -> KafkaError:
    """
    What a client is told of a name that no topic has: there is none, or there cannot be one.
    """
    try:
        check_name(name)
    except KafkaError as illegal:
        return illegal
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")


def is_internal(name: str) -> bool:
    """
    Whether coordinators keep their state in the topic of this name.
    """
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
