"""
What a member can speak. To the coordinator it is names and opaque bytes; consumers alone say topics in theirs.
"""

from collections.abc import Iterable, Iterator

from kgateway.messages.consumer_protocol import ConsumerProtocolSubscription
from kgateway.wire.codec import decoder
from kgateway.wire.malformed import Malformed

_VERSION_BYTES = 2
_COMMON_VERSION = 0  # each later version begins with what this one has
_UNREAD: frozenset[str] = frozenset({""})


class Protocols:
    """
    The protocols of one member by name, in its order of preference, each with the member's metadata.
    """

    __slots__ = ("_metadata", "_topics")

    def __init__(self, offered: Iterable[tuple[str, bytes]]) -> None:
        self._metadata: dict[str, bytes] = {}
        self._topics: frozenset[str] | None = _UNREAD
        for name, metadata in offered:
            self._metadata.setdefault(name, metadata)

    def __len__(self) -> int:
        return len(self._metadata)

    def __iter__(self) -> Iterator[str]:
        return iter(self._metadata)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Protocols):
            return NotImplemented
        return list(self._metadata.items()) == list(other._metadata.items())

    __hash__ = None  # type: ignore[assignment]  # says that it has none, as `list` does

    def metadata(self, name: str) -> bytes:
        """
        What the member says to the leader in this protocol.
        """
        return self._metadata[name]

    @property
    def topics(self) -> frozenset[str] | None:
        """
        The topics a consumer names in any of them; `None` where one cannot be read.
        """
        if self._topics is _UNREAD:
            self._topics = _topics(self._metadata.values())
        return self._topics


def _topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    decode = decoder(ConsumerProtocolSubscription, _COMMON_VERSION)
    topics = set[str]()
    for subscription in subscriptions:
        try:
            read, _ = decode(subscription, _VERSION_BYTES)
        except Malformed:
            return None
        topics.update(read.topics)
    return frozenset(topics)
