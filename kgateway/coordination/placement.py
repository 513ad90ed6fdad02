"""
Which partition of which internal topic keeps the state of a group or transactional id.
"""

from codecs import getencoder
from functools import lru_cache
from struct import iter_unpack

from kgateway.security.permissions import Resource

STATE_TOPICS = {Resource.GROUP: "__consumer_offsets", Resource.TRANSACTIONAL_ID: "__transaction_state"}
_HASHES, _SHORT = 10_000, 250  # how many hashes are cached, of ids of at most this many characters

# Looked up now: a daemon that has dropped its privileges may not be able to read Python's modules any more.
_utf_16 = getencoder("utf-16-le")


def partition_for(key: str, partition_count: int) -> int:
    """
    The partition of a group or transactional id: Kafka's choice, by Java's hash of strings.
    """
    hashed = _cached(key) if len(key) <= _SHORT else _hashed(key)
    if hashed == 1 << 31:  # Java's Math.abs cannot negate it; Kafka takes 0
        return 0
    return min(hashed, (1 << 32) - hashed) % partition_count


def _hashed(key: str) -> int:
    hashed = 0
    units, _ = _utf_16(key, "surrogatepass")
    for (unit,) in iter_unpack("<H", units):
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    return hashed


_cached = lru_cache(_HASHES)(_hashed)  # every request of a member asks for the same one
