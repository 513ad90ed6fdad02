"""
Where the state of a coordinator is: in which internal topic, and in which partition of it.
"""

from codecs import getencoder
from functools import lru_cache
from struct import iter_unpack

from kgateway.security.permissions import Resource

# Whose state is in which topic.
STATE_TOPICS = {Resource.GROUP: "__consumer_offsets", Resource.TRANSACTIONAL_ID: "__transaction_state"}
_HASHES, _SHORT = 10_000, 250  # how many are remembered, of ids that are so long at most

# Looked up now: a daemon that has given up its rights may not be able to read Python's modules any more.
_as_java_has_it = getencoder("utf-16-le")


def place_of(key: str, partition_count: int) -> int:
    """
    Which partition has the state of a group or transactional id: Kafka's choice, by the hash that strings have in Java.
    """
    hashed = _remembered(key) if len(key) <= _SHORT else _hashed(key)
    if hashed == 1 << 31:  # the number without an absolute value, for which Kafka takes 0
        return 0
    return min(hashed, (1 << 32) - hashed) % partition_count


def _hashed(key: str) -> int:
    hashed = 0
    units, _ = _as_java_has_it(key, "surrogatepass")
    for (unit,) in iter_unpack("<H", units):
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    return hashed


_remembered = lru_cache(_HASHES)(_hashed)  # every request of a member asks for the same one
