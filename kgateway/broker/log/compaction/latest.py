"""
Which offset is the last of each key: what one round of compaction knows of the part of a log that it has not seen yet.

The memory for it is bounded. When it is full the round ends before the record that has no room, and the next one goes
on there, as Kafka's cleaner does.
"""

from hashlib import blake2b

from kgateway.cluster.partition import EARLIEST_OFFSET

_DIGEST_BYTES = 16  # as Kafka's: two keys with the same one are not to be expected
ENTRY_BYTES = 210  # measured: the key, the number, and a row of a dict that grows while the smaller one is there still


class LatestOffsets:
    """
    Short keys as they are, and digests of longer ones, which are longer than these.
    """

    def __init__(self, memory_bytes: int) -> None:
        self._room = max(1, memory_bytes // ENTRY_BYTES)  # or no round would ever get anywhere
        self._offsets: dict[bytes, int] = {}
        self.end = EARLIEST_OFFSET  # what is behind it is not known of

    def __len__(self) -> int:
        return len(self._offsets)

    def note(self, key: bytes, offset: int) -> bool:
        """
        This record is the last one of its key so far; whether there was room to remember that.
        """
        if len(key) >= _DIGEST_BYTES:
            key = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        offsets = self._offsets
        if len(offsets) >= self._room and key not in offsets:
            return False
        offsets[key] = offset
        return True

    def is_latest(self, key: bytes, offset: int) -> bool:
        """
        Whether no later record of this key is known.
        """
        if len(key) >= _DIGEST_BYTES:
            key = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        return self._offsets.get(key, offset) <= offset
